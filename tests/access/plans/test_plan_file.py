"""Wrong files of grants: told with their place, and nothing is changed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from access.plans import plan, plan_file
from access.plans.desired import Wanted, WantedRole
from metalake.errors import Invalid, MetalakeError, TooLarge
from tests.authz.plan_files import PATH, on, role, state, subtree, wanted
from tests.authz.small_world import Wire, World
from tests.cases import each

PAST = "2001-01-01T00:00:00Z"
_WRONG: list[tuple[Any, str]] = [
    ({"metalake": "acme"}, "roles: is required"),
    ({"roles": []}, "metalake: is required"),
    ([], "body: must be an object"),
    ({"metalake": "acme", "roles": [], "rolez": []}, "body: unknown field 'rolez'"),
    ({"metalake": "globex", "roles": []}, "metalake: the file is about 'globex', not about acme"),
    ({"metalake": 7, "roles": []}, "metalake: "),
    ({"metalake": "acme", "roles": [{"grants": []}]}, "roles[0].name: is required"),
    ({"metalake": "acme", "roles": [role("r")], **subtree("galaxy", "lake")}, "subtree: 'galaxy' is no object type"),
    ({"metalake": "acme", "roles": [role("r")], **subtree("metalake", "acme")}, "subtree: A subtree is a catalog"),
    ({"metalake": "acme", "roles": [role("r")], **subtree("catalog", "pond")}, "subtree: Catalog pond does not exist"),
]
_WRONG_ROLES: list[tuple[list[Any], str]] = [
    ([role("r"), role("s", {"type": "schema", "allow": []})], "roles[1].grants[0].fullName: is required"),
    ([role("r", on("lake", "use_catalog") | {"alow": []})], "roles[0].grants[0]: unknown field 'alow'"),
    ([role("r", on("lake"))], "roles[0].grants[0]: Name at least one privilege"),
    ([role("r", on("lake", "fly"))], "roles[0].grants[0]: 'fly' is no privilege"),
    ([role("r", on("lake", 7))], "roles[0].grants[0].allow[0]"),
    ([role("r", on("lake", {"privilege": "use_catalog", "endTime": "soon"}))], "roles[0].grants[0].allow[0]"),
    (
        [role("r", on("lake.A", "use_catalog"))],
        "roles[0].grants[0]: Privilege use_catalog cannot be granted on a",
    ),
    ([role("r", on("lake", "use_catalog", deny=("use_catalog",)))], "roles[0].grants[0]: Privilege use_catalog is giv"),
    ([role("r", on("files", "select_table"))], "roles[0].grants[0]: Privilege select_table is for relational catalogs"),
    ([role("r", on("lake", "use_catalog"), on("lake", "use_schema"))], "roles[0].grants[1]: catalog lake is there twi"),
    ([role("r"), role("r")], "roles[1]: Role r is there twice"),
    ([role("r", on("pond", "use_catalog"))], "roles[0].grants[0]: Catalog pond does not exist"),
    ([role("r", on("lake.A:B.t", "select_table") | {"type": "view"})], "roles[0].grants[0]: Privilege select_table ca"),
    (
        [role("r", {"type": "table", "fullName": "lake.t", "allow": ["select_table"]})],
        "roles[0].grants[0]: 'lake.t' is not the full name of a table",
    ),
    ([role("a/b/ ", on("lake", "use_catalog"))], "roles[0]: "),
    ([role("")], "roles[0]: "),
    ([role("r", users=["ghost"])], "roles[0].users: User ghost does not exist"),
    ([role("r", users=["sam"])], "roles[0].users: User sam does not exist"),
    ([role("r", groups=["ghosts"])], "roles[0].groups: Group ghosts does not exist"),
    ([role("r", users=["mia", "mia"])], "roles[0].users: 'mia' is there twice"),
    ([role("r", on("lake", {"privilege": "use_catalog", "startTime": PAST}))], "roles[0].grants[0]: Privilege use_cat"),
    ([role("r", on("lake", {"privilege": "use_catalog", "endTime": PAST}))], "roles[0].grants[0]: Privilege use_catal"),
    ([role("r", on("lake", "use_catalog\0"))], "holds a NUL"),
    ([role("r", on("lake", "use_catalog\ud800"))], "half a character"),
]


@pytest.mark.store
@pytest.mark.parametrize(
    ("body", "said"), [*_WRONG, *(({"metalake": "acme", "roles": some}, said) for some, said in _WRONG_ROLES)]
)
def test_a_wrong_file_changes_nothing_and_is_told_where(world: World, wire: Wire, body: Any, said: str) -> None:
    world.give("mia", "use_catalog@lake")
    before = state()
    status, reply = wire("POST", f"{PATH}/plan", body)
    assert said in reply["message"] and status in (400, 404), reply
    assert state() == before
    if isinstance(body, dict) and "\0" not in json.dumps(body) and "ud800" not in json.dumps(body):
        with pytest.raises(MetalakeError) as refusal:
            text = yaml.safe_dump(body, sort_keys=False).encode()
            plan.plan(world.olga, "acme", plan_file.read_file(text))
        assert state() == before, refusal


def test_people_are_no_matter_of_a_subtree(world: World) -> None:
    for sort in ("users", "groups"):
        with pytest.raises(Invalid, match=rf"roles\[0\].{sort}: Who holds a role is said for the whole metalake"):
            plan.plan(world.olga, "acme", wanted(role("r", **{sort: []}), **subtree("catalog", "lake")))


BOMB = "a: &a [x, x]\nb: &b [*a, *a]\nmetalake: *b\n"
WRONG_YAML = {
    "metalake: acme\nroles: ]": "line 2, column 8",
    "metalake: acme\n\troles: []": "line 2, column 1",
    "metalake: acme\nmetalake: acme\nroles: []": "the key 'metalake' is said twice; say it once (line 2, column 1)",
    BOMB: "an anchor is not allowed here; write it out (line 1, column 4)",
    "metalake: acme\nroles: *all": "(line 2, column 8)",
    "metalake: !!python/object/apply:os.system [id]\nroles: []": "the tag 'tag:yaml.org,2002:python/object/apply:os",
    "metalake: acme\nroles: []\n---\nmetalake: acme\n": "a second document begins; send one (line 3, column 1)",
    "[a, b]: c": "a key must be text (line 1, column 1)",
    "? {a: b}\n: c": "a key must be text (line 1, column 3)",
    "~: c": "a key must be text",
    "<<: {metalake: acme}\nmetalake: acme\nroles: []": "unknown field '<<'",
    "": "must be an object",
    "just text": "must be an object",
    "- metalake": "must be an object",
    "metalake: a\0b": "Not YAML",
    "[" * 200 + "]" * 200: "nests deeper than 100 levels",
    "[" * 100_000: "nests deeper than 100 levels",
    "a: " + "{a: " * 300: "nests deeper than 100 levels",
}


@each("text", WRONG_YAML)
def test_wrong_yaml_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(Invalid) as refusal:
        plan_file.read_file(text.encode())
    assert WRONG_YAML[text] in refusal.value.message


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b'{"metalake": "acme",\n "roles": [}', "line 2, column 12"),
        (b'{"metalake": "a", "metalake": "b", "roles": []}', "The key 'metalake' is said twice"),
        (b"[" * 200_000, "nests deeper"),
        (b'{"metalake": ' + b"1" * 5000 + b', "roles": []}', "every value is text"),
        (b'{"metalake": NaN, "roles": []}', "metalake: "),
        (b"\xff\xfe", "not UTF-8"),
    ],
)
def test_wrong_json_is_refused_with_its_place(raw: bytes, said: str) -> None:
    with pytest.raises(Invalid) as refusal:
        plan_file.read_file(raw, plan_file.JSON)
    assert said in refusal.value.message


def test_what_yaml_might_take_for_something_else_is_text() -> None:
    text = "metalake: 2024\nroles:\n- {name: no, users: [1.5, 2024-01-01, 0x10, yes], groups: ~}\n"
    file = plan_file.read_file(text.encode())
    assert (file.metalake, file.roles[0].name) == ("2024", "no")
    assert (file.roles[0].users, file.roles[0].groups) == (["1.5", "2024-01-01", "0x10", "yes"], None)


ODD = ["no", "2024", "null", "~", " a ", "a: b", "#x", "é", "\U0001f6eb", "a\u2028b", "-", "'", '"', "*x", "&x", "!x"]
NUMBERS = ["1e3", "0x1F", "0o17", "0b11", "12345", "1_000", "+1", "1.5", ".5", ".inf", "-.Inf", ".nan", "NaN", "1:20"]
TYPED = [*NUMBERS, "yes", "No", "on", "OFF", "y", "TRUE", "Null", "2024-01-01", "2024-01-01T00:00:00Z", "=", "<<", ""]
# What readers of YAML 1.2 take for null, a truth value or a number (its core schema).
CORE = re.compile(
    r"null|Null|NULL|~||true|True|TRUE|false|False|FALSE|[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+|"
    r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)


def test_odd_names_are_written_so_that_they_are_read_again() -> None:
    names = ODD + TYPED
    file = Wanted("acme", None, [WantedRole("", name, [name], [name], []) for name in names])
    text = plan_file.as_yaml(file)
    assert [role_.name for role_ in plan_file.read_file(text.encode()).roles] == names
    assert [role_["users"] for role_ in yaml.safe_load(text)["roles"]] == [[name] for name in names]
    bare = {token.value for token in yaml.scan(text) if isinstance(token, yaml.ScalarToken) and token.plain}
    assert [name for name in bare if CORE.fullmatch(name)] == [] and not bare & set(TYPED)


def test_too_much_is_refused(world: World, wire: Wire, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    many = [role(f"r{n}", on("lake", "use_catalog", "use_schema")) for n in range(3)]
    monkeypatch.setattr(plan_file, "MAX_GRANTS", 5)
    with pytest.raises(TooLarge, match="The file holds 6 grants; 5 may be planned"):
        wanted(*many)
    status, reply = wire("POST", f"{PATH}/plan", {"metalake": "acme", "roles": many})
    assert (status, reply["type"]) == (413, "IllegalArgumentException")
    padded = {"metalake": "acme", "roles": [], "x": "y" * 3_000_000}
    status, reply = wire("POST", f"{PATH}/plan", padded)
    assert (status, reply["message"]) == (400, "body: unknown field 'x'"), "more than other bodies may take"
    status, reply = wire("POST", f"{PATH}/apply", padded)
    assert status == 413
    status, reply = wire("POST", f"{PATH}/plan", padded | {"x": "y" * 10 * 1024 * 1024})
    assert (status, reply["message"]) == (413, "The request body may take 10485760 bytes.")
    settings.METALAKE_MAX_PLAN_BODY = 10
    with pytest.raises(TooLarge, match="may take 10 bytes, not 12"):
        plan_file.read_file(b"metalake: ab")


def test_the_example_of_the_documentation_is_a_file() -> None:
    text = (
        (Path(__file__).parents[3] / "docs" / "authorization.md").read_text().split("```yaml\n")[1].partition("```")[0]
    )
    file = plan_file.read_file(text.encode())
    assert (file.metalake, file.roles[0].users, len(file.roles[0].grants)) == ("demo", ["mia"], 3)
