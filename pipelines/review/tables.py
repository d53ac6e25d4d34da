"""The tables of an access review, in `system.access`. `review` is "now", or the time that a review is as of."""

from __future__ import annotations

from pipelines.results import ResultTable

_ALL = "review string, as_of timestamp"
_ON = "object_id bigint, object_type string, object_name string"

RIGHTS = ResultTable(
    "access",
    "rights",
    f"{_ALL}, principal string, privilege string, kind string, {_ON}, "
    "exceptions array<struct<id: bigint, type: string, name: string>>",
    ("review",),
    "Who can use which privilege on objects of a kind: on this object and all below it, but for the exceptions.",
)
GRANTS = ResultTable(
    "access",
    "grants",
    f"{_ALL}, role string, role_id bigint, {_ON}, privilege string, effect string, grantor string, "
    "granted timestamp, starts timestamp, ends timestamp, holders int, last_used timestamp, unused boolean, "
    "verdict string, by_id bigint, by_type string, by_name string",
    ("review",),
    "Every grant: when it was last used, and whether another makes it redundant or a DENY shadows it.",
)
NEEDS = ResultTable(
    "access",
    "role_needs",
    f"{_ALL}, role string, role_id bigint, privilege string, {_ON}, narrowest_id bigint, narrowest_type string, "
    "narrowest_name string, uses bigint",
    ("review",),
    "The fewest grants of each role that cover what its holders did, and the lowest object that would do for each.",
)
REVIEWS = ResultTable(
    "access",
    "reviews",
    f"{_ALL}, place bigint, days int, recorded_from timestamp, complete_until timestamp, principals bigint, "
    "objects bigint, grants bigint, unused bigint, redundant bigint, shadowed bigint",
    ("review",),
    "What each review was made from.",
)
TABLES = (RIGHTS, GRANTS, NEEDS, REVIEWS)
