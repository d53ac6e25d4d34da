"""Caching and security headers of all responses, and the content security policies of pages."""

from __future__ import annotations

BY_CALLER = "Authorization, X-Iceberg-Access-Delegation, X-Gravitino-Active-Roles"
"""The request headers that any response of a wire may depend on (Vary)."""

REVALIDATED = "private, no-cache"
NEVER_STORED = "no-store"


def caching(method: str | None, status: int) -> str:
    """Cache-Control of a wire's response (RFC 9111): only the caller's own client may store it, and must revalidate.

    Responses to writes, which may hold a new secret, refusals and failures are never stored.
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
"""Browsers may run nothing from responses other than our pages, which set a policy of their own."""

PAGES = (
    "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; form-action 'self'; base-uri 'none'; "
    "object-src 'none'"
)
"""Pages run our own scripts and styles from files only."""

ADMIN = f"{PAGES}; style-src 'self' 'unsafe-inline'; script-src 'self' 'unsafe-inline' 'unsafe-eval'"
"""The admin: its theme has inline styles and scripts that evaluate expressions."""
