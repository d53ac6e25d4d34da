"""Names on servers that several tests use."""

from uuid import uuid4


def own_name(what: str) -> str:
    """A name that nobody else has, `what` and some random letters.

    For whatever a fixture makes on a server that others use too: one of a module is made again when a test of it is
    run by another worker, or between those of other files.
    """
    return f"{what}_{uuid4().hex[:8]}"
