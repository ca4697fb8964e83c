"""Trees and contents on pages are what the manifests above them write."""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.examples.running import Place, sinks_in, tree

ROOT = Path(__file__).parents[2]
FENCE = "^```{kind}\n(.*?)^```\n"
SHOWN = re.compile(FENCE.format(kind="yaml") + "\n" + FENCE.format(kind="text"), re.M | re.S)
HELD = re.compile(r"\n`(\S+)` holds:\n\n" + FENCE.format(kind=r"\w+"), re.M | re.S)


@dataclass(frozen=True)
class Picture:
    manifest: str
    tree: str
    held: tuple[tuple[str, str], ...]


def pictures() -> list[Any]:
    found = []
    for page in [ROOT / "docs" / "layouts.md", *sorted((ROOT / "docs" / "formats").glob("*.md"))]:
        text = page.read_text("utf-8")
        for number, shown in enumerate(SHOWN.finditer(text), 1):
            after = text[shown.end() :].partition("```yaml")[0]
            held = tuple((key, content) for key, content in HELD.findall(after))
            found.append(pytest.param(Picture(shown[1], shown[2], held), id=f"{page.stem}-{number}"))
    return found


def test_every_format_page_and_the_layouts_page_have_a_tree() -> None:
    named = {parameter.id.partition("-")[0] for parameter in pictures()}
    assert named == {"layouts", "parquet", "avro", "json", "csv", "text", "bytes", "orc"}


@pytest.mark.parametrize("picture", pictures())
def test_a_tree_on_a_page_is_what_its_manifest_writes(picture: Picture, place: Place) -> None:
    (document,) = sinks_in(picture.manifest)

    report = place.run(document)

    assert report.ok, report.to_doc()
    assert f"{tree(place.objects())}\n" == picture.tree
    for key, content in picture.held:
        body = place.content(key)
        assert (gzip.decompress(body) if key.endswith(".gz") else body).decode() == content
