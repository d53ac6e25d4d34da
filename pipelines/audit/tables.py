"""The tables of `system.audit`, partitioned by day and metalake, except those of dormant objects and members."""

from __future__ import annotations

from pipelines.results import ResultTable

DAILY = ("day", "metalake")

CHANGES = ResultTable(
    "audit",
    "changes",
    "day date, metalake string, place bigint, at timestamp, event string, actor string, kind string, "
    "object_id bigint, name string, says string",
    DAILY,
    "What was changed, by whom, and what it was about.",
)
REFUSALS = ResultTable(
    "audit",
    "refusals",
    "day date, metalake string, place bigint, at timestamp, actor string, kind string, asked string, why string",
    DAILY,
    "What was refused, to whom and why.",
)
USE = ResultTable(
    "audit",
    "use",
    "day date, metalake string, hour timestamp, object_id bigint, member string, claimed array<bigint>, "
    "active array<bigint>, operation string, outcome string, wire string, engine string, times bigint, "
    "first_at timestamp, last_at timestamp",
    DAILY,
    "The record of use, hour by hour: who asked what of which object, and how it ended.",
)
DAILY_USE = ResultTable(
    "audit",
    "daily_use",
    "day date, metalake string, object_id bigint, member string, engine string, allowed bigint, refused bigint, "
    "hidden bigint, first_at timestamp, last_at timestamp",
    DAILY,
    "How often each member asked something of each object, with which engine and how it ended.",
)
DAYS = ResultTable(
    "audit",
    "days",
    "day date, metalake string, changes bigint, refusals bigint, last_place bigint, use_digest string, "
    "read_until bigint, seen bigint, whole_before date, tables string",
    DAILY,
    "What each day has, and how far the audit was read when it was written.",
)
ROLLED = (CHANGES, REFUSALS, USE, DAILY_USE, DAYS)

DORMANT_OBJECTS = ResultTable(
    "audit",
    "dormant_objects",
    "metalake string, object_id bigint, kind string, path array<string>, last_at timestamp, since date",
    ("metalake",),
    "Objects of which, and of what lies below them, nothing was used since a day.",
)
DORMANT_PEOPLE = ResultTable(
    "audit",
    "dormant_people",
    "metalake string, member_id bigint, member string, last_at timestamp, since date",
    ("metalake",),
    "Members who asked for nothing since a day.",
)
DORMANT = (DORMANT_OBJECTS, DORMANT_PEOPLE)

# Schemas of rows read from the server.
READ_CHANGES = (
    "place bigint, at timestamp, event string, actor string, kind string, `on` bigint, name string, says string"
)
READ_USE = (
    "hour bigint, `on` bigint, user string, claimed array<bigint>, active array<bigint>, operation string, "
    "outcome string, wire string, engine string, times bigint, first bigint, last bigint"
)
READ_OBJECTS = "id bigint, kind string, name string, lineage string"
READ_MEMBERS = "id bigint, name string"
