from django.apps import AppConfig


class CatalogsConfig(AppConfig):
    name = "catalogs"

    def ready(self) -> None:
        from authz.objects import register_finder
        from catalogs import securables, tasks

        register_finder(securables)
        tasks.register()
