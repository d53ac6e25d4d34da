"""How properties are written on a command line."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metalake_client.cli.properties import properties_of
from metalake_client.failures import Exit, Failure
from tests.cases import each


@each(
    "text, expected",
    [
        ("aws-region=us-east-1,aws-glue-catalog-id=1", {"aws-region": "us-east-1", "aws-glue-catalog-id": "1"}),
        ('a="x,y",b=z', {"a": "x,y", "b": "z"}),
        (r'a="say \"hi\" \\"', {"a": 'say "hi" \\'}),
        ("url=jdbc:x?a=b", {"url": "jdbc:x?a=b"}),
        ("a=,b=", {"a": "", "b": ""}),
        ('a="",b=', {"a": "", "b": ""}),
        ("a=b,", {"a": "b"}),
        ("", {}),
    ],
)
def test_properties_are_read(text: str, expected: dict[str, str]) -> None:
    assert properties_of([text]) == expected


@given(st.dictionaries(st.from_regex(r"[a-z][a-z.-]{0,8}", fullmatch=True), st.text(max_size=20), max_size=4))
def test_every_value_can_be_written(properties: dict[str, str]) -> None:
    quoted = (value.replace("\\", "\\\\").replace('"', '\\"') for value in properties.values())
    text = ",".join(f'{key}="{value}"' for key, value in zip(properties, quoted, strict=True))
    assert properties_of([text]) == properties


@pytest.mark.parametrize("text", ["a", "a,b=c", "=b", 'a="b', 'a="b"c', 'a="b\\', "a=b,c"])
def test_what_is_no_property_is_named(text: str) -> None:
    with pytest.raises(Failure, match="--properties") as refused:
        properties_of([text])
    assert refused.value.exit_code is Exit.USAGE


def test_a_file_gives_properties_that_options_change(tmp_path: Path) -> None:
    lines, data = tmp_path / "lines", tmp_path / "data.json"
    lines.write_text("# a comment\n\na = b=c\nd=e,f\n")
    data.write_text('{"a": "b=c", "d": "e,f"}')
    for file in (lines, data):
        assert properties_of([], file) == {"a": "b=c", "d": "e,f"}
        assert properties_of(["a=1", "g=2"], file) == {"a": "1", "d": "e,f", "g": "2"}


VALUES = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
LINES = VALUES.map(lambda value: value.replace("\n", "").strip(" \t\r"))


@given(st.dictionaries(st.from_regex(r"[a-z][a-z.-]{0,8}", fullmatch=True), VALUES, max_size=4))
def test_every_value_can_be_in_a_file(properties: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        data.write_bytes(b"\xef\xbb\xbf" * bool(properties) + json.dumps(properties).encode())
        assert properties_of([], data) == properties


@given(st.dictionaries(st.from_regex(r"[a-z][a-z.-]{0,8}", fullmatch=True), LINES, max_size=4))
def test_every_value_of_one_line_can_be_on_a_line(properties: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "lines"
        lines.write_bytes("".join(f" {key} = {value} \r\n" for key, value in properties.items()).encode())
        assert properties_of([], lines) == properties


def test_what_is_wrong_in_a_file_is_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "properties"
    file.write_text("a=b\ns3cret\n")
    with pytest.raises(Failure, match="line 2 is not key=value") as refused:
        properties_of([], file)
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("content", [b"a", b"=a", b'{"a": 1}', b'{"a"', b"\xff=", b'{"a":' * 100_000])
def test_a_file_that_holds_no_properties_is_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "properties"
    file.write_bytes(content)
    with pytest.raises(Failure, match=str(file)):
        properties_of([], file)
    with pytest.raises(Failure, match="cannot be read"):
        properties_of([], tmp_path / "none")
