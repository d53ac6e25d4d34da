from django.apps import AppConfig


class MetalakeConfig(AppConfig):
    name = "metalake"
    verbose_name = "Metalake"

    def ready(self) -> None:
        from django.conf import settings

        from metalake import event_log, events, hooks, outbox, sharing, store
        from metalake.health import STORED

        store.refuse_at_first_connection()
        outbox.handles(events.TOPIC, events.deliver, in_order=True, unless=sharing.events_left)
        STORED.register(sharing.Metrics())
        events.subscribe(event_log.append)
        hooks.listen_to_names(settings.METALAKE_LISTENERS)
