"""Plans of changes that race, as races of tests.catalogs.races: with each other and with other changes of rights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.catalogs.racing import Answer, Client, Nodes

DEMO = "/api/metalakes/demo"
LAKE = {"type": "catalog", "fullName": "lake"}


def one_plan(nodes: Nodes, tag: str, clients: int = 6) -> list[str]:
    """All apply the same plan: it is applied once, and undone once."""
    token = _planned(nodes, "changes", {"changes": [{"change": "createRole", "role": tag}, _grant(tag)]})
    wrong = _once(nodes.race(*[_send("access/apply", {"token": token})] * clients), clients)
    undo = _planned(nodes, "undo", {"token": token})
    wrong += _once(nodes.race(*[_send("access/apply", {"token": undo})] * clients), clients)
    if nodes.ask("GET", f"{DEMO}/roles/{tag}").status != 404:
        wrong.append("the role that the plan made is still there")
    return wrong


def plan_among_others(nodes: Nodes, tag: str, others: int = 3) -> list[str]:
    """Others change rights elsewhere while a plan is applied: nobody is refused."""
    token = _planned(nodes, "changes", {"changes": [{"change": "createRole", "role": tag}, _grant(tag)]})
    roles = [_send("roles", {"name": f"{tag}-{n}"}) for n in range(others)]
    answers = nodes.race(_send("access/apply", {"token": token}), *roles)
    return [f"answered with {answer}" for answer in answers if answer.status != 200]


def plan_against_the_same(nodes: Nodes, tag: str) -> list[str]:
    """Somebody grants what the plan grants: it is so in the end, and the plan says if it was not the one."""
    nodes.made(f"{DEMO}/roles", {"name": tag})
    token = _planned(nodes, "changes", {"changes": [_grant(tag)]})
    path = f"permissions/roles/{tag}/catalog/lake/grant"
    by_hand = _send(path, {"privileges": [{"name": "use_schema", "condition": "allow"}]}, method="PUT")
    applied, granted = nodes.race(_send("access/apply", {"token": token}), by_hand)
    wrong = [] if granted.status == 200 else [f"the grant was answered with {granted}"]
    if applied.status != 200 and "There is no need any more to grant use_schema" not in applied.body["message"]:
        wrong.append(f"the plan was answered with {applied}")
    role = nodes.ask("GET", f"{DEMO}/roles/{tag}").body["role"]
    if [one["privileges"] for one in role["securableObjects"]] != [[{"name": "use_schema", "condition": "allow"}]]:
        wrong.append(f"the role is {role}")
    return wrong


RACES = (one_plan, plan_among_others, plan_against_the_same)


def _grant(role: str) -> dict[str, Any]:
    return {"change": "grant", "role": role, "privilege": "use_schema", "condition": "allow", "on": LAKE}


def _planned(nodes: Nodes, path: str, body: Any) -> str:
    return str(nodes.made(f"{DEMO}/access/{path}", body).body["plan"]["token"])


def _send(path: str, body: Any, method: str = "POST") -> Callable[[Client], Answer]:
    return lambda client: client.send(method, f"{DEMO}/{path}", body)


def _once(answers: list[Answer], clients: int) -> list[str]:
    statuses = Counter(answer.status for answer in answers)
    return [] if statuses == {200: 1, 409: clients - 1} else [f"answered with {statuses}"]
