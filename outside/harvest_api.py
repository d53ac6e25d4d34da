"""Native API endpoints for a job that delivers an outside catalog's listings. Not part of upstream's API."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from authz.actor import Actor
from metalake.paging import read_size
from metalake.rest.replies import moment_text
from metalake.rest.views import Endpoint, answers
from metalake.wire import Body, Moment, Reply
from outside import harvest
from outside.api import RefreshReply, shown
from outside.harvest import Delivery, Known, Missing, Part

ENTRIES, NAMES = 1_000, 100
Schema = Annotated[str, Field(max_length=1024)]
Number = Annotated[int, Field(ge=0, le=2_000_000_000)]


class HarvestRequest(Body):
    """How to deliver."""

    accept_drops: bool = Field(False, description="Believe that things are gone, however many they are")


class _OfTurn(Body):
    turn: Number = Field(description="What the beginning of the harvest answered")
    asked_at: Moment = Field(description="What the server answered when it was asked what it knows, before listing")
    schema_: Schema = Field("", alias="schema", description="The schema's name in its system; none for the schemas")


class PartRequest(_OfTurn):
    """A part of a listing: how many objects it has, and an entry for each that differs from what is known."""

    part: Annotated[str, Field(min_length=1, max_length=255)]
    seen: Number
    entries: list[dict[str, Any]] = Field(max_length=ENTRIES)


class MissingRequest(_OfTurn):
    """Known names that a listing lacks, once it was read to its end; with `isLast` all of them were named."""

    missing: list[Schema] = Field(max_length=NAMES)
    missing_in_all: Number
    listed: Number
    is_last: bool


class KnownReply(Reply):
    """Triples of name, identity and version; a listing that is asked for after `askedAt` is newer."""

    asked_at: str
    is_there: bool
    is_whole: bool
    objects: list[tuple[str, str, str]]


class Harvests(Endpoint):
    @answers(
        "refresh_catalog",
        body=HarvestRequest,
        body_is_optional=True,
        reply={"refresh": RefreshReply, "turn": int},
        id="beginHarvest",
    )
    def post(self, actor: Actor, metalake: str, catalog: str, body: HarvestRequest | None) -> dict[str, Any]:
        """Begin a refresh whose listings are delivered, or go on with one in a new turn."""
        run = harvest.begin(actor, metalake, catalog, accept_drops=body is not None and body.accept_drops)
        return {"refresh": shown(run), "turn": run.fence}


class HarvestKnown(Endpoint):
    @answers(
        "refresh_catalog",
        query=("turn", "schema", "pageToken"),
        reply={"known": KnownReply, "nextPageToken": str | None},
        id="listKnown",
    )
    def get(self, actor: Actor, metalake: str, catalog: str, refresh_id: str) -> dict[str, Any]:
        """What is known of a schema's objects or, without a schema, of the schemas, which need not be delivered."""
        turn = read_size("turn", self.text("turn"), 0)
        delivery = Delivery(actor, metalake, catalog, refresh_id, turn)
        known = harvest.known(delivery, self.text("schema") or "", self.text("pageToken"))
        return {"known": _known(known)} | ({"nextPageToken": known.next_page} if known.next_page else {})


class HarvestParts(Endpoint):
    @answers("refresh_catalog", body=PartRequest, reply={"refresh": RefreshReply}, id="deliverPart")
    def post(self, actor: Actor, metalake: str, catalog: str, refresh_id: str, body: PartRequest) -> dict[str, Any]:
        """Deliver a part of a listing; twice is as good as once."""
        delivery = Delivery(actor, metalake, catalog, refresh_id, body.turn)
        part = Part(body.schema_, body.part, body.seen, body.entries, body.asked_at)
        return {"refresh": shown(harvest.deliver(delivery, part))}


class HarvestMissing(Endpoint):
    @answers("refresh_catalog", body=MissingRequest, reply={"refresh": RefreshReply}, id="deliverMissing")
    def post(self, actor: Actor, metalake: str, catalog: str, refresh_id: str, body: MissingRequest) -> dict[str, Any]:
        """Say that a listing was read to its end, and what it lacks; that of the schemas ends the refresh."""
        delivery = Delivery(actor, metalake, catalog, refresh_id, body.turn)
        missing = Missing(
            body.schema_, body.missing, body.missing_in_all, body.listed, body.is_last, asked_at=body.asked_at
        )
        return {"refresh": shown(harvest.lack(delivery, missing))}


def _known(known: Known) -> dict[str, Any]:
    return {
        "askedAt": moment_text(known.asked_at),
        "isThere": known.is_there,
        "isWhole": known.is_whole,
        "objects": known.objects,
    }
