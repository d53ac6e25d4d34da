"""The real settings of the servers that tests start, but passwords are hashed in no time.

Django's hash takes a fifth of a second of a processor: for the first admin of each server, and in each of its
processes for everybody who signs in. tests/test_readme.py and the tests of `make run` start servers as they are.
"""

from metalake.settings import *  # noqa: F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
