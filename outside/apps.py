from django.apps import AppConfig


class OutsideConfig(AppConfig):
    name = "outside"

    def ready(self) -> None:
        from catalogs import stores
        from metalake.kinds import Kind
        from metalake.metrics import LOOKED_UP, NAMES, STORED
        from outside import metrics, tasks
        from outside.stores import OutsideCatalogs, OutsideSchemas, OutsideTables
        from outside.view_stores import OutsideViews
        from providers.base import Storage

        stores.register(Storage.EXTERNAL, Kind.CATALOG, OutsideCatalogs())
        stores.register(Storage.EXTERNAL, Kind.SCHEMA, OutsideSchemas())
        stores.register(Storage.EXTERNAL, Kind.TABLE, OutsideTables())
        stores.register(Storage.EXTERNAL, Kind.VIEW, OutsideViews())
        tasks.register()
        STORED.register(metrics.OutsideCatalogs())
        NAMES.register(metrics.OutsideNames())
        LOOKED_UP.register(metrics.Breakers())
