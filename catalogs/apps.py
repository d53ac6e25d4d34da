from django.apps import AppConfig


class CatalogsConfig(AppConfig):
    name = "catalogs"

    def ready(self) -> None:
        from authz.objects import register_finder
        from authz.services.owners import hand_over_with
        from catalogs import metrics, securables, tasks
        from catalogs.services import admission, reserved
        from metalake import rest
        from metalake.health import NAMES, STORED
        from metalake.meters import LOOKED_UP

        register_finder(securables)
        hand_over_with(reserved.hand_over)
        tasks.register()
        rest.admit_with(admission.admit)
        STORED.register(metrics.OutsideCatalogs())
        NAMES.register(metrics.OutsideNames())
        LOOKED_UP.register(metrics.Breakers())
