"""Files that follow what is rendered: whole or not at all, ours alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from metalake_client.engines import flink, rendered, trino
from metalake_client.engines.file_writer import write
from metalake_client.failures import Exit, Failure
from tests.metalake_client.engines.catalogs import METALAKE, URL, glue, hive, lake


def files_in(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_only_what_changed_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "etc" / "catalog"
    first = trino.render(URL, METALAKE, [lake(), hive()])
    assert set(write(folder, first).changed) == {"lake.properties", "hms.properties", "hms_iceberg.properties"}
    assert files_in(folder) == dict(first.files)
    inodes = {name: (folder / name).stat().st_ino for name in first.files}
    assert not write(folder, first)
    second = trino.render(URL, METALAKE, [lake(warehouse="s3://b/w"), hive()])
    done = write(folder, second)
    assert (done.changed, done.removed) == (("lake.properties",), ())
    assert files_in(folder) == dict(second.files)
    for name in ("hms.properties", "hms_iceberg.properties"):
        assert (folder / name).stat().st_ino == inodes[name]
    assert (folder / "lake.properties").stat().st_ino != inodes["lake.properties"]


def test_what_goes_is_removed_and_what_is_anothers_stays(tmp_path: Path) -> None:
    others = {"tpch.properties": "connector.name=tpch\n", "notes.txt": "Written by gcli"}
    for name, text in others.items():
        (tmp_path / name).write_text(text)
    elsewhere = trino.render("http://127.0.0.1:80909", METALAKE, [lake("other")])
    write(tmp_path, elsewhere)
    write(tmp_path, trino.render(URL, METALAKE, [lake(), hive()]))
    done = write(tmp_path, trino.render(URL, METALAKE, [hive(**{"list-all-tables": "false"})]))
    assert set(done.removed) == {"lake.properties", "hms_iceberg.properties"}
    assert set(files_in(tmp_path)) == {*others, *elsewhere.files, "hms.properties"}
    (tmp_path / "link.properties").symlink_to(tmp_path / "hms.properties")
    assert write(tmp_path, trino.render(URL, METALAKE, [])).removed == ("hms.properties",)


def test_folders_of_files_go_with_them(tmp_path: Path) -> None:
    write(tmp_path, flink.render(URL, METALAKE, [hive(), hive("two")], version="1.20"))
    (tmp_path / "two" / "core-site.xml").write_text("<configuration/>")
    assert set(write(tmp_path, flink.render(URL, METALAKE, [])).removed) == {"hms/hive-site.xml", "two/hive-site.xml"}
    assert set(files_in(tmp_path)) == {"metalake.sql", "two/core-site.xml"} and not (tmp_path / "hms").exists()


def test_one_catalog_leaves_the_others_alone(tmp_path: Path) -> None:
    write(tmp_path, trino.render(URL, METALAKE, [lake(), hive(), glue()], version=477))
    done = write(tmp_path, trino.render(URL, METALAKE, [glue(table_type_filter="hive")], version=477), ["my_glue"])
    assert done.removed == ("my_glue_iceberg.properties",)
    assert "lake.properties" in files_in(tmp_path) and "hms_iceberg.properties" in files_in(tmp_path)


@pytest.mark.parametrize("kind", ["file", "link", "folder"])
def test_nothing_is_done_where_something_is_in_the_way(tmp_path: Path, kind: str) -> None:
    in_the_way = tmp_path / "lake.properties"
    match kind:
        case "file":
            in_the_way.write_text("connector.name=tpch\n")
        case "link":
            in_the_way.symlink_to("/dev/null")
        case "folder":
            in_the_way.mkdir()
    with pytest.raises(Failure, match=r"lake\.properties was not written by gcli") as refused:
        write(tmp_path, trino.render(URL, METALAKE, [hive(), lake()]))
    assert refused.value.exit_code is Exit.CONFLICT
    assert list(tmp_path.iterdir()) == [in_the_way]


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    for folder in (tmp_path / "taken", tmp_path / "taken" / "in"):
        with pytest.raises(Failure, match=r"taken.* cannot be written") as refused:
            write(folder, trino.render(URL, METALAKE, [lake()]))
        assert refused.value.exit_code is Exit.USAGE


def test_no_half_of_a_file_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, trino.render(URL, METALAKE, [lake()]))
    before = files_in(tmp_path)

    def full(*paths: object) -> None:
        raise OSError(28, "No space left on device", str(tmp_path / "lake.properties"))

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(Failure, match="No space left"):
        write(tmp_path, trino.render(URL, METALAKE, [lake(warehouse="s3://b/w")]))
    assert files_in(tmp_path) == before


def test_others_may_read_as_far_as_the_umask_lets_them(tmp_path: Path) -> None:
    umask = os.umask(0o027)
    try:
        write(tmp_path, trino.render(URL, METALAKE, [lake()]))
    finally:
        os.umask(umask)
    assert (tmp_path / "lake.properties").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("name", ["../lake.properties", "/etc/lake.properties", "a/b/c.sql", "..", "a\\b"])
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "in"
    with pytest.raises(Failure, match="cannot be the name of a file"):
        write(folder, rendered.Rendered("mark", {"good.sql": "-- mark", name: "-- mark"}))
    assert list(folder.iterdir()) == []
