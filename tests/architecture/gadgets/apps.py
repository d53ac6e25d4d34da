from django.apps import AppConfig


class GadgetsConfig(AppConfig):
    name = "gadgets"
    native_urls = "gadgets.urls"

    def ready(self) -> None:
        from catalogs import stores
        from gadgets.stores import ManagedGadgets, OutsideGadgets, Stamps
        from metalake.kinds import Kind
        from providers.base import Storage
        from providers.verbs import declare_reads

        stores.register(Storage.MANAGED, Kind.GADGET, ManagedGadgets())
        stores.register(Storage.EXTERNAL, Kind.GADGET, OutsideGadgets())
        stores.register(Storage.MANAGED, Kind.STAMP, Stamps())
        declare_reads(Kind.GADGET)
