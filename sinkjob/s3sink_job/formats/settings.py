"""The format of objects and its options, as plain data."""

from __future__ import annotations

from dataclasses import dataclass

from s3sink_api.spec import Spec


@dataclass(frozen=True)
class ParquetOptions:
    row_group_bytes: int = 64 * 2**20
    dictionary: bool = True
    statistics: bool = True
    timestamps: str = "Unchanged"


@dataclass(frozen=True)
class CsvOptions:
    header: bool = True
    delimiter: str = ","
    quote: str = "Minimal"


@dataclass(frozen=True)
class Output:
    format: str
    """The name of an output format: see `registry.py`."""
    codec: str = "None"
    level: int | None = None
    parquet: ParquetOptions = ParquetOptions()
    csv: CsvOptions = CsvOptions()


def output_of(spec: Spec) -> Output:
    parquet, csv = spec.format.parquet, spec.format.csv
    return Output(
        format=spec.format.type,
        codec=spec.format.codec,
        level=spec.format.level,
        parquet=ParquetOptions(parquet.row_group_bytes, parquet.dictionary, parquet.statistics, parquet.timestamps),
        csv=CsvOptions(csv.header, csv.delimiter, csv.quote),
    )
