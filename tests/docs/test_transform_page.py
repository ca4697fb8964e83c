"""Every example of docs/transform.md does what the page says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from tests.decode.batches import TOPIC, batch_of
from tests.encodings import encoding

PAGE = Path("docs/transform.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```yaml transform\n(.*?)```\n```(json|text)\n(.*?)```\n```json\n(.*?)```", PAGE, re.S)


def test_no_example_is_left_out() -> None:
    assert len(EXAMPLES) == PAGE.count("```yaml") == 7


@pytest.mark.parametrize(("transform", "kind", "records", "result"), EXAMPLES)
def test_the_example_gives_what_the_page_shows(transform: str, kind: str, records: str, result: str) -> None:
    value = "Json" if kind == "json" else "String"
    wanted = encoding(format="Json", transform=yaml.safe_load(transform), value=value)
    found = wanted.row_builder(TOPIC).build(batch_of(*(line.encode() for line in records.splitlines())))
    assert found.bad.messages == {}
    lines = [json.loads(line) for line in found.rows.column("line").to_pylist()]
    assert lines == [json.loads(line) for line in result.splitlines()]
