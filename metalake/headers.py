"""What browsers and caches may do with an answer: the headers of everything, and the policies of pages."""

from __future__ import annotations

BY_CALLER = "Authorization, X-Iceberg-Access-Delegation, X-Gravitino-Active-Roles"
"""The fields of a request that any answer of a wire may depend on (Vary)."""

ASKED_EACH_TIME = "private, no-cache"
NEVER_STORED = "no-store"


def caching(method: str | None, status: int) -> str:
    """Cache-Control of a wire's answer (RFC 9111): only the caller's own client may store it, and asks each time
    whether it still holds. What was written, which may hold a new secret, refusals and failures are never stored.
    """
    stored = method in ("GET", "HEAD") and status not in (401, 403) and status < 500
    return ASKED_EACH_TIME if stored else NEVER_STORED


HARMLESS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""A browser may run nothing from answers that are no pages of ours; pages set a policy of their own."""

PAGES = (
    "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; form-action 'self'; base-uri 'none'; "
    "object-src 'none'"
)
"""Pages run our own scripts and styles from files only."""

ADMIN = f"{PAGES}; style-src 'self' 'unsafe-inline'; script-src 'self' 'unsafe-inline' 'unsafe-eval'"
"""The operators' pages: their theme has inline styles and scripts, which evaluate expressions."""
