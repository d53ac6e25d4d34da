"""The native wire's manners, as parts of Django REST framework: views, parsers, renderers, negotiation, exceptions.

Source: Gravitino's documented API, as its clients speak it.
"""
