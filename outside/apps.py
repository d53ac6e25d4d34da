from django.apps import AppConfig


class OutsideConfig(AppConfig):
    name = "outside"

    def ready(self) -> None:
        from metalake.health import NAMES, STORED
        from metalake.meters import LOOKED_UP
        from outside import metrics, tasks

        tasks.register()
        STORED.register(metrics.OutsideCatalogs())
        NAMES.register(metrics.OutsideNames())
        LOOKED_UP.register(metrics.Breakers())
