"""Roles for Gravitino's clients, which fail on a privilege that they have no name for and know no times."""

from __future__ import annotations

import pytest

from metalake.privileges import BEYOND_GRAVITINO
from tests.catalogs.callers import Caller
from tests.demo import make_demo

pytestmark = [pytest.mark.store, pytest.mark.django_db]
GRAVITINO = {"Accept": "application/vnd.gravitino.v1+json"}
UNTIL = "2099-01-01T00:00:00.000000Z"


def test_a_role_that_such_a_client_writes_back_loses_nothing(db: None) -> None:
    make_demo()
    admin = Caller("admin")
    on_lake = [{"name": name, "condition": "allow"} for name in (*sorted(BEYOND_GRAVITINO), "use_catalog")]
    on_lake.append({"name": "select_view", "condition": "allow", "endTime": UNTIL})
    held = [
        {"fullName": "lake", "type": "catalog", "privileges": on_lake},
        {"fullName": "demo", "type": "metalake", "privileges": [{"name": "drop_view", "condition": "deny"}]},
    ]
    assert admin.send("POST", "metalakes/demo/roles", {"name": "editor", "securableObjects": held}).status == 200
    whole = admin.send("GET", "metalakes/demo/roles/editor")["role"]["securableObjects"]
    seen = admin.send("GET", "metalakes/demo/roles/editor", **GRAVITINO)["role"]["securableObjects"]
    assert {privilege["name"] for each in seen for privilege in each["privileges"]} == {"use_catalog", "select_view"}
    back = [each | {"privileges": [{"name": p["name"], "condition": p["condition"]} for p in each["privileges"]]}
            for each in seen if each["privileges"]]  # fmt: skip
    answer = admin.send("PUT", "metalakes/demo/permissions/roles/editor", {"overrides": back}, **GRAVITINO)
    assert answer.status == 200, answer.body
    assert admin.send("GET", "metalakes/demo/roles/editor")["role"]["securableObjects"] == whole
    gone = admin.send("PUT", "metalakes/demo/permissions/roles/editor", {"overrides": []}, **GRAVITINO)
    assert gone.status == 200
    left = admin.send("GET", "metalakes/demo/roles/editor")["role"]["securableObjects"]
    assert {p["name"] for each in left for p in each["privileges"]} == set(BEYOND_GRAVITINO)
    assert admin.send("PUT", "metalakes/demo/permissions/roles/editor", {"overrides": []}).status == 200
    assert admin.send("GET", "metalakes/demo/roles/editor")["role"]["securableObjects"] == []
