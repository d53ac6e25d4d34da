import os

from django.core import signals
from django.core.cache import close_caches
from django.core.wsgi import get_wsgi_application
from django.db import reset_queries

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "metalake.settings")
application = get_wsgi_application()

# There is no cache and no query log, so requests need not clean them up.
signals.request_finished.disconnect(close_caches)
signals.request_started.disconnect(reset_queries)
