import os

from django.core import signals
from django.core.cache import close_caches
from django.core.wsgi import get_wsgi_application
from django.db import reset_queries

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "metalake.settings")
application = get_wsgi_application()

# Without a cache and a query log, requests have none to clean up.
signals.request_finished.disconnect(close_caches)
signals.request_started.disconnect(reset_queries)
