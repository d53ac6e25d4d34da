from django.apps import AppConfig


class AuthzConfig(AppConfig):
    name = "authz"
    verbose_name = "Authorization"

    def ready(self) -> None:
        from authz import audit
        from metalake import events

        events.subscribe_in_transaction(audit.write)
