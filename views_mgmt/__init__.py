"""SQL views: their versions and dialects, and the stores that keep them (docs/views.md)."""
