"""How properties are written on a command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metalake_client.cli.properties import properties_of
from metalake_client.failures import Exit, Failure


@pytest.mark.parametrize(
    ("text", "expected"),
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


@pytest.mark.parametrize("content", [b"a", b'{"a": 1}', b'{"a"', b"\xff="])
def test_a_file_that_holds_no_properties_is_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "properties"
    file.write_bytes(content)
    with pytest.raises(Failure, match=str(file)):
        properties_of([], file)
    with pytest.raises(Failure, match="cannot be read"):
        properties_of([], tmp_path / "none")
