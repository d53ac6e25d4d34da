"""`gcli token`: personal tokens."""

from __future__ import annotations

import typer

from metalake_client.cli.commands import YES, add, family, option
from metalake_client.cli.output import print_done, print_object, print_rows
from metalake_client.cli.session import Session
from metalake_client.failures import Exit, Failure

EXPIRES = option("expires", str | None, default=None, help="When it ends, as in 2027-01-01T00:00:00Z.")
FOR_USER = option("for_user", str | None, default=None, help="Another user, whom you administer.")

ID = option("id", str, help="Its id or its name, as gcli token list shows them.")


def add_to(app: typer.Typer) -> None:
    tokens = family(app, "token", "Personal tokens, for programs.")
    name = option("name", str, help="What it is for.")
    add(tokens, "list", list_tokens, help="List your tokens, without their secrets.", in_metalake=False)
    made = [name, EXPIRES, FOR_USER]
    add(tokens, "create", create, made, help="Make a token; its secret is shown once.", in_metalake=False)
    add(tokens, "drop", drop, [ID, YES], help="Revoke a token.", in_metalake=False)


def list_tokens(session: Session) -> None:
    rows = session.client.get("tokens")["tokens"]
    print_rows(rows, ("id", "name", "createdAt", "expiresAt", "lastUsedAt"), session.output)


def create(session: Session, name: str, expires: str | None, for_user: str | None) -> None:
    given = {"name": name, "expiresAt": expires, "user": for_user}
    body = {key: value for key, value in given.items() if value is not None}
    print_object(session.client.call("POST", "tokens", body=body)["token"], session.output)
    print_done("Keep the secret now: it is not shown again. METALAKE_TOKEN takes it.")


def drop(session: Session, id: str, yes: bool) -> None:
    rows = session.client.get("tokens")["tokens"]
    known = {str(each[key]): each for key in ("name", "id") for each in rows}  # an id wins over a name of digits
    if id not in known:
        raise Failure(f"You have no token {id}. See gcli token list.", Exit.MISSING)
    session.confirm(f"Revoke token {id}?", yes)
    session.client.call("DELETE", "tokens", str(known[id]["id"]))
    print_done(f"Revoked token {known[id]['name']}.")
