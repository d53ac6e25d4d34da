"""The real settings of the servers that tests start, but passwords are hashed in no time.

Django's hash takes a fifth of a second of a processor: for the first admin of each server, and in each of its
processes for everybody who signs in. A first start, on no store at all, is tested with the settings as they are.
"""

from metalake.settings import *  # noqa: F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
