"""The native API on Django REST framework: views, parsers, renderers, negotiation, exceptions.

Source: Gravitino's documented API, as its clients use it.
"""
