"""Before and after on the pages of docs/migrate/ are what `s3sink convert` makes of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from s3sink_api.spec import check_file
from s3sink_job.convert.conversion import convert
from s3sink_job.convert.output import conversion_text

PAGES = sorted(path for path in (Path(__file__).parents[2] / "docs" / "migrate").glob("*.md") if path.stem != "README")


def test_every_system_has_a_page() -> None:
    names = ["airbyte", "aiven", "confluent", "lenses", "quix", "redpanda-connect"]
    assert [page.stem for page in PAGES] == names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_manifest_after_is_made_of_the_configuration_before(page: Path, tmp_path: Path) -> None:
    text = page.read_text()
    before, after = re.findall(r"^```\w+\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[:2]
    assert conversion_text(convert(before.encode(), page.name, "kafka:9092")) == after
    file = tmp_path / "after.yaml"
    file.write_text(after)
    assert check_file(file)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_page_says_what_differs_and_how_to_go_both_ways(page: Path) -> None:
    titles = re.findall(r"^## (.*)$", page.read_text(), re.MULTILINE)
    assert titles == ["Before", "After", "What differs", "Side by side", "Going back"]
