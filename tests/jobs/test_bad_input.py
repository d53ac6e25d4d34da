"""Templates that nobody may have: each is refused naming what is wrong, and nothing of it is stored or started."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest

from jobs.models import JobRun, JobTemplate
from jobs.running import runner
from metalake.errors import Invalid
from metalake.protected_files import require_apart
from tests.catalogs.callers import Answer, Caller
from tests.jobs.bodies import RUNS, TEMPLATES, run, shell, spark
from tests.jobs.conftest import SAYS, Write
from tests.jobs.services.test_runs import ran


def refused(answer: Answer, *words: str) -> None:
    assert answer.status in (400, 405) and answer.body["code"] in (1001, 1006), answer.body
    assert all(word in answer.message for word in words), answer.message
    assert not JobTemplate.objects.exists() and not JobRun.objects.exists()


# Places


def test_a_program_outside_the_named_places(admin: Caller, named: Path, program: Write) -> None:
    inside, outside = program(), named.parent / "outside.sh"
    outside.write_text(SAYS)
    outside.chmod(0o700)
    (named / "link.sh").symlink_to(outside)
    (named / "folder").symlink_to(named.parent)
    (named / "within.sh").symlink_to(inside)
    (named.parent / "named-too").mkdir()
    (named.parent / "named-too" / "say.sh").write_text(SAYS)
    for path, word in {
        "/bin/sh": "METALAKE_JOB_PATHS", str(outside): "outside", f"{named}/../outside.sh": "'..'",
        f"{named}/link.sh": "link", f"{named}/folder/outside.sh": "link", f"{named}/within.sh": "link",
        f"{named}-too/say.sh": "outside", "say.sh": "no path", f"{named}//say.sh": "'//'", f"{named}/./say.sh": "'.'",
        str(named): "outside", f"{named}/": "no path", f"{named}/none.sh": "no file", "": "executable",
        f"file://elsewhere{inside}": "no file of this machine", f"http://127.0.0.1{inside}": "no path",
        f"file://{named}/%2e%2e/outside.sh": "'..'", f"{inside} -c id": "no file", f"~{inside}": "no path",
    }.items():  # fmt: skip
        refused(admin.post(TEMPLATES, shell(path)), "executable", word)
    (named / "plain.sh").write_text(SAYS)
    (named / "plain.sh").chmod(0o600)
    refused(admin.post(TEMPLATES, shell(f"{named}/plain.sh")), "executable", "chmod")
    refused(admin.post(TEMPLATES, shell(inside, scripts=["/etc/passwd"])), "scripts[0]", "METALAKE_JOB_PATHS")
    refused(admin.post(TEMPLATES, shell(inside, scripts=[inside, inside])), "scripts", "one name")
    assert admin.post(TEMPLATES, shell(f"file://{inside}")).status == 200


def test_no_place_is_named(admin: Caller, program: Write, settings: Any) -> None:
    path = program()
    settings.METALAKE_JOB_PATHS = ()
    refused(admin.post(TEMPLATES, shell(path)), "executable", "METALAKE_JOB_PATHS", "none is")


def test_a_program_that_becomes_a_link(admin: Caller, named: Path, program: Write) -> None:
    """Between the registration and the start."""
    path = Path(program())
    admin.post(TEMPLATES, shell(str(path)))
    job = admin.post(RUNS, run())["job"]["jobId"]
    outside = named.parent / "outside.sh"
    path.rename(outside)
    path.symlink_to(outside)
    assert runner.work() == 1
    ended = admin.get(f"{RUNS}/{job}")["job"]
    assert ended["status"] == "failed" and "link" in ended["error"]
    assert "link" in admin.post(RUNS, run()).message
    assert JobRun.objects.count() == 1


def test_which_places_can_be_named(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (tmp_path / "link").symlink_to(home)
    require_apart([str(tmp_path / "jobs"), f"{home}2"], [home, "s3://bucket/x", ""])
    for wrong in ("/", "jobs", str(home), str(tmp_path), f"{home}/warehouse/jobs", str(tmp_path / "link"), f"{home}/."):
        with pytest.raises(Invalid):
            require_apart([wrong], [home])
    with pytest.raises(Invalid):
        require_apart([str(home)], [f"file://{home}/tables"])


# Arguments, placeholders and types


def test_placeholders_that_are_none(admin: Caller, named: Path, program: Write) -> None:
    path = program()
    for given in (shell(path, "{{a b}}"), shell(path, "{{}}"), shell(path, "{{$(id)}}"), shell(path, "{{é}}")):
        refused(admin.post(TEMPLATES, given), "placeholder")
    refused(admin.post(TEMPLATES, shell("{{x}}")), "executable", "placeholder")
    refused(admin.post(TEMPLATES, shell(path, scripts=[f"{named}/{{{{x}}}}"])), "scripts", "placeholder")
    refused(admin.post(TEMPLATES, shell(path, environments={"{{x}}": "1"})), "environments", "placeholder")


def test_too_many_and_too_long(admin: Caller, program: Write) -> None:
    path = program()
    refused(admin.post(TEMPLATES, shell(path, *["x"] * 10_000)), "arguments", "256")
    refused(admin.post(TEMPLATES, shell(path, "x" * 10_000)), "arguments", "8192")
    refused(admin.post(TEMPLATES, shell(path, customFields={str(n): "" for n in range(100)})), "customFields")
    refused(admin.post(TEMPLATES, shell("/" + "x" * 10_000)), "executable")
    refused(admin.post(TEMPLATES, shell(path, name="x" * 65)), "name")


def test_wrong_types(admin: Caller, program: Write) -> None:
    path = program()
    mistakes: list[tuple[dict[str, Any], str]] = [
        ({"arguments": "x"}, "arguments"), ({"arguments": [1]}, "arguments[0]"), ({"environments": []}, "environments"),
        ({"environments": {"A": None}}, "environments"), ({"customFields": {"a": 1}}, "customFields"),
        ({"jobType": "python"}, "jobType"), ({"jobType": None}, "jobType"), ({"executable": 1}, "executable"),
        ({"name": ""}, "name"), ({"name": "a b"}, "name"), ({"name": 1}, "name"), ({"comment": 1}, "comment"),
        ({"jars": []}, "jars"), ({"configs": {}}, "configs"), ({"unknown": 1}, "unknown"),
    ]  # fmt: skip
    for wrong, word in mistakes:
        refused(admin.post(TEMPLATES, shell(path, **wrong)), word)
    refused(admin.post(TEMPLATES, {}), "jobTemplate")
    refused(admin.post(TEMPLATES, {"jobTemplate": []}), "jobTemplate")


def test_variables_that_no_template_may_set(admin: Caller, program: Write, settings: Any) -> None:
    path = program()
    refused(admin.post(TEMPLATES, shell(path, environments={"TEAM": "x"})), "TEAM", "METALAKE_JOB_ENVIRONMENT")
    settings.METALAKE_JOB_ENVIRONMENT = ("TEAM", "PATH", "METALAKE_TOKEN")
    for name in ("LD_PRELOAD", "PATH", "METALAKE_TOKEN", "team", "TEAM "):
        refused(
            admin.post(TEMPLATES, shell(path, environments={name: "x"})), "environments", "METALAKE_JOB_ENVIRONMENT"
        )
    assert admin.post(TEMPLATES, shell(path, environments={"TEAM": "x"})).status == 200


# Spark


@pytest.fixture
def jar(named: Path) -> str:
    path = named / "jobs.jar"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("org/example/Pi.class", b"")
    return str(path)


def test_a_class_lies_in_the_jar(admin: Caller, named: Path, jar: str, program: Write) -> None:
    for name in ("org.apache.spark.deploy.PythonRunner", "org/example/Pi", "org.example.Pi --master x", "", "../Pi"):
        refused(admin.post(TEMPLATES, spark(jar, className=name)), "className")
    refused(admin.post(TEMPLATES, spark(jar)), "className")
    refused(admin.post(TEMPLATES, spark(program("x", "no.jar"), className="org.example.Pi")), "no.jar")
    refused(admin.post(TEMPLATES, spark(program("x", "a.py"), className="org.example.Pi")), "className")
    refused(admin.post(TEMPLATES, spark(program())), ".jar or a .py")
    assert admin.post(TEMPLATES, spark(jar, className="org.example.Pi")).status == 200


def test_files_of_spark(admin: Caller, named: Path, program: Write) -> None:
    path = program("x", "a.py")
    for field in ("jars", "files", "archives"):
        refused(admin.post(TEMPLATES, spark(path, **{field: ["/etc/passwd"]})), f"{field}[0]", "METALAKE_JOB_PATHS")
    comma = program("x", "a,b.py")
    refused(admin.post(TEMPLATES, spark(path, files=[comma])), "files", "comma")
    refused(admin.post(TEMPLATES, spark(path, archives=[program("x", "a#b.zip")])), "archives")


def test_settings_of_spark(admin: Caller, program: Write) -> None:
    path = program("x", "a.py")
    for name in (
        "spark.driver.extraJavaOptions", "spark.driver.extraClassPath", "spark.pyspark.python", "spark.plugins",
        "spark.jars", "spark.master", "spark.sql.hive.metastore.jars.path", "spark.submit.pyFiles", "a",
    ):  # fmt: skip
        refused(admin.post(TEMPLATES, spark(path, configs={name: "1g"})), "configs", name)
    admin.post(TEMPLATES, spark(path, configs={"spark.executor.memory": "{{memory}}"}))
    for wrong in ("1g --conf x=y", "1g\nspark.plugins=x", "x" * 65):
        answer = admin.post(RUNS, run("pi", memory=wrong))
        assert answer.status in (400, 405), answer.body
    assert not JobRun.objects.exists()


def test_without_spark_or_java(
    admin: Caller, program: Write, settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    admin.post(TEMPLATES, spark(program("x", "a.py")))
    settings.METALAKE_SPARK_SUBMIT = "/no/spark-submit"
    answer = admin.post(RUNS, run("pi"))
    assert answer.error == (405, 1006, "UnsupportedOperationException") and "METALAKE_SPARK_SUBMIT" in answer.message
    monkeypatch.setattr("jobs.commands.SEARCHED", str(tmp_path))
    answer = admin.post(RUNS, run("pi"))
    assert answer.status == 405 and "Java" in answer.message
    settings.METALAKE_BROKER_URL = "redis://elsewhere"  # a worker may have them
    assert admin.post(RUNS, run("pi")).status == 200


def test_the_command_of_spark(admin: Caller, named: Path, jar: str, program: Write, settings: Any) -> None:
    settings.METALAKE_SPARK_SUBMIT = program("#!/bin/sh\nprintf '%s\\n' \"$@\"\n", "spark-submit")
    settings.METALAKE_SPARK_MASTER = "local[1]"
    body = spark(jar, className="org.example.Pi", arguments=["{{n}}", "x y"], files=[program("x", "a.py")])
    admin.post(TEMPLATES, body["jobTemplate"] and body)
    job = ran(admin, "pi", n="3 4")
    assert job["status"] == "succeeded", job
    text = admin.get(f"{RUNS}/{job['jobId']}/logs")["log"]["text"]
    assert text.splitlines() == [
        "--master", "local[1]", "--name", f"metalake-{job['jobId']}", "--class", "org.example.Pi",
        "--files", f"{named}/a.py", jar, "3 4", "x y",
    ]  # fmt: skip
    assert "mlk_" not in text


def test_a_built_in_tells_a_cluster_what_its_machines_share(admin: Caller, program: Write, settings: Any) -> None:
    settings.METALAKE_SPARK_SUBMIT = program("#!/bin/sh\nprintf '%s\\n' \"$@\"\nenv\n", "spark-submit")
    settings.METALAKE_SPARK_MASTER, settings.METALAKE_SPOOL = "spark://here:7077", "/shared/spool"
    assert admin.post("metalakes/demo/system", {}).status == 200
    job = ran(admin, "builtin-audit_rollup")
    lines = admin.get(f"{RUNS}/{job['jobId']}/logs")["log"]["text"].splitlines()
    assert job["status"] == "succeeded", lines
    assert "METALAKE_SPOOL=/shared/spool" in lines
    assert f"spark.executorEnv.PYTHONPATH={settings.BASE_DIR}" in lines
    assert not [line for line in lines if line.startswith("METALAKE_KEY_FILE")], "none is set"


def test_jobs_need_the_authenticator_of_tokens(admin: Caller, program: Write, settings: Any) -> None:
    admin.post(TEMPLATES, shell(program()))
    settings.METALAKE_AUTHENTICATORS = ("basic",)
    answer = admin.post(RUNS, run())
    assert answer.status == 405 and "METALAKE_AUTHENTICATORS" in answer.message
