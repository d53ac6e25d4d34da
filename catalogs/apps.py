from django.apps import AppConfig


class CatalogsConfig(AppConfig):
    name = "catalogs"

    def ready(self) -> None:
        from authz.objects import register_finder
        from authz.services.owners import hand_over_with
        from catalogs import securables
        from catalogs.services import admission, reserved
        from metalake import rest

        register_finder(securables)
        hand_over_with(reserved.hand_over)
        rest.admit_with(admission.admit)
