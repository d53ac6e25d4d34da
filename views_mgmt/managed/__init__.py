"""The managed store: views that exist only as rows of our database."""
