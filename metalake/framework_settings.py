"""Settings of Django, Django REST framework and Celery that no deployment changes; metalake.settings imports them."""

LIBRARY_APPS = [
    "unfold",
    "unfold.contrib.filters",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_celery_beat",
    "django_htmx",
    "guardian",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
]

MIDDLEWARE = ["server.middleware.Wire", "server.middleware.PagesOnly"]
PAGE_MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.middleware.gzip.GZipMiddleware",  # with random padding against BREACH
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "server.middleware.ContentSecurity",
    "django_htmx.middleware.HtmxMiddleware",
    "frontend.error_pages.WithoutMethod",
]
# PagesOnly gives the admin its middleware; our PolicyBackend replaces guardian's, which has no DENY.
SILENCED_SYSTEM_CHECKS = ["admin.E408", "admin.E409", "admin.E410", "guardian.W001"]

ROOT_URLCONF = "metalake.urls"
WSGI_APPLICATION = "metalake.wsgi.application"
APPEND_SLASH = False
LOGIN_URL = "frontend:login"
LOGIN_REDIRECT_URL = "frontend:home"
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_HTTPONLY = True
X_FRAME_OPTIONS = "DENY"
CSRF_FAILURE_VIEW = "frontend.error_pages.form_refused"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            "builtins": ["frontend.templatetags.ui"],
        },
    }
]

STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}

REST_FRAMEWORK = {
    # In the order of authz.callers.identity.WAYS, which Iceberg REST uses.
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "authz.authentication.IssuerAuthentication",
        "authz.authentication.TokenAuthentication",
        "authz.authentication.SimpleAuthentication",
        "authz.authentication.BasicAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["catalogs.permissions.OperationPermission"],
    "UNAUTHENTICATED_USER": None,
    "DEFAULT_RENDERER_CLASSES": ["metalake.rest.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["metalake.rest.parsers.JSONParser"],
    "EXCEPTION_HANDLER": "metalake.rest.exceptions.render_error",
    "DEFAULT_SCHEMA_CLASS": "server.openapi.NativeSchema",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Metalake",
    "DESCRIPTION": "The governed metadata catalog of the open lakehouse: the native API.",
    "VERSION": "1.3.1",
    "OAS_VERSION": "3.1.1",
    "PREPROCESSING_HOOKS": ["server.openapi.one_path_each"],
    "POSTPROCESSING_HOOKS": [],
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SERVE_AUTHENTICATION": [],  # the description is public
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SCHEMA_PATH_PREFIX": "/api",
}

CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = False  # messages only wake the worker; late acks can stop a disconnected worker
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1  # so that no task waits behind a slow call
CELERY_BEAT_SCHEDULER = "django_celery_beat.schedulers:DatabaseScheduler"
CELERY_BEAT_SCHEDULE = {
    "drain the outbox": {"task": "metalake.drain_outbox", "schedule": 5.0, "options": {"expires": 10.0}},
    "do what is due every round": {"task": "metalake.do_round", "schedule": 15.0, "options": {"expires": 30.0}},
}
DJANGO_CELERY_BEAT_TZ_AWARE = True

ADMIN_TEAL = {
    "50": "#f0f8f8", "100": "#e1f1f1", "200": "#c3e3e3", "300": "#9bd3d3", "400": "#74cacb", "500": "#2f9a9d",
    "600": "#0d6569", "700": "#0a585b", "800": "#084e51", "900": "#0a3c3f", "950": "#0a2527",
}  # fmt: skip
"""The accent of the pages (tokens.css) in the steps of the admin's theme."""
