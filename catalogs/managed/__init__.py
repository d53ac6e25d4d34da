"""The managed stores: rows of our own database, written in one transaction."""
