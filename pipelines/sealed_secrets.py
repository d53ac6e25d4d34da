"""Secrets for Spark's executors, encrypted in everything that Spark ships; the key is only in a file.

Spark may write what it ships to logs, plans, event logs and its UI; none of them has the file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from cryptography.fernet import Fernet, InvalidToken

from metalake_client.failures import Exit, Failure

KEY_FILE = "METALAKE_KEY_FILE"
NEEDED = (
    f"On executors of other machines, secrets are opened with a key that is there already: set {KEY_FILE} to a file "
    "that each of them has, made once by `python -m pipelines.sealed_secrets > FILE` and readable to the job alone."
)


@dataclass(frozen=True)
class Sealed:
    """Values encrypted with the key in a file; safe to pickle, print and log."""

    content: bytes
    key_file: str

    def open(self) -> dict[str, Any]:
        """Decrypt. Raises Failure if the key file is missing or has another key."""
        return _opened(self)


@cache
def _opened(sealed: Sealed) -> dict[str, Any]:
    try:
        values: dict[str, Any] = json.loads(_fernet(sealed.key_file).decrypt(sealed.content))
    except InvalidToken:
        raise Failure(f"The key in {sealed.key_file} is another than that of the driver.", Exit.USAGE) from None
    return values


@contextmanager
def sealed(values: dict[str, Any], *, is_local: bool) -> Iterator[Sealed]:
    """Encrypt values for the executors. Local mode without a key file uses a temporary one, deleted at the end.

    Raises Failure if the executors are remote and no key file is set.
    """
    given = os.environ.get(KEY_FILE)
    if not (given or is_local):
        raise Failure(NEEDED, Exit.USAGE)
    own = None if given else Path(mkdtemp(prefix="metalake-key-"), "key")  # mkdtemp makes the folder private
    try:
        if own is not None:
            own.write_bytes(Fernet.generate_key())
        path = str(own or given)
        yield Sealed(_fernet(path).encrypt(json.dumps(values).encode()), path)
    finally:
        if own is not None:
            own.unlink(missing_ok=True)
            own.parent.rmdir()


def _fernet(path: str) -> Fernet:
    try:
        return Fernet(Path(path).read_bytes().strip())
    except OSError:
        raise Failure(f"There is no key file {path} here. {NEEDED}", Exit.USAGE) from None
    except ValueError:
        raise Failure(f"What {path} holds is no key. {NEEDED}", Exit.USAGE) from None


if __name__ == "__main__":
    print(Fernet.generate_key().decode())
