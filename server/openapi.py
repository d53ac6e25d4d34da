"""The OpenAPI 3.1 document of the native API, built from what each endpoint declares with @answers.

Bodies and replies are described by their pydantic models, so the document cannot differ from the validation.
"""

from __future__ import annotations

import re
from functools import lru_cache
from types import NoneType
from typing import Any, get_args

from drf_spectacular.drainage import warn
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ComponentRegistry, ResolvedComponent
from pydantic import Field, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from metalake.bodies import JSON, NDJSON
from metalake.rest.declarations import Declaration
from metalake.wire import Reply

REF = "#/components/schemas/{model}"
QUERY = {
    "asOf": ("string", "A moment of the past, in ISO 8601; absent is now"),
    "cascade": ("boolean", "Drop what the object holds too"),
    "details": ("boolean", "Reply with the objects instead of their names"),
    "force": ("boolean", "Drop even what is in use or not empty"),
    "exact": ("boolean", "Tell roles and people of exactly this name too, to those who may grant somewhere"),
    "limit": ("integer", "How many at most: of a page 100, at most 1,000; of each sort of a search 20, at most 100"),
    "pageToken": ("string", "The nextPageToken of the page before"),
    "parentSchema": ("string", "The schema whose direct children are listed"),
    "privileges": ("string", "Privileges that the caller must hold, divided by commas"),
    "purge": ("boolean", "Delete the files too"),
    "q": ("string", "The beginning of a word in a name, or a path such as lake.travel:n"),
}
VERBS = {"GET": "load", "POST": "create", "PUT": "alter", "PATCH": "set", "DELETE": "drop"}
SECURITY = {
    "basic": {"type": "http", "scheme": "basic", "description": "A user name and password"},
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "description": "A personal access token, or a token of a trusted issuer",
    },
}


class ErrorReply(Reply):
    """Why a request was refused."""

    code: int = Field(description="The kind of failure: 1001 illegal argument, 1003 not found, 1008 forbidden ...")
    type: str
    message: str


def one_path_each(endpoints: list[tuple], **rest: Any) -> list[tuple]:
    """Paths as clients write them: without a trailing slash, and names without the underscore that Python requires."""
    return [(re.sub(r"_}", "}", path.rstrip("/")), *others) for path, *others in endpoints]


class NativeSchema(AutoSchema):
    """One operation of the OpenAPI document."""

    def get_operation(
        self, path: str, path_regex: str, path_prefix: str, method: str, registry: ComponentRegistry
    ) -> dict[str, Any] | None:
        self.path, self.path_regex, self.path_prefix, self.method, self.registry = (
            path, path_regex, path_prefix, method.upper(), registry,
        )  # fmt: skip
        endpoint = getattr(self.view, method.lower())
        declared = getattr(endpoint, "declaration", None)
        if declared is None:
            return None
        summary, _, description = (endpoint.__doc__ or "").partition("\n")
        operation = {
            "operationId": self._id(declared),
            "tags": [self._tag()],
            "summary": summary.strip() or None,
            "description": description.strip() or None,
            "parameters": [*self._path_parameters(), *(_query_parameter(name) for name in declared.query)],
            "requestBody": self._body(declared),
            "security": [] if self.view.is_open() else self._security(),
            "responses": self._responses(declared),
        }
        return {key: value for key, value in operation.items() if value is not None}

    def _id(self, declared: Declaration) -> str:
        """`listTables`, `createTable`, `loadTable`: from the endpoint's class unless the declaration has an id."""
        if declared.id:
            return declared.id
        noun = type(self.view).__name__
        if self.path.endswith("}") or not noun.endswith("s"):
            return f"{VERBS[self.method]}{noun}"
        return f"list{noun}" if self.method == "GET" else f"{VERBS[self.method]}{noun.removesuffix('s')}"

    def _tag(self) -> str:
        """The noun of the endpoint's module, or the app's name."""
        app, *_, module = type(self.view).__module__.split(".")
        return app if module.startswith("api") else module

    def _path_parameters(self) -> list[dict[str, Any]]:
        some_text = {"type": "string", "minLength": 1}
        names = re.findall(r"{(\w+)}", self.path)
        return [{"name": name, "in": "path", "required": True, "schema": some_text} for name in names]

    def _body(self, declared: Declaration) -> dict[str, Any] | None:
        if declared.body is None:
            return None
        return {
            "content": {JSON: {"schema": self._schema_of(declared.body)}},
            "required": not declared.body_is_optional,
        }

    def _security(self) -> list[dict[str, list[str]]]:
        for name, scheme in SECURITY.items():
            self.registry.register_on_missing(
                ResolvedComponent(name, ResolvedComponent.SECURITY_SCHEMA, schema=scheme, object=name)
            )
        return [{name: []} for name in SECURITY]

    def _responses(self, declared: Declaration) -> dict[str, Any]:
        error = {"description": "Refused", "content": {JSON: {"schema": self._schema_of(ErrorReply)}}}
        return {
            "200": {"description": "Done", "content": self._content(declared)},
            "4XX": error,
            "5XX": error | {"description": "Failed"},
        }

    def _content(self, declared: Declaration) -> dict[str, Any]:
        if declared.streams:
            return {NDJSON: {"schema": {"type": "string"}}}
        return {JSON: {"schema": self._envelope(declared)}}

    def _envelope(self, declared: Declaration) -> dict[str, Any]:
        if declared.reply is None:
            return {"type": "object"}
        payload = {key: self._schema_of(_present(type_)) for key, type_ in declared.reply.items()}
        required = [key for key, type_ in declared.reply.items() if NoneType not in get_args(type_)]
        code = {"type": "integer", "const": 0}
        return {"type": "object", "properties": {"code": code, **payload}, "required": ["code", *required]}

    def _schema_of(self, type_: Any) -> dict[str, Any]:
        """A reference to the component, or the schema itself; every model in it becomes a component."""
        schema = dict(_json_schema(type_))
        components = dict(schema.pop("$defs", {}))
        if isinstance(type_, type) and "title" in schema:
            components[type_.__name__] = schema
            schema = {"$ref": REF.format(model=type_.__name__)}
        for name, component in components.items():
            self._register(name, component)
        return schema

    def _register(self, name: str, schema: dict[str, Any]) -> None:
        component = ResolvedComponent(name, ResolvedComponent.SCHEMA, schema=schema, object=name)
        if component not in self.registry:
            self.registry.register(component)
        elif self.registry[component].schema != schema:
            warn(f"two different models are called {name}; rename one")


class _Untitled(GenerateJsonSchema):
    """Schemas without field titles, which would repeat the names."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


@lru_cache
def _json_schema(type_: Any) -> dict[str, Any]:
    return TypeAdapter(type_).json_schema(by_alias=True, ref_template=REF, schema_generator=_Untitled)


def _present(type_: Any) -> Any:
    """The type of a key's value when the key is present."""
    left = [part for part in get_args(type_) if part is not NoneType]
    return left[0] if NoneType in get_args(type_) and len(left) == 1 else type_


def _query_parameter(name: str) -> dict[str, Any]:
    type_, description = QUERY.get(name, ("string", None))
    parameter = {"name": name, "in": "query", "required": False, "schema": {"type": type_}}
    return parameter | ({"description": description} if description else {})
