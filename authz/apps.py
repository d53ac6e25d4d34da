from django.apps import AppConfig


class AuthzConfig(AppConfig):
    name = "authz"
    verbose_name = "Authorization"

    def ready(self) -> None:
        from authz import audit, callers
        from metalake import events, rest

        events.subscribe_in_transaction(audit.write)
        rest.authenticate_with(callers.authenticate)
