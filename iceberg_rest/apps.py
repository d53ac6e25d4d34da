from django.apps import AppConfig


class IcebergRestConfig(AppConfig):
    name = "iceberg_rest"
