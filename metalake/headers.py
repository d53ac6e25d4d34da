"""What a browser may do with an answer: the headers of everything, and the policies of pages."""

from __future__ import annotations

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
