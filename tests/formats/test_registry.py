"""Output formats: a module and a line in the registry for each; no other module decides by a format's name."""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

import pytest

import s3sink_job
from s3sink_api.formats import FORMATS, INPUT_FORMATS
from s3sink_job.formats.registry import OUTPUT_FORMATS
from s3sink_job.shape.settings import RowKind

KINDS = {
    "Columns": {RowKind.COLUMNS, RowKind.TEXT_COLUMNS},
    "Lines": {RowKind.JSON_LINES, RowKind.TEXT_LINES},
    "Values": {RowKind.VALUES},
}
JOB = Path(s3sink_job.__file__).parent
MAY_NAME_FORMATS = {
    "decode/input_formats.py",
    "decode/schema_languages.py",
    "formats/registry.py",
    # What release 0.1.0 reads is fixed.
    "flush/rollback.py",
    # A reason to flush, by the size of what is due.
    "flush/rules.py",
    # Commands for people, and columns that only some formats keep.
    "proof/reading_hints.py",
    "proof/stored_fields.py",
    # Dead letters have formats of their own.
    "task/letter_objects.py",
    # Which bytes come back from which format.
    "restore/recovery.py",
    # A type that values are cast to.
    "shape/field_steps.py",
}
OF_MANIFESTS = "convert"
"""The folder that writes manifests: formats of other systems become ours by their names."""


def test_every_output_format_is_in_the_registry_under_its_name() -> None:
    assert {name: format.name for name, format in OUTPUT_FORMATS.items()} == {name: name for name in FORMATS}


@pytest.mark.parametrize("name", OUTPUT_FORMATS)
def test_a_format_takes_the_rows_that_the_contract_names(name: str) -> None:
    format = OUTPUT_FORMATS[name]

    assert format.rows in KINDS[FORMATS[format.name].rows]
    assert format.keeps_types == (name != "Csv")
    assert format.one_record_objects == (name == "Bytes")


def test_no_module_but_its_own_decides_by_the_name_of_a_format() -> None:
    quoted = re.compile(rf"""^['"]({"|".join({*FORMATS, *INPUT_FORMATS})})['"]$""")
    found = []
    for path in sorted(JOB.rglob("*.py")):
        name = path.relative_to(JOB).as_posix()
        if name in MAY_NAME_FORMATS or path.parent.name == OF_MANIFESTS:
            continue
        for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
            own = path.stem.lower() == token.string.strip("'\"").lower() and path.parent.name in {"decode", "formats"}
            if token.type == tokenize.STRING and quoted.match(token.string) and not own:
                found.append(f"{name}:{token.start[0]}: {token.line.strip()}")
    assert found == []
