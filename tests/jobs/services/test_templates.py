"""Job templates on the wire: register, list, load, alter, delete, with the rights and the audit of each."""

from __future__ import annotations

import pytest

from authz.models import AuditEntry, Grant
from jobs import built_in
from jobs.models import JobTemplate
from metalake.kinds import Kind
from tests.catalogs.callers import Caller, update
from tests.demo import give
from tests.jobs.bodies import TEMPLATES, run, shell
from tests.jobs.conftest import Write

pytestmark = pytest.mark.store
BUILT_IN = "builtin-check_server"


def names(caller: Caller) -> list[str]:
    listed: list[str] = caller.get(TEMPLATES)["names"]
    return [name for name in listed if not name.startswith("builtin-")]


def test_it_works(admin: Caller, program: Write) -> None:
    path = program()
    asked = shell(
        path, "--x={{x}}", "{{y}}", comment="says", customFields={"team": "a"}, scripts=[program(name="b.sh")]
    )
    assert admin.post(TEMPLATES, asked).status == 200
    loaded = admin.get(f"{TEMPLATES}/say")["jobTemplate"]
    audit = loaded.pop("audit")
    assert audit["creator"] == "admin" and audit["createTime"]
    expected = asked["jobTemplate"]
    del expected["audit"]
    assert loaded == expected
    assert names(admin) == ["say"]
    details = admin.get(f"{TEMPLATES}?details=true")["jobTemplates"]
    assert [each["name"] for each in details] == [*sorted(built_in.offered()), "say"]
    (row,) = AuditEntry.objects.filter(event="job_template.registered")
    assert (row.actor, row.kind, row.full_name, row.details) == ("admin", "job_template", "say", {"executable": path})


def test_a_name_is_used_once(admin: Caller, program: Write) -> None:
    admin.post(TEMPLATES, shell(program()))
    again = admin.post(TEMPLATES, shell(program()))
    assert again.error == (409, 1004, "JobTemplateAlreadyExistsException")


def test_altering(admin: Caller, program: Write) -> None:
    admin.post(TEMPLATES, shell(program(), "{{x}}"))
    new = {"@type": "shell", "newExecutable": program(name="other.sh"), "newArguments": ["{{z}}"], "newScripts": None}
    changes = [
        update("rename", newName="tell"),
        update("updateComment", newComment="new"),
        update("updateTemplate", newTemplate=new | {"newEnvironments": None, "newCustomFields": {"a": "b"}}),
    ]
    altered = admin.put(f"{TEMPLATES}/say", *changes)["jobTemplate"]
    assert (altered["name"], altered["comment"], altered["arguments"]) == ("tell", "new", ["{{z}}"])
    assert altered["executable"].endswith("other.sh") and altered["customFields"] == {"a": "b"}
    assert altered["audit"]["lastModifier"] == "admin"
    assert admin.get(f"{TEMPLATES}/say").error == (404, 1003, "NoSuchJobTemplateException")
    (row,) = AuditEntry.objects.filter(event="job_template.altered")
    assert row.details == {"changed": ["comment", "content", "name"]}
    assert admin.put(f"{TEMPLATES}/tell")["jobTemplate"]["audit"] == altered["audit"]  # nothing is no change
    of_spark = update("updateTemplate", newTemplate={"@type": "spark", "newJars": []})
    assert admin.put(f"{TEMPLATES}/tell", of_spark).error == (400, 1001, "IllegalArgumentException")
    outside = update("updateTemplate", newTemplate={"@type": "shell", "newExecutable": "/bin/sh"})
    assert "METALAKE_JOB_PATHS" in admin.put(f"{TEMPLATES}/tell", outside).message


def test_deleting(admin: Caller, program: Write) -> None:
    admin.post(TEMPLATES, shell(program()))
    give(None, Kind.JOB_TEMPLATE, "say", "use_job_template")
    job = admin.post("metalakes/demo/jobs/runs", run())["job"]["jobId"]
    assert admin.delete(f"{TEMPLATES}/say").error == (409, 1010, "JobTemplateInUseException")
    admin.post(f"metalakes/demo/jobs/runs/{job}")
    assert admin.delete(f"{TEMPLATES}/say")["dropped"] is True
    assert admin.delete(f"{TEMPLATES}/say")["dropped"] is False
    assert not JobTemplate.objects.exists() and not Grant.objects.exists()
    assert admin.get(f"metalakes/demo/jobs/runs/{job}").error == (404, 1003, "NoSuchJobException")
    assert AuditEntry.objects.filter(event="job_template.dropped").count() == 1


def test_a_metalake_is_dropped_with_its_templates(admin: Caller, program: Write) -> None:
    admin.post(TEMPLATES, shell(program()))
    admin.post("metalakes/demo/jobs/runs", run())
    assert admin.delete("metalakes/demo?force=true")["dropped"] is True
    assert not JobTemplate.objects.exists()


# Rights


def test_who_may_what(admin: Caller, mia: Caller, program: Write) -> None:
    asked = shell(program(), name="mine")
    assert mia.post(TEMPLATES, asked).error == (403, 1008, "ForbiddenException")
    give("mia", Kind.METALAKE, "demo", "register_job_template")
    assert mia.post(TEMPLATES, asked).status == 200
    admin.post(TEMPLATES, shell(program()))
    assert names(mia) == ["mine"]  # the owner uses it, others' are hidden
    for method, body in (("GET", None), ("PUT", {"updates": []}), ("DELETE", None)):
        hidden, missing = (mia.send(method, f"{TEMPLATES}/{name}", body) for name in ("say", "none"))
        assert hidden.status == missing.status
        assert {**hidden.body, "message": ""} == {**missing.body, "message": ""}
    give("mia", Kind.JOB_TEMPLATE, "say", "use_job_template")
    assert names(mia) == ["mine", "say"]
    assert mia.get(f"{TEMPLATES}/say").status == 200
    assert mia.put(f"{TEMPLATES}/say").error == (403, 1008, "ForbiddenException")
    assert mia.delete(f"{TEMPLATES}/say").error == (403, 1008, "ForbiddenException")
    give("mia", Kind.METALAKE, "demo", "deny use_job_template")
    assert names(mia) == ["mine"]
    assert mia.get(f"{TEMPLATES}/say").status == 404


def test_the_owner_of_a_template(admin: Caller, mia: Caller, program: Write) -> None:
    admin.post(TEMPLATES, shell(program()))
    owner = "metalakes/demo/owners/job_template/say"
    assert admin.get(owner)["owner"] == {"name": "admin", "type": "USER"}
    assert mia.get(owner).status == 404
    assert admin.send("PUT", owner, {"name": "mia", "type": "USER"})["set"] is True
    assert mia.put(f"{TEMPLATES}/say", update("updateComment", newComment="hers")).status == 200
    assert admin.delete("metalakes/demo/users/mia")["removed"] is True
    assert admin.get(owner)["owner"]["name"] == "admin"


def test_grants_are_given_taken_and_explained(admin: Caller, mia: Caller, program: Write) -> None:
    admin.post(TEMPLATES, shell(program()))
    admin.post("metalakes/demo/roles", {"name": "users"})
    grant = "metalakes/demo/permissions/roles/users/job_template/say"
    entry = {"privileges": [{"name": "USE_JOB_TEMPLATE", "condition": "ALLOW"}]}
    role = admin.send("PUT", f"{grant}/grant", entry)["role"]
    (on,) = role["securableObjects"]
    assert (on["type"], on["fullName"]) == ("job_template", "say")
    admin.send("PUT", "metalakes/demo/permissions/users/mia/grant", {"roleNames": ["users"]})
    assert names(mia) == ["say"]
    assert admin.get("metalakes/demo/objects/job_template/say/roles")["names"] == ["users"]
    admin.send("PUT", f"{grant}/revoke", entry)
    assert names(mia) == []
    assert mia.send("PUT", f"{grant}/grant", entry).status == 404


def test_a_disabled_metalake(admin: Caller, program: Write) -> None:
    admin.patch("metalakes/demo", False)
    for answer in (admin.get(TEMPLATES), admin.post(TEMPLATES, shell(program())), admin.get(f"{TEMPLATES}/say")):
        assert answer.error == (409, 1009, "MetalakeNotInUseException")


# Templates that are built in


def test_built_in_templates(admin: Caller, mia: Caller, program: Write) -> None:
    loaded = admin.get(f"{TEMPLATES}/{BUILT_IN}")["jobTemplate"]
    assert loaded["jobType"] == "shell" and loaded["arguments"] == ["--times={{times}}"]
    assert mia.get(f"{TEMPLATES}/{BUILT_IN}").error == (404, 1003, "NoSuchJobTemplateException")
    assert mia.get(TEMPLATES)["names"] == []
    give("mia", Kind.METALAKE, "demo", "use_job_template")
    assert mia.get(TEMPLATES)["names"] == sorted(built_in.offered())
    for answer in (
        admin.post(TEMPLATES, shell(program(), name="builtin-mine")),
        admin.put(f"{TEMPLATES}/{BUILT_IN}", update("rename", newName="mine")),
        admin.delete(f"{TEMPLATES}/{BUILT_IN}"),
    ):
        assert answer.error == (400, 1001, "IllegalArgumentException")
    admin.post(TEMPLATES, shell(program()))
    assert admin.put(f"{TEMPLATES}/say", update("rename", newName="builtin-say")).status == 400


def test_a_module_that_is_absent_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = [built_in.BuiltIn(name=f"builtin-{m}", module=m, comment="") for m in ("no_package.x", "pipelines.none")]
    monkeypatch.setattr(built_in, "DECLARED", (*built_in.DECLARED, *absent))
    assert list(built_in.offered.__wrapped__()) == [each.name for each in built_in.DECLARED[: -len(absent)]]
