from django.apps import AppConfig


class MetalakeConfig(AppConfig):
    name = "metalake"
    verbose_name = "Metalake"

    def ready(self) -> None:
        from django.conf import settings

        from metalake import database_checks, event_log, events, listeners, outbox, shared_settings
        from metalake.metrics import STORED

        database_checks.refuse_at_first_connection()
        outbox.handles(events.TOPIC, events.deliver, in_order=True, unless=shared_settings.events_left)
        STORED.register(shared_settings.Metrics())
        events.subscribe(event_log.append)
        listeners.listen_to_names(settings.METALAKE_LISTENERS)
