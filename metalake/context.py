"""What one request carries along without passing it by hand: its id, for logs, events and audit rows; its address."""

import contextvars

request_id: contextvars.ContextVar[str] = contextvars.ContextVar("request_id", default="")

# Where failed sign-ins are counted (metalake.addresses.client_of); "" outside of requests.
address: contextvars.ContextVar[str] = contextvars.ContextVar("address", default="")
