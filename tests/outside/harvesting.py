"""A job that harvests the world of the memory provider, over the wire and without Spark."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.utils import timezone

from providers.remote_objects import digest
from tests.catalogs.callers import Answer, Caller
from tests.providers.world import LEVELS, World

CATALOGS = "metalakes/demo/catalogs"
Json = dict[str, Any]


@dataclass
class Harvester:
    """One job; `begun` says which run it delivers to and in which turn. Several of its calls may be made by hand."""

    caller: Caller
    world: World
    catalog: str = "deep"
    size: int = 3  # objects of a part
    begun: Json = field(default_factory=dict)
    delivered: list[str] = field(default_factory=list)

    @property
    def place(self) -> str:
        return f"{CATALOGS}/{self.catalog}/refreshes/{self.begun['refresh']['id']}"

    def begin(self, **asked: Any) -> Json:
        self.begun = self.caller.post(f"{CATALOGS}/{self.catalog}/harvests", asked or None).body
        return self.begun

    def run(self, **asked: Any) -> Json:
        """Harvest all of it; the run at its end."""
        self.begin(**asked)
        for schema in sorted(self._there("")):
            self.schema(schema)
        return self.whole("")

    def schema(self, schema: str) -> None:
        """Deliver a schema, which the schemas' own listing has to have been delivered for."""
        if not self.delivered:
            self.part("")
        known = self.known(schema)
        if known["isThere"] and not known["isWhole"]:
            self.part(schema)
            self.whole(schema)

    def known(self, schema: str) -> Json:
        query = f"?turn={self.begun['turn']}&schema={schema.replace(LEVELS, '%1F')}"
        answer: Json = self.caller.get(f"{self.place}/known{query}")["known"]
        return answer

    def blind(self, schema: str) -> list[Answer]:
        """Deliver all, as one does who may not know what is known."""
        return self.part(schema, {"objects": [], "askedAt": timezone.now().isoformat()})

    def part(self, schema: str, known: Json | None = None, **other: Any) -> list[Answer]:
        """Deliver what differs from what is known, in parts."""
        there, known = self._there(schema), known or self.known(schema)
        same = {(name, version) for name, _, version in known["objects"]}
        names, answers = sorted(there), []
        for start in range(0, len(names), self.size):
            some = names[start : start + self.size]
            entries = [
                {"name": name, **there[name]} for name in some if (name, digest(there[name]["definition"])) not in same
            ]
            body = {"part": f"{start}", "seen": len(some), "entries": entries, "askedAt": known["askedAt"]}
            answers.append(self.caller.post(f"{self.place}/parts", self._of_turn(schema) | body | other))
        self.delivered.append(schema)
        return answers

    def whole(self, schema: str, **other: Any) -> Json:
        """Say that a listing ended, and what it lacks."""
        there, known = self._there(schema), self.known(schema)
        missing = [name for name, _, _ in known["objects"] if name not in there]
        body = {"missing": missing, "missingInAll": len(missing), "listed": len(there), "isLast": True}
        body |= {"askedAt": known["askedAt"]}
        answer: Json = self.caller.post(f"{self.place}/missing", self._of_turn(schema) | body | other)["refresh"]
        return answer

    def _of_turn(self, schema: str) -> Json:
        return {"turn": self.begun["turn"], "schema": schema}

    def _there(self, schema: str) -> dict[str, Json]:
        with self.world.open() as state:
            if not schema:
                return dict(state["schemas"])
            inside = {name.rpartition(LEVELS): one for name, one in state["tables"].items()}
        return {name: one for (above, _, name), one in inside.items() if above == schema}
