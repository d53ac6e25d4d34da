from django.apps import AppConfig
from django.db.models.signals import post_migrate


class AuthzConfig(AppConfig):
    name = "authz"
    verbose_name = "Authorization"

    def ready(self) -> None:
        from django.contrib.auth import user_logged_in

        from authz import audit, facts, sessions, snapshot, throttling
        from authz.guardian_adapter import patches
        from metalake import events, outbox

        events.subscribe_in_transaction(audit.rows_of)
        events.subscribe_in_transaction(facts.rows_of)
        outbox.after_some(facts.seal_after_events)
        outbox.every_round(throttling.prune)
        patches.replace_guardian()
        user_logged_in.connect(sessions.begin)
        post_migrate.connect(snapshot.begin, sender=self)
