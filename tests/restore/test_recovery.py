"""What comes back from which objects: the code and the page agree."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from s3sink_api.spec import Transform
from s3sink_job.decode.settings import Decoding
from s3sink_job.formats.settings import CsvOptions, Output
from s3sink_job.layout.settings import Grouping
from s3sink_job.restore.recovery import Recovery, recovery_of
from s3sink_job.shape.settings import ENVELOPE, Shape
from s3sink_job.shape.transform_settings import TransformSettings
from s3sink_job.task.encoding import Encoding

PAGE = Path(__file__).parents[2] / "docs" / "backup-and-restore.md"
SHAPES = {
    "`envelope`": Shape(envelope=ENVELOPE),
    **{f"`columns.meta: {meta}`": Shape(meta=meta) for meta in ("Kafka", "Quix", "None", "Airbyte")},
}
WORDS = {
    "come back as equal JSON": "equal JSON",
    "first field is _value": "equal JSON",
    "made of columns": "from columns",
    "headers are not": "no headers",
    "keys are not": "value only",
    "timestamps are not": "value only",
    "tombstones are empty": "no tombstones",
}


def encoding(format: str, shape: Shape, value: str, key: str = "String") -> Encoding:
    return Encoding(Decoding(key, value), shape, Grouping(), Output(format))  # type: ignore[arg-type]


def words(recovery: Recovery) -> set[str]:
    if recovery.refused:
        return {"refused"}
    found = {word for loss in recovery.losses for text, word in WORDS.items() if text in loss}
    assert all(any(text in loss for text in WORDS) for loss in recovery.losses), recovery.losses
    return (found - {"no headers"} if "value only" in found else found) or {"exact"}


def rows() -> list[tuple[str, str, str, str]]:
    """Format, shape, value format, and what the page says."""
    table = PAGE.read_text(encoding="utf-8").partition("## What comes back\n\n")[2].partition("\n\n")[0].splitlines()
    inputs = [re.findall(r"`(\w+)`", cell) for cell in table[0].split("|")[3:6]]
    found = []
    for line in table[2:]:
        formats, shape, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        for values, cell in zip(inputs, cells, strict=True):
            found += [(format, shape, value, cell) for format in re.findall(r"`(\w+)`", formats) for value in values]
    return found


@pytest.mark.parametrize(("format", "shape", "value", "said"), rows())
def test_the_page_says_what_comes_back(format: str, shape: str, value: str, said: str) -> None:
    assert words(recovery_of(encoding(format, SHAPES[shape], value))) == set(said.split(", "))


def test_the_page_has_every_combination() -> None:
    listed = {(format, shape) for format, shape, _, _ in rows()}
    columns = {(format, shape) for format in ("Parquet", "Avro", "Orc", "Json") for shape in SHAPES}
    csv = {("Csv", shape) for shape in SHAPES if shape != "`envelope`"}
    assert listed == columns | csv | {("Text", "`columns.meta: None`"), ("Bytes", "`columns.meta: None`")}


@pytest.mark.parametrize(("format", "exact"), [("Parquet", False), ("Csv", False), ("Json", None)])
def test_keys_that_are_json_are_equal_or_refused(format: str, exact: bool | None) -> None:
    found = recovery_of(encoding(format, Shape(meta="Kafka"), "Bytes", key="Json"))
    assert (found.exact, bool(found.refused)) == (False, exact is None)


@pytest.mark.parametrize(
    ("changed", "loss"),
    [
        (Shape(envelope=("value", "metadata")), "keys are not in the objects"),
        (Shape(envelope=("key", "value", "headers")), "timestamps are not in the objects"),
        (Shape(meta="Kafka", nulls="Skip"), "tombstones are not in the objects"),
    ],
)
def test_parts_that_are_left_out_are_losses(changed: Shape, loss: str) -> None:
    assert any(loss in text for text in recovery_of(encoding("Parquet", changed, "Bytes")).losses)


def test_an_envelope_without_values_is_refused() -> None:
    assert "no values" in recovery_of(encoding("Json", Shape(envelope=("key",)), "Bytes")).refused


@pytest.mark.parametrize(
    ("format", "shape", "said"),
    [
        ("Parquet", Shape(meta="Quix", flatten=True), "columns.meta Quix with flatten has no headers"),
        ("Json", Shape(meta="Quix", flatten=True), "columns.meta Quix with flatten has no headers"),
        ("Avro", Shape(envelope=ENVELOPE, headers_as="Map"), "only the last header of each name"),
        ("Json", Shape(envelope=ENVELOPE, headers_as="Map"), "only the last header of each name"),
        ("Orc", Shape(envelope=ENVELOPE, key_as="Fields"), "the envelope has the fields of keys"),
    ],
)
def test_shapes_for_tables_are_refused(format: str, shape: Shape, said: str) -> None:
    assert said in recovery_of(encoding(format, shape, "Json", key="Json")).refused


def test_csv_without_quotes_loses_the_difference_between_null_and_empty() -> None:
    made = Encoding(
        Decoding("Bytes", "Bytes"), Shape(meta="Kafka"), Grouping(), Output("Csv", csv=CsvOptions(quote="None"))
    )
    assert any("empty keys and values are null" in text for text in recovery_of(made).losses)


def test_values_that_a_transform_changed_are_refused_and_filtered_records_are_a_loss() -> None:
    plain = encoding("Json", Shape(meta="Kafka"), "Json")
    where, select = (
        replace(plain, transform=TransformSettings(transform))
        for transform in (Transform(where="a > 0"), Transform(select=("a",)))
    )
    assert "records that spec.transform left out are not in the objects" in recovery_of(where).losses
    assert "spec.transform changed the values" in recovery_of(select).refused
