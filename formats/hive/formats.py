"""Hive's file formats by name, with their Java classes in a storage descriptor."""

from __future__ import annotations

from typing import NamedTuple

from metalake.errors import Invalid
from metalake.wire import quote

DEFAULT_FORMAT = "TEXTFILE"


class StorageFormat(NamedTuple):
    """The classes that read and write a table's files."""

    input_format: str
    output_format: str
    serde_lib: str


_MAPRED = "org.apache.hadoop.mapred"
_IO = "org.apache.hadoop.hive.ql.io"
_SERDE = "org.apache.hadoop.hive.serde2"
_TEXT = (f"{_MAPRED}.TextInputFormat", f"{_IO}.HiveIgnoreKeyTextOutputFormat")
LAZY_SIMPLE_SERDE = f"{_SERDE}.lazy.LazySimpleSerDe"

STORAGE_FORMATS = {
    "TEXTFILE": StorageFormat(*_TEXT, LAZY_SIMPLE_SERDE),
    "SEQUENCEFILE": StorageFormat(
        f"{_MAPRED}.SequenceFileInputFormat", f"{_IO}.HiveSequenceFileOutputFormat", LAZY_SIMPLE_SERDE
    ),
    "ORC": StorageFormat(f"{_IO}.orc.OrcInputFormat", f"{_IO}.orc.OrcOutputFormat", f"{_IO}.orc.OrcSerde"),
    "PARQUET": StorageFormat(
        f"{_IO}.parquet.MapredParquetInputFormat",
        f"{_IO}.parquet.MapredParquetOutputFormat",
        f"{_IO}.parquet.serde.ParquetHiveSerDe",
    ),
    "AVRO": StorageFormat(
        f"{_IO}.avro.AvroContainerInputFormat", f"{_IO}.avro.AvroContainerOutputFormat", f"{_SERDE}.avro.AvroSerDe"
    ),
    "JSON": StorageFormat(*_TEXT, "org.apache.hive.hcatalog.data.JsonSerDe"),
    "CSV": StorageFormat(*_TEXT, f"{_SERDE}.OpenCSVSerde"),
    "RCFILE": StorageFormat(
        f"{_IO}.RCFileInputFormat", f"{_IO}.RCFileOutputFormat", f"{_SERDE}.columnar.LazyBinaryColumnarSerDe"
    ),
}
_BY_SERDE = {classes.serde_lib: name for name, classes in STORAGE_FORMATS.items()} | {
    f"{_SERDE}.JsonSerDe": "JSON",
    "org.openx.data.jsonserde.JsonSerDe": "JSON",
    f"{_SERDE}.columnar.ColumnarSerDe": "RCFILE",
}
del _BY_SERDE[LAZY_SIMPLE_SERDE]  # reads both text and sequence files: the input format decides
_BY_INPUT_FORMAT = {
    classes.input_format: name for name, classes in STORAGE_FORMATS.items() if name not in ("JSON", "CSV")
}


def storage_format(name: str, where: str) -> StorageFormat:
    """The classes of a format, by its name in any case. Raises Invalid, naming `where`, for an unknown name."""
    classes = STORAGE_FORMATS.get(name.upper())
    if classes is None:
        raise Invalid(f"{where}: {quote(name)} is none of {', '.join(STORAGE_FORMATS)}", kind="table")
    return classes


def format_name(input_format: str | None, serde_lib: str | None) -> str | None:
    """The name of the format of these classes, or None if they are not Hive's own."""
    return _BY_SERDE.get(serde_lib or "") or _BY_INPUT_FORMAT.get(input_format or "")
