"""The managed store: views that are rows of our own database, with nothing elsewhere."""
