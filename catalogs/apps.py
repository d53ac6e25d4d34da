from django.apps import AppConfig


class CatalogsConfig(AppConfig):
    name = "catalogs"

    def ready(self) -> None:
        from authz.objects import register_finder
        from authz.services.owners import hand_over_with
        from authz.services.ownership_rules import owns_with
        from catalogs import securables, stores, vault
        from catalogs.managed.catalogs import ManagedCatalogs
        from catalogs.managed.schemas import ManagedSchemas
        from catalogs.managed.tables import ManagedTables
        from catalogs.services import purge, reserved_places, shared_folders
        from metalake import outbox, shared_settings
        from metalake.kinds import Kind
        from providers.base import Storage

        register_finder(securables)
        hand_over_with(reserved_places.hand_over)
        owns_with(reserved_places.belong_to)
        outbox.handles(purge.PURGE, purge.purge_table)
        shared_settings.compare_with(shared_folders.compare)
        shared_settings.compare_with(vault.compare)
        stores.register(Storage.MANAGED, Kind.CATALOG, ManagedCatalogs())
        stores.register(Storage.MANAGED, Kind.SCHEMA, ManagedSchemas())
        stores.register(Storage.MANAGED, Kind.TABLE, ManagedTables())
