"""What a run's token may not do, since the effect would outlive the run (docs/authorization.md, rule 14)."""

from __future__ import annotations

from authz.actor import Actor
from metalake.errors import Forbidden


def require_person(actor: Actor, act: str) -> None:
    """Raise Forbidden if the caller uses a run's token; `act` completes "A run ...": "starts no other runs"."""
    if actor.within is not None:
        raise Forbidden(f"A run {act}: that is for {actor.name}, with a password or a token of their own.")
