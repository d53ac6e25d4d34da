"""Caching and security headers of all responses, and the Content-Security-Policy of pages."""

from __future__ import annotations

BY_CALLER = "Authorization, X-Iceberg-Access-Delegation, X-Gravitino-Active-Roles"
"""The request headers that any API response may depend on (Vary)."""

REVALIDATED = "private, no-cache"
NEVER_STORED = "no-store"


def caching(method: str | None, status: int) -> str:
    """Cache-Control of an API response (RFC 9111): only the caller's own client may store it, and must revalidate.

    Responses to writes, which may contain a new secret, 401, 403 and 5xx are never stored.
    """
    stored = method in ("GET", "HEAD") and status not in (401, 403) and status < 500
    return REVALIDATED if stored else NEVER_STORED


HARMLESS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Browsers may execute nothing from responses other than our pages, which set their own policy."""

PAGES = (
    "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; form-action 'self'; base-uri 'none'; "
    "object-src 'none'"
)
"""Pages: only our own scripts and styles, from files."""

ADMIN = f"{PAGES}; style-src 'self' 'unsafe-inline'; script-src 'self' 'unsafe-inline' 'unsafe-eval'"
"""The admin: its theme has inline styles and scripts that evaluate expressions."""
