"""Settings, all from the environment; the defaults need no other service (docs/operations.md lists every variable)."""

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured
from django.http.request import split_domain_port

from formats.iceberg.locations import is_under, normalise
from metalake import timeouts
from metalake.bind_address import address
from metalake.client_address import parse_proxies
from metalake.environment import Environment
from metalake.errors import Invalid
from metalake.framework_settings import *  # noqa: F403
from metalake.framework_settings import ADMIN_TEAL, LIBRARY_APPS, SPECTACULAR_SETTINGS
from metalake.hierarchy import SeparatorPolicy, check_separator
from metalake.protected_files import BESIDE_THE_STORE, require_apart
from metalake.request_target import in_url, is_address, is_loopback, is_private, parse_prefix
from providers.network.addresses import parse_allowed
from providers.network.identity import parse_identity

env = Environment()


def processors() -> int:
    """The number of processors that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


BASE_DIR = Path(__file__).resolve().parent.parent
METALAKE_HOME = Path(env.str("METALAKE_HOME", "var")).absolute()
METALAKE_SECRET_KEYS_FILE = Path(env.str("METALAKE_SECRET_KEYS_FILE", "") or METALAKE_HOME / "secrets.keys").absolute()
METALAKE_HOST, METALAKE_PORT = address()
METALAKE_DATABASE_WAIT = env.int("METALAKE_DATABASE_WAIT", 60)  # seconds for a database that is not up yet
METALAKE_WORKERS = env.int("METALAKE_WORKERS", 0) or processors()  # processes of a server that accept connections
METALAKE_PROCESSES = METALAKE_WORKERS + (METALAKE_WORKERS > 1)  # with several, one more for large requests
METALAKE_THREADS = env.int("METALAKE_THREADS", 8)  # of a process, for work that may block
METALAKE_READ_THREADS = env.int("METALAKE_READ_THREADS", 0)  # of a process, for reads of our own store
METALAKE_ACCESS_LOG = env.bool("METALAKE_ACCESS_LOG", False)
METALAKE_BROKER_URL = env.str("METALAKE_BROKER_URL", "")
METALAKE_AUTHENTICATORS = tuple(env.list("METALAKE_AUTHENTICATORS", default=["basic", "token"]))
METALAKE_AUTHORIZATION = env.str("METALAKE_AUTHORIZATION", "on")
METALAKE_SERVICE_ADMINS = frozenset(env.list("METALAKE_SERVICE_ADMINS", default=["admin"]))
METALAKE_SEPARATOR_POLICY = env.str("METALAKE_SEPARATOR_POLICY", "restricted")
METALAKE_SCHEMA_SEPARATOR = env.str("METALAKE_SCHEMA_SEPARATOR", ":")
METALAKE_OAUTH_AUDIENCE = tuple(env.list("METALAKE_OAUTH_AUDIENCE", default=[]))
METALAKE_OAUTH_USER_CLAIM = env.str("METALAKE_OAUTH_USER_CLAIM", "sub")
METALAKE_OAUTH_GROUPS_CLAIM = env.str("METALAKE_OAUTH_GROUPS_CLAIM", "groups")
METALAKE_FILE_LOCATIONS = tuple(env.list("METALAKE_FILE_LOCATIONS", default=[]))
METALAKE_WAREHOUSE = env.str("METALAKE_WAREHOUSE", "")  # else `warehouse` in the data folder
METALAKE_SHARED_SYSTEMS = tuple(env.list("METALAKE_SHARED_SYSTEMS", default=[]))
METALAKE_EVENT_LOG = env.str("METALAKE_EVENT_LOG", "")
METALAKE_JOB_PATHS = tuple(env.list("METALAKE_JOB_PATHS", default=[]))
METALAKE_JOB_ENVIRONMENT = tuple(env.list("METALAKE_JOB_ENVIRONMENT", default=[]))
METALAKE_JOB_URL = env.str("METALAKE_JOB_URL", "")  # where jobs reach the server
METALAKE_JOBS = env.int("METALAKE_JOBS", 2)  # concurrent runs of a server or a worker
_OF_ONE = 0 if METALAKE_BROKER_URL else max(1, METALAKE_JOBS - 1)
METALAKE_JOBS_PER_METALAKE = max(0, env.int("METALAKE_JOBS_PER_METALAKE", _OF_ONE))  # on all nodes; 0: no limit
METALAKE_JOB_MEMORY = env.int("METALAKE_JOB_MEMORY", 4 * 1024 * 1024 * 1024)  # of all processes of a run
METALAKE_JOB_LOG = env.int("METALAKE_JOB_LOG", 1024 * 1024)  # bytes of a run's output that are kept
METALAKE_JOB_DAYS = env.int("METALAKE_JOB_DAYS", 30)  # retention of finished runs
METALAKE_SPARK_SUBMIT = env.str("METALAKE_SPARK_SUBMIT", "")
METALAKE_SPARK_JARS = tuple(env.list("METALAKE_SPARK_JARS", default=[]))  # of built-in jobs, Iceberg's runtime
METALAKE_SPARK_MASTER = env.str("METALAKE_SPARK_MASTER", "local[*]")
METALAKE_SPOOL = env.str("METALAKE_SPOOL", "")  # a folder that built-in jobs share with executors elsewhere
METALAKE_KEY_FILE = env.str("METALAKE_KEY_FILE", "")  # with which they open secrets (pipelines/sealed_secrets.py)
METALAKE_LISTENERS = tuple(env.list("METALAKE_LISTENERS", default=[]))
METALAKE_PROVIDERS = env.dict("METALAKE_PROVIDERS", default={})  # additional ones, name=module:Class
METALAKE_MAX_BODY = env.int("METALAKE_MAX_BODY", 2 * 1024 * 1024)
METALAKE_MAX_COMMIT_BODY = env.int("METALAKE_MAX_COMMIT_BODY", 16 * 1024 * 1024)
METALAKE_MAX_PLAN_BODY = env.int("METALAKE_MAX_PLAN_BODY", 10 * 1024 * 1024)
METALAKE_MAX_PLAN_FORM = METALAKE_MAX_PLAN_BODY * 3 // 2  # so that a page can say that a file is too large
METALAKE_MAX_BODY_VALUES = env.int("METALAKE_MAX_BODY_VALUES", 200_000)
METALAKE_MAX_PLAN_VALUES = env.int("METALAKE_MAX_PLAN_VALUES", 250_000)
METALAKE_MAX_ANSWER = env.int("METALAKE_MAX_ANSWER", 16 * 1024 * 1024)  # bytes from a metastore, Glue, STS, S3 lists
METALAKE_METRICS_TOKEN = env.str("METALAKE_METRICS_TOKEN", "")
METALAKE_MIN_FREE = env.int("METALAKE_MIN_FREE", 256 * 1024 * 1024)
METALAKE_USE_DAYS = max(0, env.int("METALAKE_USE_DAYS", 90))  # retention of the usage record; 0: none is written
METALAKE_METADATA_CACHE = env.int("METALAKE_METADATA_CACHE", METALAKE_PROCESSES * 32 * 1024 * 1024)  # of all processes


def refuse(message: str) -> None:
    raise ImproperlyConfigured(message)


@contextmanager
def checking(setting: str) -> Iterator[None]:
    """Turn Invalid into ImproperlyConfigured naming the setting."""
    try:
        yield
    except Invalid as bad:
        refuse(f"{setting}: {bad.message.rstrip('.')}.")


if METALAKE_WORKERS < 1:
    refuse("METALAKE_WORKERS is how many processes the server has, 1 or more; 0 is one for each processor.")


def seconds(name: str, default: float, least: float = 0.001) -> float:
    """A setting in seconds. Raises ImproperlyConfigured unless it is a number from `least` to a million."""
    try:
        given = env.float(name, default)
    except ValueError:
        given = 0.0
    if not least <= given <= 1_000_000:
        refuse(f"{name} is a number of seconds, {least:g} at least.")
    return given


METALAKE_JOB_TIMEOUT = seconds("METALAKE_JOB_TIMEOUT", 24 * 3600, least=1)  # for one run
METALAKE_SQL_TIMEOUT = seconds("METALAKE_SQL_TIMEOUT", 4)  # for parsing the SQL of one view, in all its dialects

with checking("METALAKE_SCHEMA_SEPARATOR"):
    check_separator(METALAKE_SCHEMA_SEPARATOR, METALAKE_SEPARATOR_POLICY)
METALAKE_SEPARATOR_POLICY = SeparatorPolicy(METALAKE_SEPARATOR_POLICY)

LOOPBACK = ["127.0.0.0/8", "::1"] if is_loopback(METALAKE_HOST) else []  # a server on loopback connects there
METALAKE_REMOTE_ALLOW = tuple(env.list("METALAKE_REMOTE_ALLOW", default=LOOPBACK))
METALAKE_OWN_IDENTITY = tuple(env.list("METALAKE_OWN_IDENTITY", default=[]))  # what may use the server's cloud identity
with checking("METALAKE_REMOTE_ALLOW"):
    parse_allowed(METALAKE_REMOTE_ALLOW)
with checking("METALAKE_OWN_IDENTITY"):
    parse_identity(METALAKE_OWN_IDENTITY)


def warehouse(given: str) -> str:
    """The URL of the catalogs' default warehouse; "" is the one in the data folder."""
    if not given:
        return ""
    try:
        place = normalise(given)
    except Invalid as bad:
        refuse(f"METALAKE_WAREHOUSE: {bad.message.rstrip('.')}. Write a folder's path from / on, or s3://bucket/path.")
    home = METALAKE_HOME.resolve()
    if is_under(place, f"file://{home}") and not is_under(place, f"file://{home}/warehouse"):
        refuse(f"METALAKE_WAREHOUSE: in the data folder it can only be {home}/warehouse or lie below that.")
    return place


METALAKE_WAREHOUSE = warehouse(METALAKE_WAREHOUSE)

if min(METALAKE_JOBS, METALAKE_JOB_DAYS - 1, METALAKE_JOB_MEMORY - (1 << 20), METALAKE_JOB_LOG - (1 << 12)) < 0:
    refuse("METALAKE_JOBS is 0 or more, METALAKE_JOB_DAYS 1; METALAKE_JOB_MEMORY and METALAKE_JOB_LOG are bytes.")
with checking("METALAKE_JOB_PATHS"):
    require_apart(METALAKE_JOB_PATHS, [METALAKE_HOME, *METALAKE_FILE_LOCATIONS, METALAKE_WAREHOUSE])

if METALAKE_METRICS_TOKEN and len(METALAKE_METRICS_TOKEN) < 20:
    refuse("METALAKE_METRICS_TOKEN must have 20 characters or more: openssl rand -hex 20 makes one.")

with checking("METALAKE_PATH_PREFIX"):
    METALAKE_PATH_PREFIX = parse_prefix(env.str("METALAKE_PATH_PREFIX", ""))
METALAKE_PUBLIC_URL = env.str("METALAKE_PUBLIC_URL", "").rstrip("/")
if METALAKE_PUBLIC_URL and not re.fullmatch(r"https?://[A-Za-z0-9.:\[\]-]+", METALAKE_PUBLIC_URL):
    refuse("METALAKE_PUBLIC_URL is how browsers reach this server, without a path: https://lake.example.com.")
with checking("METALAKE_TRUSTED_PROXIES"):
    METALAKE_TRUSTED_PROXIES = parse_proxies(env.list("METALAKE_TRUSTED_PROXIES", default=[]))

if odd := [system for system in METALAKE_SHARED_SYSTEMS if "://" not in system]:
    refuse(f"METALAKE_SHARED_SYSTEMS: write thrift://host:port or glue://account/region instead of {odd[0]!r}.")

KNOWN_AUTHENTICATORS = {"basic", "token", "oauth", "simple"}
if unknown := set(METALAKE_AUTHENTICATORS) - KNOWN_AUTHENTICATORS:
    refuse(f"METALAKE_AUTHENTICATORS names {sorted(unknown)}; known are {sorted(KNOWN_AUTHENTICATORS)}.")
if "simple" in METALAKE_AUTHENTICATORS and not is_loopback(METALAKE_HOST):
    refuse("METALAKE_AUTHENTICATORS=simple believes any name it is told, so METALAKE_HOST must be a loopback address.")
if {"simple", "basic"} <= set(METALAKE_AUTHENTICATORS):
    refuse("METALAKE_AUTHENTICATORS: simple and basic read the same header; choose one of them.")
if METALAKE_AUTHORIZATION not in ("on", "off"):
    refuse("METALAKE_AUTHORIZATION is 'on' or 'off'.")
if METALAKE_AUTHORIZATION == "off" and not is_loopback(METALAKE_HOST):
    refuse("METALAKE_AUTHORIZATION=off is for benchmarks on a loopback address only.")


def pinned_issuers(issuers: list[str], jwks: list[str]) -> dict[str, str]:
    """The trusted issuers, each with its JWKS: a URL, a file, or "" for the one that the issuer publishes."""
    if not issuers or not METALAKE_OAUTH_AUDIENCE:
        refuse(
            "METALAKE_AUTHENTICATORS=oauth needs METALAKE_OAUTH_ISSUER, whose tokens are believed, "
            "and METALAKE_OAUTH_AUDIENCE, which names this server in them."
        )
    if jwks and len(jwks) != len(issuers):
        refuse("METALAKE_OAUTH_JWKS names one JWKS for each issuer of METALAKE_OAUTH_ISSUER, in their order, or none.")
    pinned = dict(zip(issuers, jwks or [""] * len(issuers), strict=True))
    for issuer, source in pinned.items():
        if source and "://" not in source:
            if not Path(source).is_file():
                refuse(f"METALAKE_OAUTH_JWKS: there is no file {source}.")
        elif not is_private(source or issuer):
            setting = "METALAKE_OAUTH_JWKS" if source else "METALAKE_OAUTH_ISSUER"
            refuse(f"{setting}: {source or issuer} must begin with https; http is for loopback addresses only.")
    return pinned


METALAKE_OAUTH_ISSUERS = (
    pinned_issuers(env.list("METALAKE_OAUTH_ISSUER", default=[]), env.list("METALAKE_OAUTH_JWKS", default=[]))
    if "oauth" in METALAKE_AUTHENTICATORS
    else {}
)


def secret_key() -> str:
    """The key of this installation, generated once and stored with its data."""
    if given := env.str("METALAKE_SECRET_KEY", ""):
        return given
    path = METALAKE_HOME / "secret_key"
    if not path.exists():
        draft = path.with_name(f"secret_key.{secrets.token_hex(4)}")
        draft.touch(mode=0o600)
        with draft.open("w") as stream:
            stream.write(secrets.token_urlsafe(48))
            stream.flush()
            os.fsync(stream.fileno())  # an empty key after a power cut would keep the server from starting
        try:
            path.hardlink_to(draft)  # the first of two starting processes wins
        except FileExistsError:
            pass
        draft.unlink()
    return path.read_text()


METALAKE_HOME.mkdir(mode=0o700, parents=True, exist_ok=True)  # only the server's own account may read it
SECRET_KEY = secret_key()
if env.str("METALAKE_SECRET_KEYS_FILE", "") and not METALAKE_SECRET_KEYS_FILE.is_file():
    refuse(f"METALAKE_SECRET_KEYS_FILE: there is no file {METALAKE_SECRET_KEYS_FILE}.")
DEBUG = env.bool("METALAKE_DEBUG", False)


def hosts(given: list[str]) -> list[str]:
    """The allowed host names; by default those of this machine."""
    if not given:
        return sorted({"127.0.0.1", "localhost", "[::1]", in_url(METALAKE_HOST)} - {"", "0.0.0.0", "[::]"})  # noqa: S104
    names = [name.strip() for name in given]
    for name in names:
        bare = name.removeprefix(".").strip("[]")
        if name != "*" and not (is_address(bare) or (":" not in bare and split_domain_port(bare)[0])):
            refuse(f"METALAKE_ALLOWED_HOSTS: {name!r} is no name or address; write it without scheme, port and path.")
    return [in_url(name.strip("[]")) for name in names]


ALLOWED_HOSTS = hosts(env.list("METALAKE_ALLOWED_HOSTS", default=[]))
if "simple" in METALAKE_AUTHENTICATORS and "*" in ALLOWED_HOSTS:
    refuse(
        "METALAKE_AUTHENTICATORS=simple believes any name it is told, so METALAKE_ALLOWED_HOSTS must list the names of "
        "this server: with * every web page that somebody here opens could act as anybody."
    )
CSRF_TRUSTED_ORIGINS = env.list("METALAKE_CSRF_TRUSTED_ORIGINS", default=[])

INSTALLED_APPS = [
    *LIBRARY_APPS,
    "metalake",
    "server",
    "authz",
    "access",
    "catalogs",
    "outside",
    "views_mgmt",
    "jobs",
    "iceberg_rest",
    "frontend",
]

DATABASES = {
    "default": env.db_url_config(
        env.str("METALAKE_DATABASE_URL", "") or f"sqlite:///{METALAKE_HOME / 'metalake.sqlite3'}"
    )
}
_default = DATABASES["default"]


def keep_private(store: Path) -> None:
    """Make a SQLite store and its companion files readable only by the server's account.

    SQLite gives those files the store's mode, so a new store is created here, before it is opened. Files of another
    account are left unchanged, and `serve` warns about them.
    """
    with suppress(OSError):
        os.close(os.open(store, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    for path in (store, *(store.with_name(store.name + ending) for ending in BESIDE_THE_STORE)):
        with suppress(OSError):
            if path.stat().st_mode & 0o077:
                path.chmod(0o600)


_default["CONN_MAX_AGE"] = None
_default["CONN_HEALTH_CHECKS"] = True
ON_SQLITE = _default["ENGINE"] == "django.db.backends.sqlite3"
METALAKE_READ_THREADS = METALAKE_READ_THREADS or (2 if ON_SQLITE else 4)
METALAKE_LIMITS = timeouts.Limits(
    lock=seconds("METALAKE_LOCK_TIMEOUT", 20 if ON_SQLITE else 10),
    statement=seconds("METALAKE_STATEMENT_TIMEOUT", 60),
    idle=seconds("METALAKE_IDLE_TIMEOUT", 30),
    silence=round(seconds("METALAKE_SILENCE_TIMEOUT", 30, least=3)),
    connect=round(seconds("METALAKE_CONNECT_TIMEOUT", 5, least=2)),
)
if ON_SQLITE:
    _default["ENGINE"] = "metalake.sqlite"
    if ":memory:" not in _default["NAME"]:
        keep_private(Path(_default["NAME"]))
    _default["OPTIONS"] = timeouts.on_sqlite(METALAKE_LIMITS)
    if METALAKE_BROKER_URL:
        refuse(
            "SQLite serves the processes of one server and short commands. A broker, a worker or a second server "
            "needs PostgreSQL: set METALAKE_DATABASE_URL=postgres://user:password@host/database."
        )
elif _default["ENGINE"] == "django.db.backends.postgresql":
    _default["OPTIONS"] = timeouts.on_postgresql(METALAKE_LIMITS, _default.get("OPTIONS", {}))
else:
    refuse("METALAKE_DATABASE_URL must be sqlite:///path or postgres://user:password@host:port/database.")
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "authz.User"
AUTHENTICATION_BACKENDS = ["authz.passwords.PasswordBackend", "authz.backends.PolicyBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
GUARDIAN_GROUP_OBJ_PERMS_MODEL = "authz.Grant"
GUARDIAN_GET_CONTENT_TYPE = "authz.guardian_adapter.permissions.content_type_of"
ANONYMOUS_USER_NAME = None
SESSION_ENGINE = "authz.sessions"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = env.bool("METALAKE_HTTPS", False)
DATA_UPLOAD_MAX_MEMORY_SIZE = max(METALAKE_MAX_BODY, METALAKE_MAX_COMMIT_BODY, METALAKE_MAX_PLAN_FORM)

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True
FORCE_SCRIPT_NAME = METALAKE_PATH_PREFIX or None  # the prefix of the URLs that Django generates
STATIC_URL = f"{METALAKE_PATH_PREFIX}/static/"
SPECTACULAR_SETTINGS["SERVERS"] = [{"url": METALAKE_PATH_PREFIX}] if METALAKE_PATH_PREFIX else []
STATIC_ROOT = METALAKE_HOME / "static"
STATIC_ROOT.mkdir(parents=True, exist_ok=True)  # whitenoise expects it at start; server.static_files fills it

CELERY_BROKER_URL = METALAKE_BROKER_URL or "memory://localhost"
CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_connect_timeout": 3, "socket_timeout": 3}  # seconds
CELERY_TASK_ALWAYS_EAGER = CELERY_TASK_EAGER_PROPAGATES = not METALAKE_BROKER_URL  # without one, callers run tasks
UNFOLD = {"SITE_TITLE": "Metalake", "SITE_HEADER": "Metalake operators", "SHOW_VIEW_ON_SITE": False}
UNFOLD["SITE_URL"] = f"{METALAKE_PATH_PREFIX}/"
UNFOLD |= {"DASHBOARD_CALLBACK": "server.operators.start", "SIDEBAR": {"navigation": "server.operators.navigation"}}
UNFOLD["COLORS"] = {"primary": ADMIN_TEAL}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"()": "metalake.logs.formatter"}},
    "filters": {"unforeseen": {"()": "metalake.logs.unforeseen"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": env.str("METALAKE_LOG_LEVEL", "INFO")},
    "loggers": {
        "django.request": {"level": "ERROR", "filters": ["unforeseen"]},
        "django.security": {"level": "ERROR"},
        "celery.app.trace": {"level": "INFO" if METALAKE_BROKER_URL else "WARNING"},  # tasks that requests run
        "pyiceberg": {"level": "WARNING"},
        "botocore": {"level": "WARNING"},
        "botocore.credentials": {"level": "CRITICAL"},  # its errors are also those of the failed call
    },
}
