from django.apps import AppConfig


class CatalogsConfig(AppConfig):
    name = "catalogs"

    def ready(self) -> None:
        from prometheus_client import REGISTRY

        from authz.objects import register_finder
        from catalogs import metrics, securables, tasks
        from metalake.health import NAMES

        register_finder(securables)
        tasks.register()
        REGISTRY.register(metrics.OutsideCatalogs())
        NAMES.register(metrics.OutsideNames())
