"""Locations: one spelling, no way out, nothing next door, and all of a table's locations together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.iceberg.locations import MAX_LENGTH, canonical, check_allowed, is_under, normalise
from formats.iceberg.table_locations import (
    PATH_PROPERTIES,
    check_metadata_locations,
    effective_locations,
    owned_by,
    referenced_files,
)
from metalake.errors import Invalid
from tests.cases import each

UUID = "6f1e2b1c-1111-4222-8333-444455556666"


@each(
    "location, spelled",
    [
        ("s3://bucket", "s3://bucket"),
        ("s3://bucket/", "s3://bucket"),
        ("s3://bucket/a/b/", "s3://bucket/a/b"),
        ("S3A://bucket/A/b", "s3a://bucket/A/b"),
        ("gs://my_bucket.example/x", "gs://my_bucket.example/x"),
        ("abfss://box@acme.dfs.core.windows.net/t", "abfss://box@acme.dfs.core.windows.net/t"),
        ("abfss://box/t", "abfss://box/t"),
        ("hdfs://NameNode:8020/t", "hdfs://NameNode:8020/t"),
        ("hdfs:///t", "hdfs:///t"),
        ("oss://bucket/t", "oss://bucket/t"),
        ("/srv/data/", "file:///srv/data"),
        ("file:/srv/data", "file:///srv/data"),
        ("file:///srv/data", "file:///srv/data"),
        ("FILE:/srv/data", "file:///srv/data"),
        ("s3://b/a b/ü/日本/p=1/x,y", "s3://b/a b/ü/日本/p=1/x,y"),
        ("s3://b/a%20b%3Dc", "s3://b/a%20b%3Dc"),
        ("s3://b/..a/a../...", "s3://b/..a/a../..."),
        ("s3://b/a@c:d+e~f!(g)&h=i_-.", "s3://b/a@c:d+e~f!(g)&h=i_-."),
    ],
)
def test_one_spelling(location, spelled):
    assert normalise(location) == spelled
    assert normalise(spelled) == spelled


# Everything that could be put in the place of a folder's name and must not be.
SEGMENTS = [
    ".", "..", "", "*", "a*", "?", "a?b", "$", "${aws:username}", '"', "'", "a'b", "{", "}", "{a,b}", "`", "`id`", "\\",
    "a\\b", "..\\..", "[a]", "<script>", "a|b", "a;b", ";", "#", "a#b", "a?versionId=1",
    "\0", "a\0b", "\n", "a\nb", "\r", "\t", "\x01", "\x1f", "\x7f", "\x80", "\x9f", "\u2028", "\u2029", "\u200b",
    "\u200d",
    "\u202e", "\u2066", "\ufeff", "\u00ad", "\ue000", "\ud800", "\U000e0041", "\xa0", "\u3000", "\u2003",
    " ", " a", "a ", ".. ", " ..", "%2e", "%2E", "%2e%2e", "%2E%2E", ".%2e", "%2e.", "%2f", "%2F", "a%2fb", "..%2f..",
    "%5c", "%5C", "..%5c", "%00", "%0a", "%0d", "%1f", "%1F", "%7f", "%2a", "%3f", "%24", "%22", "%27", "%7b", "%7d",
    "%60", "%5b", "%3b", "%23", "%252e", "%252e%252e", "%252f", "%25252e", "%25", "%2525", "%61", "%41", "%30", "%7e",
    "%5f", "%2d", "%", "%2", "%zz", "%u002e", "a%", "%%", "%c", "e\u0301", "\u212b", "\uff0e\uff0e", "\u2025", "\uff0f",
    "\u2024", "\ufb01", "\u2460", "\uff05", "\uff0a", "\uff3c",
]  # fmt: skip
WHOLE = [
    "", " ", "relative", "relative/path", "./x", "../x", "~", "~/x", "C:\\x", "C:/x", "\\\\host\\share", "//host/share",
    "///x", "s3", "s3:", "s3:/", "s3://", "s3:///", "s3:///key", "s3:/bucket/key", "s3:bucket/key", "s3//bucket/key",
    "://bucket", ":s3://b", " s3://b/k", "s3://b/k ", "\ts3://b/k", "s3 ://b/k", "s3://b\n/k", "s3\n://b/k",
    "http://169.254.169.254/latest/meta-data", "https://host/x", "ftp://host/x", "sftp://h/x", "gopher://h/x",
    "data:,x",
    "javascript:alert(1)", "jar:file:///x!/y", "zip://x", "memory://x", "hf://datasets/x", "local:/x", "jdbc:x",
    "ssh://h/x",
    "github://a:b@c/x", "smb://h/x", "dbfs:/x", "nfs://h/x", "unix:///x", "fd://0", "glob://x", "classpath:/x",
    "view-fs://x/y",
    "s3://user@bucket/k", "s3://user:pw@bucket/k", "s3://@bucket/k", "gs://a@b/k", "hdfs://user@nn/k", "oss://a:b@c/k",
    "abfss://user:pw@acme.dfs.core.windows.net/k", "abfss://a@b@c/k", "abfss://@acme/k", "abfss:///k",
    "abfss://Box@acme/k",
    "s3://Bucket/k", "s3://BUCKET/k", "s3://buc ket/k", "s3://bucket:80/k", "s3://[::1]/k", "s3://-b/k", "s3://b-/k",
    "s3://.b/k", "s3://b./k", "s3://../k", "s3://b..c/k", "s3://*/k", "s3://b*/k", "s3://b%2fc/k", "s3://%62/k",
    "s3://b\\k",
    "s3://b\u00fc/k", "s3://${x}/k", "s3://b?x/k", "s3://b#x/k", "s3://b,c/k", "s3://b;c/k", "s3://b=c/k", "gs://B/k",
    "hdfs://nn:port/k", "hdfs://nn:999999/k", "hdfs://nn:/k", "hdfs://nn..x/k", "hdfs://nn nn/k", "viewfs://a\\b/k",
    "file:", "file:x", "file:./x", "file:../x", "file:/", "file://", "file:///", "/", "file://host/x",
    "file://localhost/x",
    "file://../x", "file:////etc/x", "file:/x//y", "file:/x/../y", "/x/..", "/..", "/.", "/x/./y", "/x//y", "//x",
    "s3://b//", "s3://b//k", "s3://b/k//", "s3://b/k///", "s3://b/../c", "s3://b/k/..", "s3://b/./k", "s3://b/k?x",
    "s3://b/k#x",
    "s3://b/" + "k" * MAX_LENGTH, "s3://b" * 1_000, "file:///" + "x/" * 2_000, "/" * 50,
]  # fmt: skip
FOLDERS = ("s3://bucket/warehouse", "file:///srv/warehouse", "abfss://box")
HOSTILE = WHOLE + [f"{folder}/{segment}/t" for segment in SEGMENTS for folder in FOLDERS]


def test_the_corpus_is_large_enough():
    assert len(set(HOSTILE)) >= 400


@each("location", HOSTILE)
def test_hostile_locations(location):
    with pytest.raises(Invalid) as caught:
        normalise(location)
    assert "ocation" in caught.value.message
    with pytest.raises(Invalid):
        check_allowed(location, ["s3://bucket", "file:///", "/", "abfss://box"], file_roots=["/"])
    for field in ("location", *PATH_PROPERTIES):
        metadata = {"location": "s3://bucket/t", "properties": {}}
        if field == "location":
            metadata["location"] = location
        else:
            metadata["properties"] = {field: location}
        with pytest.raises(Invalid):
            check_metadata_locations(metadata, ["s3://bucket", "/", "abfss://box"], ["/"])


@pytest.mark.parametrize("location", [None, 1, b"s3://b/k", ["s3://b"], {}])
def test_a_location_is_text(location):
    with pytest.raises(Invalid):
        normalise(location)


def test_passwords_are_not_repeated():
    for location in ("s3://user:hunter2@bucket/k", "s3://b/k?token=hunter2", f"s3://user:{'x' * 300}hunter2@bucket/k"):
        with pytest.raises(Invalid) as caught:
            normalise(location)
        assert "hunter2" not in caught.value.message


@given(st.text(max_size=40), st.sampled_from(["", "s3://", "s3://b/", "file:/", "/", "abfss://a@"]))
def test_any_text_is_spelled_once_or_refused(text, start):
    try:
        spelled = normalise(start + text)
    except Invalid:
        return
    assert normalise(spelled) == spelled
    assert not spelled.endswith("/")
    assert ".." not in spelled.split("/")
    assert is_under(spelled, spelled)


@each(
    "location, prefix, under",
    [
        ("s3://b/t1", "s3://b/t1", True),
        ("s3://b/t1/data", "s3://b/t1", True),
        ("s3://b/t1/data", "s3://b/t1/", True),
        ("s3://b/t1/", "s3://b/t1", True),
        ("s3://b/t10", "s3://b/t1", False),
        ("s3://b/t1", "s3://b/t10", False),
        ("s3://b/t1", "s3://b/t1/data", False),
        ("s3://b/T1", "s3://b/t1", False),
        ("s3://b/t1", "s3://b", True),
        ("s3://bb/t1", "s3://b", False),
        ("s3a://b/t1", "s3://b", True),
        ("s3://b/t1", "s3n://b", True),
        ("gs://b/t1", "s3://b", False),
        ("gcs://b/t1", "gs://b", True),
        ("file:/srv/t", "/srv", True),
        ("file:///srv2/t", "/srv", False),
        ("wasbs://box@acme.blob.core.windows.net/t", "abfss://box@acme.dfs.core.windows.net", True),
        ("abfss://box@evil.dfs.core.windows.net/t", "abfss://box@acme.dfs.core.windows.net", False),
        ("hdfs://NN:8020/t", "hdfs://nn:8020", True),
        ("hdfs://nn:8021/t", "hdfs://nn:8020", False),
        ("s3://b/t%2Fx", "s3://b/t", False),
        ("s3://b/t/p=a%2Fb/f*.parquet", "s3://b/t", True),
    ],
)
def test_under_goes_by_segments(location, prefix, under):
    assert is_under(location, prefix) is under


@pytest.mark.parametrize("file", ["s3://b/t/../x", "s3://b/t//x", "s3://b/t/x?y", "s3://b/t/x#y", "s3://b/t/\0", "x"])
def test_under_refuses_what_two_readers_could_split_differently(file):
    with pytest.raises(Invalid):
        is_under(file, "s3://b/t")


def test_one_place_has_one_canonical_form():
    one = ["s3://b/t", "S3://b/t/", "s3a://b/t", "s3n://b/t"]
    assert {canonical(location) for location in one} == {"s3://b/t"}
    assert canonical("wasb://c@a.blob.core.windows.net/t") == canonical("abfss://c@a.dfs.core.windows.net/t")
    assert canonical("s3://b/t") != canonical("s3://b/T")


class TestAllowed:
    def test_any_of_the_prefixes_will_do(self):
        assert check_allowed("s3a://b/x/", ["gs://c", "s3://b"], file_roots=[]) == "s3a://b/x/"

    @pytest.mark.parametrize("allowed", [[], ["s3://b/y"], ["s3://b/xx"], ["s3://c"], ["file:///"]])
    def test_none_of_them_is_refused(self, allowed):
        with pytest.raises(Invalid, match="allow"):
            check_allowed("s3://b/x", allowed, file_roots=["/"])

    def test_local_files_need_both_the_catalog_and_the_server(self, tmp_path):
        table = f"file:{tmp_path}/warehouse/t"
        warehouse = f"{tmp_path}/warehouse"
        check_allowed(table, [warehouse], file_roots=[str(tmp_path)])
        check_allowed(table, ["s3://b", f"file://{tmp_path}"], file_roots=["/elsewhere", warehouse])
        for allowed, roots in (([], [warehouse]), ([warehouse], []), ([warehouse], [f"{warehouse}2"]), (["/x"], ["/"])):
            with pytest.raises(Invalid):
                check_allowed(table, allowed, file_roots=roots)

    def test_symbolic_links_are_followed(self, tmp_path):
        for folder in ("root/warehouse", "root/other", "outside"):
            (tmp_path / folder).mkdir(parents=True)
        (tmp_path / "root/warehouse/out").symlink_to(tmp_path / "outside")
        (tmp_path / "root/warehouse/next").symlink_to(tmp_path / "root/other")
        (tmp_path / "root/alias").symlink_to(tmp_path / "root/warehouse")
        roots, allowed = [f"{tmp_path}/root"], [f"{tmp_path}/root/warehouse"]
        check_allowed(f"{tmp_path}/root/warehouse/not/there/yet", allowed, file_roots=roots)
        check_allowed(f"{tmp_path}/root/alias/t", allowed, file_roots=roots)
        check_allowed(f"{tmp_path}/root/warehouse/t", [f"{tmp_path}/root/alias"], file_roots=roots)
        for way_out in ("out", "out/t", "next", "next/t"):
            with pytest.raises(Invalid):
                check_allowed(f"{tmp_path}/root/warehouse/{way_out}", allowed, file_roots=roots)


class TestEffectiveLocations:
    def test_every_location_that_makes_somebody_write(self):
        properties = {key: f"s3://b/{number}" for number, key in enumerate(PATH_PROPERTIES)} | {"comment": "s3://c"}
        metadata = {"location": "s3://b/t", "properties": properties}
        assert effective_locations(metadata) == ["s3://b/t", "s3://b/0", "s3://b/1", "s3://b/2", "s3://b/3"]

    def test_each_once_and_whatever_the_case_of_the_key(self):
        metadata = {
            "location": "s3://b/t",
            "properties": {"Write.Data.Path": "s3://b/d", "write.data.path": "s3://b/t"},
        }
        assert effective_locations(metadata) == ["s3://b/t", "s3://b/d"]

    @pytest.mark.parametrize(
        "metadata",
        [{}, {"location": None}, {"location": ""}, {"location": 1}, {"location": "s3://b",
        "properties": {"write.data.path": 1}},
         {"location": "s3://b", "properties": {"write.metadata.path": ""}}],
    )  # fmt: skip
    def test_they_are_text(self, metadata):
        with pytest.raises(Invalid):
            effective_locations(metadata)

    @each("key", ["location", *PATH_PROPERTIES])
    @each("elsewhere", ["file:///elsewhere", "s3://b/warehouse/../escape", "s3://b/warehouse2", "s3://c/t"])
    def test_one_of_them_elsewhere_refuses_the_whole(self, key, elsewhere):
        properties = {"write.data.path": "s3://b/warehouse/d"}
        metadata = {"location": "s3://b/warehouse/t", "properties": properties}
        check_metadata_locations(metadata, ["s3://b/warehouse"], [])
        if key == "location":
            metadata["location"] = elsewhere
        else:
            properties[key] = elsewhere
        with pytest.raises(Invalid):
            check_metadata_locations(metadata, ["s3://b/warehouse"], ["/elsewhere"])


def test_owned_by_looks_at_the_table_not_at_the_warehouse():
    paths = {"write.data.path": "s3://b/w/d", "write.metadata.path": "s3://c/m"}
    metadata = {"location": "s3://b/w/t1", "properties": paths}
    owns = owned_by(effective_locations(metadata), ["s3://b/w"], [])
    assert owns("s3://b/w/t1/x") and owns("s3a://b/w/d/p=a%2Fb/*.parquet")
    for file in (
        "s3://b/w/t10/x",
        "s3://b/w/x",
        "s3://c/m/x",
        "s3://b/w/t1/../x",
        "s3://b/w/t1//x",
        "file:///b/w/t1/x",
        "",
    ):
        assert not owns(file)


def test_referenced_files():
    metadata = {
        "snapshots": [{"manifest-list": "a"}, {"manifests": ["b", "c"]}, {}],
        "statistics": [{"statistics-path": "d"}],
        "partition-statistics": [{"statistics-path": "e"}],
        "metadata-log": [{"metadata-file": "f"}, {}],
    }
    assert list(referenced_files(metadata)) == ["a", "b", "c", "d", "e", "f"]
    assert list(referenced_files({"snapshots": None})) == []
