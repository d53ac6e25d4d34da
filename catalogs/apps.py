from django.apps import AppConfig


class CatalogsConfig(AppConfig):
    name = "catalogs"

    def ready(self) -> None:
        from prometheus_client import REGISTRY

        from authz.objects import register_finder
        from catalogs import metrics, securables, tasks
        from catalogs.services import admission
        from metalake import rest
        from metalake.health import NAMES

        register_finder(securables)
        tasks.register()
        rest.admit_with(admission.admit)
        REGISTRY.register(metrics.OutsideCatalogs())
        NAMES.register(metrics.OutsideNames())
