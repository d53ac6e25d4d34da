"""The real settings, in a METALAKE_HOME of the suite's own and untouched by the caller's environment.

METALAKE_TEST_DATABASE_URL   run on this database instead of SQLite (a database test_<name> is created in it)
METALAKE_TEST_TEMPLATE       the database there that the one of the tests is made from; migrated by them when unset
METALAKE_TEST_HOME           the data folder; made, in memory if possible, and removed by the suite when unset
"""

import atexit
import os
import shutil
import tempfile

for name in [name for name in os.environ if name.startswith("METALAKE_") and not name.startswith("METALAKE_TEST_")]:
    del os.environ[name]  # a developer's own database must never be what the tests write to

if "METALAKE_TEST_HOME" not in os.environ:  # pytest-xdist's workers inherit it
    # In memory where that can be: every write of a metadata file waits for the disk, some thousand times here.
    memory = "/dev/shm"
    has_room = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 1 << 30
    os.environ["METALAKE_TEST_HOME"] = tempfile.mkdtemp(prefix="metalake-tests-", dir=memory if has_room else None)
    atexit.register(shutil.rmtree, os.environ["METALAKE_TEST_HOME"], ignore_errors=True)
os.environ["METALAKE_HOME"] = os.environ["METALAKE_TEST_HOME"]
os.environ["METALAKE_PROVIDERS"] = ",".join(
    f"{name}=tests.providers.{class_}"
    for name, class_ in (("memory", "memory:MemoryProvider"), ("memory-flat", "flat:FlatMemoryProvider"))
)
os.environ["METALAKE_IDLE_TIMEOUT"] = "600"  # a test may be one transaction, and do much else meanwhile
os.environ["METALAKE_USE_DAYS"] = "0"  # its thread would write beside the tests; those of the record of use turn it on
os.environ["METALAKE_SQL_TIMEOUT"] = "60"  # its process lets others go first, and the suite uses the whole machine
os.environ["METALAKE_DATABASE_URL"] = os.environ.get("METALAKE_TEST_DATABASE_URL", "")

from metalake.settings import *  # noqa: E402, F403
from metalake.settings import DATABASES, METALAKE_HOME, ON_SQLITE, STORAGES  # noqa: E402

if ON_SQLITE:
    # A file, not memory: WAL and the waiting for locks are part of what is tested.
    DATABASES["default"]["TEST"] = {"NAME": METALAKE_HOME / "test.sqlite3"}
    DATABASES["default"]["OPTIONS"]["init_command"] += "; PRAGMA synchronous=OFF"

elif template := os.environ.get("METALAKE_TEST_TEMPLATE"):
    DATABASES["default"]["TEST"] = {"TEMPLATE": template}

# Clients in this process get the files as they are; servers of their own collect them, as anybody's does.
STORAGES = STORAGES | {"staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}}
WHITENOISE_USE_FINDERS = True

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
