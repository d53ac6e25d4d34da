"""Whatever is wrong is answered as JSON in Iceberg's shape, below 500, and changes nothing."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from django.test import override_settings

from formats.iceberg.updates import REFERENCE_TEXT
from iceberg_rest.errors import shape_of
from metalake import errors
from metalake.errors import MetalakeError
from metalake.kinds import Kind
from tests.cases import each
from tests.demo import give
from tests.iceberg_rest.world import COLUMNS, Caller, basic

TABLE = "namespaces/a/tables/t"


@pytest.fixture
def home(owner: Caller) -> Caller:
    owner.make_namespace("a")
    owner.make_table("a", "t")
    return owner


def state(caller: Caller) -> list[Any]:
    return [
        caller.children(),
        caller.children("a"),
        caller.tables("a"),
        caller.get(TABLE).content,
        caller.get("namespaces/a").content,
    ]


WRONG_BODIES: list[Any] = [
    b"",
    b"{",
    b"\xff",
    b"nonsense",
    b"[]",
    b"null",
    b'"text"',
    b"1e999",
    b"[" * 5000 + b"]" * 5000,
    b'{"name":' * 2000 + b"1" + b"}" * 2000,
    {},
]
TO_U = {"source": {"namespace": ["a"], "name": "t"}, "destination": {"namespace": ["a"], "name": "u"}}
NEW_TABLE = {"name": "n", "schema": COLUMNS, "properties": {}, "location": None, "stage-create": False}
POSTS: list[tuple[str, dict[str, Any]]] = [
    ("namespaces", {"namespace": ["x"], "properties": {}}),
    ("namespaces/a/properties", {"updates": {"k": "v"}, "removals": []}),
    ("namespaces/a/tables", NEW_TABLE),
    ("namespaces/a/register", {"name": "n", "metadata-location": "file:///x"}),
    ("tables/rename", TO_U),
    (TABLE, {"requirements": [], "updates": [{"action": "set-properties", "updates": {"k": "v"}}]}),
    (f"{TABLE}/metrics", {}),
]
EMPTY_IS_FINE = {"namespaces/a/properties", TABLE, f"{TABLE}/metrics"}


@pytest.mark.parametrize("path", [path for path, _ in POSTS])
def test_malformed_bodies(home: Caller, path: str) -> None:
    before = state(home)
    for body in WRONG_BODIES:
        answer = home.post(path, body)
        if body == {} and path in EMPTY_IS_FINE:
            assert answer.status < 300
            continue
        assert answer.error[:2] == (400, "BadRequestException"), body
    assert state(home) == before


@pytest.mark.parametrize(("path", "body"), POSTS[:-1])
def test_every_field_of_a_wrong_type(home: Caller, path: str, body: dict[str, Any]) -> None:
    """Each field in turn becomes each wrong thing; the message names the field."""
    before = state(home)
    right = {"name": "text", "metadata-location": "text", "location": "text", "stage-create": True}
    for field in body:
        wrongs: list[Any] = [7, True, "text", [7], {"x": []}, [[[]]], {"": {}}]
        for wrong in wrongs:
            if right.get(field) == wrong:
                continue
            status, type_, message = home.post(path, {**body, field: wrong}).error
            assert (status, type_) == (400, "BadRequestException"), (field, wrong, message)
            assert field.rstrip("s") in message.replace("sort-order", "write-order"), (field, wrong, message)
    assert state(home) == before


@pytest.mark.parametrize("wrong", [1, "true", "True"])
def test_what_is_nearly_true_is_not(home: Caller, wrong: Any) -> None:
    assert home.post("namespaces/a/tables", NEW_TABLE | {"stage-create": wrong}).error[0] == 400
    body = {"name": "n", "metadata-location": "file:///x", "overwrite": wrong}
    status, _, message = home.post("namespaces/a/register", body).error
    assert status == 400
    assert "overwrite" in message


NAMES = ["", "\x1f", "a\x1fb", "\x00", "a\nb", ".", "..", "*", "x" * 256, "é" * 128, "\x7f", "\u2028"]


@pytest.mark.store
@pytest.mark.parametrize("name", NAMES)
def test_names_that_could_not_be_given_back(home: Caller, name: str) -> None:
    before = state(home)
    location = home.get(TABLE).json["metadata-location"]
    for path, body in [
        ("namespaces", {"namespace": [name]}),
        ("namespaces", {"namespace": ["a", name]}),
        ("namespaces", {"namespace": [name, "a"]}),
        ("namespaces/a/tables", {"name": name, "schema": COLUMNS}),
        ("namespaces/a/register", {"name": name, "metadata-location": location}),
        ("tables/rename", TO_U | {"destination": {"namespace": ["a"], "name": name}}),
        ("tables/rename", TO_U | {"destination": {"namespace": [name], "name": "t"}}),
    ]:
        assert home.post(path, body).error[:2] == (400, "BadRequestException"), (path, body)
    assert state(home) == before


def test_a_namespace_without_levels(home: Caller) -> None:
    assert home.post("namespaces", {"namespace": []}).error[0] == 400


@pytest.mark.store
@pytest.mark.parametrize(
    "path",
    [
        "namespaces/%00",
        "namespaces/a%1F",
        "namespaces/%1Fa",
        "namespaces/a%1F%1Fb",
        "namespaces/%FF",
        "namespaces/a%0Ab",
        "namespaces/a/tables/%1F",
        "namespaces/a/tables/%C3",
        "namespaces?parent=%1F",
        "namespaces?parent=a%1F",
        "namespaces?parent=%00",
        "/iceberg/%00/v1/lake/namespaces",
        "/iceberg/demo/v1/%00/namespaces",
        "/iceberg/demo/v1/~%21/namespaces",
        "/iceberg/demo/v1/config?warehouse=%00",
    ],
)
def test_paths_that_name_nothing(home: Caller, path: str) -> None:
    assert home.get(path).error[:2] == (400, "BadRequestException")


@each(
    "path",
    [
        "/iceberg/",
        "/iceberg/demo",
        "/iceberg/demo/",
        "/iceberg/demo/v1",
        "/iceberg/demo/v2/config",
        "/iceberg/demo/v1/config/",
        "/iceberg/demo/v1/oauth/tokens",
        "namespaces/",
        "namespaces//tables",
        "namespaces/a/functions",
        "namespaces/a/tables/t/credentials",
        "transactions/other",
        "x" * 7000,
    ],
)
def test_unknown_paths(home: Caller, path: str) -> None:
    for verb in ("GET", "POST", "DELETE"):
        assert home.ask(verb, path, {}).error[:2] == (404, "NotFoundException")


@pytest.mark.parametrize("verb", ["PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "NONSENSE"])
def test_a_wrong_method(home: Caller, verb: str) -> None:
    answer = home.ask(verb, "namespaces")
    assert answer.error[:2] == (405, "UnsupportedOperationException")
    assert answer.headers["Allow"] == "GET, POST"


@each(
    "authorization",
    ["", "Basic", "Basic !", "Basic eA==", basic("admin", "wrong"), basic("nobody"), "Bearer x", "Bearer", "Digest x"],
)
def test_nobody_we_know(home: Caller, authorization: str) -> None:
    for verb, path in (("GET", "namespaces"), ("GET", "/iceberg/demo/v1/config?warehouse=lake"), ("POST", TABLE)):
        answer = home.ask(verb, path, {}, HTTP_AUTHORIZATION=authorization)
        assert answer.error[:2] == (401, "NotAuthorizedException")
        assert answer.headers["WWW-Authenticate"].startswith("Basic ")
    head = home.ask("HEAD", TABLE, HTTP_AUTHORIZATION=authorization)
    assert (head.status, head.content) == (401, b"")


@pytest.mark.parametrize("limit", [64])
def test_a_body_over_the_limit(home: Caller, limit: int) -> None:
    before = state(home)
    with override_settings(METALAKE_MAX_COMMIT_BODY=limit):
        answer = home.post("namespaces", {"namespace": ["x" * limit]})
    assert answer.error[:2] == (413, "BadRequestException")
    assert state(home) == before


def test_a_schema_nested_too_deeply(home: Caller) -> None:
    """Within what the JSON reader takes, beyond what a table may be."""
    before = state(home)
    for depth in (200, 330):
        schema = b'"long"'
        for id_ in range(depth):
            column = b'{"id":%d,"name":"x","required":false,"type":%b}' % (id_, schema)
            schema = b'{"type":"struct","fields":[%b]}' % column
        for path, body in [
            ("namespaces/a/tables", b'{"name":"deep","schema":%b}' % schema),
            (TABLE, b'{"updates":[{"action":"add-schema","schema":%b}]}' % schema),
        ]:
            assert home.post(path, body).error[:2] == (400, "BadRequestException"), (depth, path)
    assert state(home) == before


@pytest.mark.store
def test_text_that_cannot_be_stored(home: Caller) -> None:
    """Half a surrogate pair is no Unicode, and U+0000 is refused by some databases."""
    before = state(home)
    for body in (
        b'{"namespace":["\\ud800"]}',
        b'{"namespace":["x"],"properties":{"k":"\\ud800"}}',
        b'{"namespace":["x"],"properties":{"k":"a\\u0000b"}}',
        b'{"namespace":["x"],"properties":{"a\\u0000b":"v"}}',
    ):
        assert home.post("namespaces", body).error[0] == 400
    assert state(home) == before


# Hidden is missing, byte for byte


IN_NS = {"namespace": ["{ns}"], "name": "t"}
A_VIEW = {"namespace": ["{ns}"], "name": "v"}
QUERY = {"type": "sql", "sql": "SELECT id FROM flights", "dialect": "spark"}
NEW_VIEW = {
    "name": "v",
    "schema": COLUMNS,
    "view-version": {
        "version-id": 1,
        "timestamp-ms": 1,
        "schema-id": 0,
        "summary": {},
        "default-namespace": ["flights"],
        "representations": [QUERY],
    },
    "properties": {},
}
REQUESTS: list[tuple[str, str, Any]] = [
    ("GET", "namespaces?parent={ns}", None),
    ("GET", "namespaces/{ns}", None),
    ("HEAD", "namespaces/{ns}", None),
    ("DELETE", "namespaces/{ns}", None),
    ("POST", "namespaces/{ns}/properties", {"updates": {"k": "v"}}),
    ("GET", "namespaces/{ns}/tables", None),
    ("POST", "namespaces/{ns}/tables", {"name": "t", "schema": COLUMNS}),
    ("POST", "namespaces/{ns}/tables", {"name": "t", "schema": COLUMNS, "stage-create": True}),
    ("POST", "namespaces/{ns}/register", {"name": "t", "metadata-location": "file:///x/00000-x.metadata.json"}),
    ("GET", "namespaces/{ns}/tables/t", None),
    ("GET", "namespaces/{ns}/tables/nothing", None),
    ("HEAD", "namespaces/{ns}/tables/t", None),
    ("DELETE", "namespaces/{ns}/tables/t", None),
    ("DELETE", "namespaces/{ns}/tables/t?purgeRequested=true", None),
    ("POST", "namespaces/{ns}/tables/t", {"requirements": [], "updates": []}),
    ("POST", "namespaces/{ns}/tables/t", {"requirements": [{"type": "assert-create"}], "updates": []}),
    ("POST", "namespaces/{ns}/tables/t/metrics", {}),
    ("POST", "tables/rename", {"source": IN_NS, "destination": {"namespace": ["x"], "name": "t"}}),
    ("POST", "tables/rename", {"source": IN_NS, "destination": IN_NS | {"name": "u"}}),
    ("GET", "namespaces/{ns}/views", None),
    ("POST", "namespaces/{ns}/views", NEW_VIEW),
    ("POST", "namespaces/{ns}/register-view", {"name": "v", "metadata-location": "file:///x/00000-x.metadata.json"}),
    *((verb, f"namespaces/{{ns}}/views/{name}", None) for name in "vt" for verb in ("GET", "HEAD", "DELETE")),
    ("POST", "namespaces/{ns}/views/v", {"updates": []}),
    ("POST", "views/rename", {"source": A_VIEW, "destination": {"namespace": ["x"], "name": "v"}}),
    ("POST", "views/rename", {"source": A_VIEW, "destination": A_VIEW | {"name": "u"}}),
    ("GET", "namespaces/{ns}/tables/v", None),
]


def told(caller: Caller, namespace: str) -> list[tuple[int, dict[str, str], bytes]]:
    """What every request about a namespace is answered with, the names in its path apart."""
    warehouse = f"{caller.catalog} in metalake {caller.metalake}".encode()
    answers = []
    for verb, path, body in REQUESTS:
        sent = orjson.dumps(body).replace(b"{ns}", namespace.encode()) if body is not None else b""
        answer = caller.ask(verb, path.format(ns=namespace), sent)
        headers = {key: value for key, value in answer.headers.items() if key != "X-Request-Id"}
        content = answer.content.replace(namespace.encode(), b"NS").replace(warehouse, b"W")
        headers["Content-Length"] = str(len(content))
        answers.append((answer.status, headers, content))
    return answers


@pytest.fixture
def hidden(home: Caller) -> Caller:
    home.make_namespace("hidden")
    home.make_table("hidden", "t")
    assert home.post("namespaces/hidden/views", NEW_VIEW).status == 200
    return home


def test_in_a_catalog_that_is_seen(hidden: Caller, member: Caller) -> None:
    give(member.name, Kind.CATALOG, "lake", "use_catalog")
    answers = told(member, "hidden")
    assert answers == told(member, "absent")
    assert {status for status, _, _ in answers} == {404}


def test_in_a_hidden_catalog(hidden: Caller, member: Caller) -> None:
    answers = told(member, "hidden")
    assert {status for status, _, _ in answers} == {404}
    assert answers == told(member, "absent")
    member.catalog = "none"
    assert answers == told(member, "hidden")


def test_in_a_foreign_metalake(hidden: Caller, outsider: Caller) -> None:
    answers = told(outsider, "hidden")
    assert {status for status, _, _ in answers} == {404}
    assert answers == told(outsider, "absent")
    outsider.metalake = "gone"
    assert answers == told(outsider, "hidden")


def test_lists_and_creations_at_the_top_of_what_is_hidden(hidden: Caller, member: Caller, outsider: Caller) -> None:
    for caller in (member, outsider):
        for verb, body in (("GET", None), ("POST", {"namespace": ["a"]}), ("POST", {"namespace": ["new"]})):
            caller.catalog = "lake"
            here = caller.ask(verb, "namespaces", body)
            caller.catalog = "none"
            nowhere = caller.ask(verb, "namespaces", body)
            assert here.error == (404, "NoSuchWarehouseException", "Warehouse does not exist: lake in metalake demo")
            assert nowhere.content.replace(b": none in", b": lake in") == here.content


def test_a_seen_and_forbidden_namespace_is_another_matter(hidden: Caller, reader: Caller) -> None:
    assert reader.delete("namespaces/hidden").error[:2] == (403, "ForbiddenException")


# The table of errors


@each(
    "error, expected",
    [
        (errors.Unauthenticated("x"), (401, "NotAuthorizedException")),
        (errors.Forbidden("x"), (403, "ForbiddenException")),
        (errors.NotInUse("x"), (403, "ForbiddenException")),
        (errors.NotFound("x", kind="catalog"), (404, "NoSuchWarehouseException")),
        (errors.NotFound("x", kind="schema"), (404, "NoSuchNamespaceException")),
        (errors.NotFound("x", kind="table"), (404, "NoSuchTableException")),
        (errors.NotFound("x", kind="view"), (404, "NoSuchViewException")),
        (errors.NotFound("x", kind="metadata-file"), (404, "NotFoundException")),
        (errors.NotFound("x"), (404, "NotFoundException")),
        (errors.AlreadyExists("x"), (409, "AlreadyExistsException")),
        (errors.NotEmpty("x"), (409, "NamespaceNotEmptyException")),
        (errors.Conflict("x"), (409, "CommitFailedException")),
        (errors.Invalid("x"), (400, "BadRequestException")),
        (errors.Invalid("x", kind=REFERENCE_TEXT), (400, "IllegalArgumentException")),
        (errors.TooLarge("x"), (413, "BadRequestException")),
        (errors.TooLarge("x", kind="property"), (400, "BadRequestException")),
        (errors.Unprocessable("x"), (422, "UnprocessableEntityException")),
        (errors.Unsupported("x"), (406, "UnsupportedOperationException")),
        (errors.ProviderUnavailable("x"), (503, "ServiceUnavailableException")),
        (errors.StoreUnavailable("x"), (503, "ServiceUnavailableException")),
        (errors.OutcomeUnknown("x"), (500, "ServiceFailureException")),
    ],
)
def test_every_error_has_its_shape(error: MetalakeError, expected: tuple[int, str]) -> None:
    assert shape_of(error) == expected


def test_every_error_below_500_stays_there_on_a_commit() -> None:
    def all_of(error: type[MetalakeError]) -> list[type[MetalakeError]]:
        return [error, *(each for child in error.__subclasses__() for each in all_of(child))]

    for error in all_of(MetalakeError)[1:]:
        raised = error.__new__(error)
        MetalakeError.__init__(raised, "x")  # some need more to be raised
        status, type_ = shape_of(raised, commits=True)
        assert (status == 500) == issubclass(error, errors.OutcomeUnknown) == (type_ == "CommitStateUnknownException")


def test_engines_never_see_the_separator(owner: Caller, reader: Caller) -> None:
    """Whatever is refused about a nested namespace names it by dots, as engines do."""
    owner.make_namespace("N", "a")
    owner.make_table("N%1Fa", "t")
    owner.make_table("N%1Fa", "u")
    to_u = {"source": {"namespace": ["N", "a"], "name": "t"}, "destination": {"namespace": ["N", "a"], "name": "u"}}
    new, commit = NEW_TABLE | {"name": "t"}, dict[str, Any](requirements=[], updates=[])
    inside = "namespaces/N%1Fa"
    changes = {"table-changes": [commit | {"identifier": {"namespace": ["N", "a"], "name": "t"}}]}
    writes = [
        ("POST", f"{inside}/tables", new), ("POST", f"{inside}/tables/t", commit), ("POST", "tables/rename", to_u),
        ("POST", "transactions/commit", changes), ("DELETE", f"{inside}/tables/t", None), ("DELETE", inside, None),
        ("POST", f"{inside}/properties", {"updates": {"k": "v"}}),
        ("POST", "namespaces", {"namespace": ["N", "a", "b"]}),
        ("GET", f"{inside}/tables/none", None), ("POST", f"{inside}/views", {}),
    ]  # fmt: skip
    refused = [answer for caller in (reader, owner) for each in writes if (answer := caller.ask(*each)).status >= 400]
    assert {answer.status for answer in refused} >= {400, 403, 404, 409}
    said = [answer.json["error"]["message"] for answer in refused]
    assert [one for one in said if "N:a" in one] == [] and sum("N.a" in one for one in said) >= 9, said
