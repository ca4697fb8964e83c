"""What a format can do stands in one row; nothing else in the contract decides by a format's name."""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path
from typing import get_args

import pytest

import s3sink_api
from s3sink_api.formats import FORMATS, INPUT_FORMATS, LEVELS, Codec, FormatType, InputFormat
from s3sink_api.spec import Format

CONTRACT = Path(s3sink_api.__file__).parent
# The table, sentences about fields, and classes that are called like a format.
MAY_NAME_FORMATS = {"formats.py", "definition/descriptions.py", "spec/__init__.py"}
DEFAULTS = {"format: InputFormat =", "CastType ="}


def test_every_format_has_a_row() -> None:
    assert tuple(FORMATS) == get_args(FormatType)
    assert tuple(INPUT_FORMATS) == get_args(InputFormat)


@pytest.mark.parametrize("kind", FORMATS)
def test_the_row_of_a_format_agrees_with_the_spec(kind: FormatType) -> None:
    traits = FORMATS[kind]
    assert traits.default_codec in traits.codecs
    assert Format(type=kind).codec == traits.default_codec
    assert not traits.options or hasattr(Format(), traits.options)
    assert traits.rows == "Values" or not traits.one_record_objects


def test_levels_are_of_known_codecs() -> None:
    assert set(LEVELS) < set(get_args(Codec))


def test_a_schema_can_be_given_to_every_input_format_that_needs_one() -> None:
    for kind, traits in INPUT_FORMATS.items():
        assert not traits.needs_schema or traits.registry or traits.inline_schema, kind


def test_no_module_but_the_table_decides_by_the_name_of_a_format() -> None:
    """Neither in Python nor within the CEL of a rule."""
    quoted = re.compile(rf"""['"]({"|".join((*FORMATS, *INPUT_FORMATS))})['"]""")
    found = []
    for path in sorted(CONTRACT.rglob("*.py")):
        if (name := str(path.relative_to(CONTRACT))) in MAY_NAME_FORMATS:
            continue
        for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
            given = any(default in token.line for default in DEFAULTS)
            if token.type == tokenize.STRING and quoted.search(token.string) and not given:
                found.append(f"{name}:{token.start[0]}: {token.line.strip()}")
    assert found == []
