from django.apps import AppConfig
from django.db.models.signals import post_migrate


class AuthzConfig(AppConfig):
    name = "authz"
    verbose_name = "Authorization"

    def ready(self) -> None:
        from authz import asked, audit, snapshot, throttling
        from authz.guarding import doors
        from authz.history import facts as history
        from authz.use import removing, writing
        from metalake import events, outbox

        events.subscribe_in_transaction(audit.rows_of)
        events.subscribe_in_transaction(history.rows_of)
        outbox.after_some(history.seal_after_events)
        outbox.every_round(throttling.prune, removing.remove)
        asked.when_first(writing.start)
        doors.replace_guardian()
        post_migrate.connect(snapshot.begin, sender=self)
