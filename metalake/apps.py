from django.apps import AppConfig


class MetalakeConfig(AppConfig):
    name = "metalake"
    verbose_name = "Metalake"
