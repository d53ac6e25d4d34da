"""What one request carries along without passing it by hand: its id, for logs, events and audit rows."""

import contextvars

request_id: contextvars.ContextVar[str] = contextvars.ContextVar("request_id", default="")
