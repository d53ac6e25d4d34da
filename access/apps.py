from django.apps import AppConfig


class AccessConfig(AppConfig):
    name = "access"

    def ready(self) -> None:
        from access.usage import retention, writer
        from authz import usage_counter
        from metalake import outbox

        outbox.every_round(retention.remove)
        usage_counter.when_first(writer.start)
