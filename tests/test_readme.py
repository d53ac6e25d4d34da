"""The README's examples, run in order against a real server of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.glue import Glue
from tests.hms import HiveMetastore
from tests.servers import REPOSITORY, StartMetalake

pytestmark = pytest.mark.slow

README = (REPOSITORY / "README.md").read_text()
EXAMPLE = re.compile(r"^```(python|bash)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROMISED = re.compile(r"# -> (.*)$", re.MULTILINE)
ADDRESS = "http://127.0.0.1:8090"
METASTORE = "thrift://127.0.0.1:9083"
REGION = '"aws-region": "us-east-1"'


def run(language: str, code: str, environment: dict[str, str]) -> str:
    command = [sys.executable, "-W", "ignore", "-c", code] if language == "python" else ["bash", "-euc", code]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert ended.returncode == 0, f"{code}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout


def test_every_example_does_what_it_says(
    start_metalake: StartMetalake, start_hms: Callable[..., HiveMetastore], glue: Glue
) -> None:
    server, metastore = start_metalake(), start_hms()
    environment = os.environ | {"METALAKE_ADMIN_PASSWORD": server.admin_password}
    environment |= {"AWS_ACCESS_KEY_ID": glue.access_key, "AWS_SECRET_ACCESS_KEY": glue.secret_key}
    glue.client().create_database(DatabaseInput={"Name": "flights"})
    for name in ("airports", "delays"):
        glue.client().create_table(DatabaseName="flights", TableInput={"Name": name, "TableType": "EXTERNAL_TABLE"})
    examples = EXAMPLE.findall(README)
    assert len(examples) >= 7
    for language, code in examples:
        here = code.replace(ADDRESS, server.url).replace(METASTORE, metastore.uri)
        here = here.replace(REGION, f'{REGION}, "aws-glue-endpoint": "{glue.endpoint}"')
        printed = run(language, here, environment)
        if language == "python":
            assert printed.splitlines() == PROMISED.findall(code), code


def test_the_readme_names_only_words_that_make_knows() -> None:
    words = set(re.findall(r"(?:^|`)make ([a-z-]+)", README, re.MULTILINE))
    known = set(re.findall(r"^([a-z-]+):.*##", Path(REPOSITORY / "Makefile").read_text(), re.MULTILINE))
    assert words <= known
