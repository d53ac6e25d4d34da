"""Django's SQLite backend with a fair write queue (`base` is the module name that Django expects)."""
