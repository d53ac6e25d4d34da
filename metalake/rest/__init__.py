"""The native wire's manners, as parts of Django REST framework: views, parsers, renderers, negotiation, exceptions.

Source: the native wire reference, section 1.
"""
