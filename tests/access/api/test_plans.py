"""Plans by their two doors: the wire, and the command `access`."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from access.plans import plan_file
from access.plans.export import export
from authz.models import Plan
from authz.services import owners
from metalake.kinds import Kind
from tests.authz.plan_files import FILE, PATH, state, wanted
from tests.authz.small_world import Wire, World

# The wire


def send(wire: Wire, path: str, body: str = "", method: str = "POST", user: str = "olga", **headers: str) -> Any:
    return wire.client.generic(
        method,
        f"/api/{path}",
        body,
        content_type=headers.pop("content_type", "application/yaml"),
        headers={"Authorization": wire.basic(user), **headers},
        RAW_URI=f"/api/{path.partition('?')[0]}",
        QUERY_STRING=path.partition("?")[2],
    )


def test_two_callers_over_the_wire(world: World, wire: Wire) -> None:
    text = plan_file.as_yaml(wanted(*FILE[:1]))
    answer = send(wire, f"{PATH}/plan", text)
    assert answer.status_code == 200, answer.content
    planned = answer.json()["plan"]
    assert planned["changes"][1] == {
        "change": "grant",
        "role": "analyst",
        "privilege": "use_catalog",
        "condition": "allow",
        "on": {"type": "catalog", "fullName": "lake"},
    }
    assert planned["changes"][-1] == {"change": "assign", "role": "analyst", "user": "mia"}
    assert {"privilege": "select_table", "type": "table"}.items() <= planned["blastRadius"][0].items()
    assert planned["blastRadius"][0]["gain"] == {"users": 1, "objects": 1, "names": ["mia"]}
    assert (planned["atLeast"], planned["scheduled"]) == (False, 0)
    assert planned["token"] not in str(list(Plan.objects.values()))

    status, reply = wire("POST", f"{PATH}/apply", {"token": planned["token"]}, user="mia")
    assert (status, reply["type"]) == (404, "NotFoundException")
    status, reply = wire("POST", f"{PATH}/apply", {"token": planned["token"]})
    assert (status, reply["code"], reply["applied"]["changes"]) == (200, 0, planned["changes"])
    status, reply = wire("POST", f"{PATH}/apply", {"token": planned["token"]})
    assert (status, reply["code"], reply["type"]) == (409, 1012, "OptimisticLockException")
    status, reply = wire("POST", f"{PATH}/apply", {})
    assert (status, reply) == (200, {"code": 0, "applied": {"changes": []}})
    status, reply = wire("POST", f"{PATH}/plan", json.loads(json.dumps(plan_file.as_data(wanted(*FILE[:1])))))
    assert (status, reply["plan"]["changes"], "token" in reply["plan"]) == (200, [], False)
    for path, body in (("plan", {"metalake": "acme", "roles": []}), ("apply", {})):
        status, reply = wire("POST", f"{PATH}/{path}", body, user="sam")
        assert (status, reply["type"]) == (404, "NoSuchMetalakeException")


def test_exports_over_the_wire(filled: World, wire: Wire) -> None:
    answer = send(wire, f"{PATH}/export", method="GET", Accept="application/yaml")
    assert answer.headers["Content-Type"] == "application/yaml; charset=utf-8"
    assert answer.content.decode() == plan_file.as_yaml(export(filled.olga, "acme"))
    answer = send(wire, f"{PATH}/plan", answer.content.decode())
    assert answer.json()["plan"]["changes"] == []
    answer = send(wire, f"{PATH}/export?type=schema&fullName=lake.A", method="GET")
    assert answer.json()["access"]["subtree"] == {"type": "schema", "fullName": "lake.A"}
    assert send(wire, f"{PATH}/plan", json.dumps(answer.json()["access"])).json()["plan"]["changes"] == []
    assert send(wire, f"{PATH}/export?type=schema", method="GET").status_code == 400
    assert send(wire, f"{PATH}/export?type=schema&fullName=lake.Z", method="GET").status_code == 404
    assert send(wire, f"{PATH}/export", method="GET", user="mia").status_code == 403
    refused = send(wire, f"{PATH}/plan", "metalake: acme", content_type="text/plain")
    assert (refused.status_code, "Content-Type" in refused.json()["message"]) == (400, True)


# The command


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command("access", *arguments, stdout=out)
    return out.getvalue()


def test_the_command(filled: World, tmp_path: Path) -> None:
    file = tmp_path / "access.yaml"
    run("export", "acme", str(file))
    assert file.read_text() == run("export", "acme") == run("export", "acme", "--as", "olga")
    assert run("drift", "acme", str(file)) == "Nothing differs.\n"
    assert run("export", "acme", "--subtree", "schema:lake.A").startswith("metalake: acme\nsubtree: {")
    file.write_text(file.read_text().replace("modify_table", "select_table"))
    shown = run("plan", "acme", str(file))
    assert "  role r1\n-   deny modify_table on schema lake.A\n+   deny select_table on schema lake.A\n" in shown
    assert shown.endswith(f"To make it so: manage.py access apply acme {file}\n")
    with pytest.raises(SystemExit) as code:
        run("drift", "acme", str(file))
    assert code.value.code == 1
    before = state()[:4]
    with pytest.raises(CommandError, match="--yes"):
        run("apply", "acme", str(file))
    assert state()[:4] == before
    assert run("apply", "acme", str(file), "--yes").endswith("Done: 2 changes.\n")
    assert run("drift", "acme", str(file)) == "Nothing differs.\n"
    assert run("apply", "acme", str(file), "--yes") == "Nothing differs.\n"


def test_the_command_makes_just_the_changes_of_a_file(world: World, tmp_path: Path) -> None:
    world.give("nils", "use_catalog@lake")
    file = tmp_path / "changes.yaml"
    file.write_text(
        "changes:\n- {change: createRole, role: reader}\n- {change: assign, role: reader, user: mia}\n"
        "- change: grant\n  role: reader\n  privilege: use_catalog\n  condition: allow\n"
        "  on: {type: catalog, fullName: lake}\n"
    )
    shown = run("plan", "acme", str(file))
    assert "  role reader\n+   the role itself\n+   allow use_catalog on catalog lake\n+   held by user mia\n" in shown
    assert run("apply", "acme", str(file), "--yes").endswith("Done: 3 changes.\n")
    assert world.role("r1") == {"lake": ["allow use_catalog"]}
    with pytest.raises(CommandError, match=r"changes\[0\]: Role reader already exists"):
        run("drift", "acme", str(file))
    file.write_text("changes: [{change: fly, role: r}]")
    with pytest.raises(CommandError, match=r"changes.yaml: changes\[0\]\.change: must be"):
        run("plan", "acme", str(file))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("plan", "acme"), "Name the file"),
        (("plan", "acme", "nowhere.yaml"), "nowhere.yaml cannot be read: No such file"),
        (("export", "globex"), "Metalake globex does not exist"),
        (("export", "acme", "--as", "ghost"), "There is no enabled account ghost"),
        (("export", "acme", "--as", "sam"), "Metalake acme does not exist"),
        (("export", "acme", "--as", "mia"), "mia may not"),
        (("export", "acme", "--subtree", "lake"), "is no object type"),
        (("export", "acme", "/nowhere/file"), "cannot be written"),
        (("plan", "acme", "x", "--subtree", "catalog:lake"), "--subtree is for export"),
    ],
)
def test_the_command_says_what_is_wrong(world: World, arguments: tuple[str, ...], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        run(*arguments)


@pytest.mark.store
def test_the_command_needs_a_user_where_a_group_owns(world: World, tmp_path: Path) -> None:
    world.group("crew", "olga")
    owners.set_owner(world.olga, "acme", Kind.METALAKE, "acme", "crew", "group")
    with pytest.raises(CommandError, match="A group owns metalake acme: say who asks with --as USER"):
        run("export", "acme")
    (tmp_path / "f.yaml").write_text("metalake: ]")
    with pytest.raises(CommandError, match=r"f.yaml: Not YAML: .* \(line 1, column 11\)"):
        run("plan", "acme", str(tmp_path / "f.yaml"), "--as", "olga")
