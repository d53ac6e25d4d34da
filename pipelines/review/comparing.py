"""Checks rows of a review against the server's own evaluator, its endpoint access/check."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from metalake_client.rest import Client
from pipelines.review.regions import Lineage
from pipelines.review.rules import Rule
from pipelines.review.state import Principal, World

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AT_ONCE = 1000  # questions per request
SHOWN = 10  # differences in an error message
UNASKED = ("role",)  # kinds that access/check does not support


class Question(NamedTuple):
    number: int
    principal: str
    privilege: str
    kind: str
    name: str
    lineage: list[int]


class Difference(NamedTuple):
    question: Question
    review: bool

    def __str__(self) -> str:
        asked, (says, other) = self.question, ("yes", "no") if self.review else ("no", "yes")
        what = f"{asked.privilege} on {asked.kind} {asked.name}"
        return f"{asked.principal}, {what}: the review says {says}, the server {other}"


def questions(
    world: World, principals: Sequence[Principal], rules: Sequence[Rule], rows: Sequence[Any], number: int, seed: int
) -> list[Question]:
    """Sample questions: half from rows of the review, so that many answers are yes, the rest about random objects."""
    chance = random.Random(seed)  # noqa: S311
    asked: list[Question] = []
    for row in rows:
        at = None if row.kind in UNASKED else world.below(row.object_id, row.kind, chance)
        if at is not None and (lineage := world.lineage(at)) is not None:
            asked.append(_question(world, len(asked), row.principal, row.privilege, lineage))
    ids = list(world.objects)
    by_kind: dict[str, list[Rule]] = {}
    for rule in rules:
        if rule.family in (None, "relational"):
            by_kind.setdefault(rule.kind, []).append(rule)
    for _ in range(4 * number):
        if len(asked) >= number or not principals:
            break
        at = chance.choice(ids)
        fitting, lineage = by_kind.get(world.objects[at].kind), world.lineage(at)
        if fitting and lineage is not None and world.objects[at].kind not in UNASKED:
            privilege = chance.choice(fitting).privilege
            asked.append(_question(world, len(asked), chance.choice(principals).name, privilege, lineage))
    return asked


def _question(world: World, number: int, principal: str, privilege: str, lineage: Lineage) -> Question:
    kind = world.objects[lineage[-1]].kind
    return Question(number, principal, privilege, kind, world.full_name(lineage), list(lineage))


def answers(session: SparkSession, asked: Sequence[Question], rights: DataFrame) -> list[bool]:
    """The answers according to the written rows."""
    from pyspark.sql import functions as f

    columns = "number bigint, principal string, privilege string, kind string, name string, lineage array<bigint>"
    about = f.broadcast(session.createDataFrame(asked, columns, verifySchema=False))
    joined = rights.select("principal", "privilege", "kind", "object_id", "exceptions.id").join(
        about, ["principal", "privilege", "kind"]
    )
    says = joined.where("array_contains(lineage, object_id) and not arrays_overlap(lineage, id)")
    yes = {row.number for row in says.select("number").distinct().collect()}
    return [question.number in yes for question in asked]


def differences(
    client: Client, metalake: str, asked: Sequence[Question], says: Sequence[bool], as_of: str | None, moment: str
) -> list[Difference]:
    """Where the server's answers differ; these are rechecked as of the review's time."""
    odd = _odd(client, metalake, list(zip(asked, says, strict=True)), as_of)
    return [Difference(*each) for each in (odd if as_of else _odd(client, metalake, odd, moment))]


def _odd(
    client: Client, metalake: str, pairs: Sequence[tuple[Question, bool]], as_of: str | None
) -> list[tuple[Question, bool]]:
    odd = []
    for start in range(0, len(pairs), AT_ONCE):
        some = pairs[start : start + AT_ONCE]
        body = {"questions": [_body(question) for question, _ in some]} | ({"asOf": as_of} if as_of else {})
        given = client.call("POST", "metalakes", metalake, "access", "check", body=body)["answers"]
        odd += [pair for pair, answer in zip(some, given, strict=True) if pair[1] != answer["allowed"]]
    return odd


def _body(question: Question) -> dict[str, str]:
    return {
        "type": question.kind,
        "fullName": question.name,
        "privilege": question.privilege,
        "user": question.principal,
    }
