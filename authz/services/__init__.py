"""Changing who may do what: people, roles, grants, owners, tokens.

This module exports what other apps call inside their own transactions; doors import the module of their noun.
"""

from authz.services.grants import forget_grants_under
from authz.services.people import drop_people_of

__all__ = ["drop_people_of", "forget_grants_under"]
