"""Documentation that a reader may rely on: what it names exists, and what exists is named."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import typer.main
from prometheus_client import CollectorRegistry

from s3sink_api.formats import LEVELS, Codec
from s3sink_api.spec import CODECS, NOT_BUILT, SpecError, load_file
from s3sink_api.spec.field_locations import fields, sections
from s3sink_api.spec.format import Format
from s3sink_api.spec.sink import Spec
from s3sink_job.cli.app import app
from s3sink_job.flush.manifest import manifest_from_json
from s3sink_job.flush.problem import UNAVAILABLE
from s3sink_job.flush.statefile import state_from_json, state_to_json
from s3sink_job.formats.compression import CODEC_EXTENSIONS, DEFAULT_LEVELS
from s3sink_job.formats.registry import OUTPUT_FORMATS
from s3sink_job.kafka import letter_topic
from s3sink_job.kafka.admin import FINAL
from s3sink_job.report.metrics import Metrics
from s3sink_job.restore import sending
from s3sink_job.task.encoding_documents import encoding_from_doc, encoding_to_doc
from s3sink_operator.metrics import Metrics as OperatorMetrics
from s3sink_operator.process.watch_liveness import WatchLiveness

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *DOCS.rglob("*.md"),
        *(ROOT / d / "README.md" for d in ("crds", "charts", "benchmarks", "examples")),
    ]
)
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
NEVER = "\u2013"
LEDGER = {"Q": 8, "L": 19, "C": 13, "A": 5, "K": 7, "B": 22, "S": 9}


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def fenced_manifests() -> Iterator[Any]:
    for path in PAGES:
        for number, block in enumerate(re.findall(r"^```yaml\n(.*?)^```", path.read_text("utf-8"), re.M | re.S), 1):
            yield pytest.param(block, id=f"{named(path)}-{number}")


@pytest.mark.parametrize("block", list(fenced_manifests()))
def test_a_manifest_copied_from_a_page_is_taken(block: str, tmp_path: Path) -> None:
    file = tmp_path / "sink.yaml"
    file.write_text(block, encoding="utf-8")
    load_file(file)


@pytest.mark.parametrize("path", EXAMPLES, ids=named)
def test_an_example_is_taken_and_brings_the_secrets_it_names(path: Path) -> None:
    loaded = load_file(path)
    text = path.read_text(encoding="utf-8")
    assert set(re.findall(r"secretRef: \{name: ([\w.-]+)\}", text)) == set(loaded.secrets)


@pytest.mark.parametrize("row", NOT_BUILT, ids=lambda row: row.path)
def test_what_is_not_built_is_listed_with_what_to_do_instead(row: Any) -> None:
    lines = [line for line in page("manifest.md").splitlines() if line.startswith(f"| `{row.path}` |")]
    assert any(row.instead in line.replace("`", "") for line in lines)


def test_nothing_is_listed_as_not_built_that_is_built() -> None:
    listed = re.findall(r"^\| `([\w.]+)` \|", page("manifest.md").split("## Not built yet")[1], re.M)
    assert listed == [row.path for row in NOT_BUILT]


def leaves(kind: Any, path: str) -> Iterator[str]:
    for name, inner in {n: k for section in sections(kind) for n, k in fields(section).items()}.items():
        here = f"{path}.{name}"
        deeper = list(leaves(inner, here))
        secret = all(leaf.startswith(f"{here}.secretRef") for leaf in deeper)
        yield from [here] if secret else deeper


def test_every_field_of_the_manifest_is_described() -> None:
    text = page("manifest.md")
    unbuilt = {row.path for row in NOT_BUILT}
    missing = {
        path
        for path in leaves(Spec, "spec")
        if f"`{path}`" not in text and not any(path.startswith(f"{section}.") for section in unbuilt)
    }
    assert missing == set()


def test_no_field_is_described_that_the_manifest_lacks() -> None:
    known = set(leaves(Spec, "spec")) | {row.path for row in NOT_BUILT}
    named_fields = set(re.findall(r"`(spec\.[\w.]+)`", page("manifest.md")))
    assert named_fields - known == set()


def exported(registry: CollectorRegistry) -> set[str]:
    return {f"{family.name}_total" if family.type == "counter" else family.name for family in registry.collect()}


def operators() -> CollectorRegistry:
    registry = CollectorRegistry()
    OperatorMetrics(lambda: (), registry)
    WatchLiveness((), 0.0).export(registry)
    return registry


def test_metrics_and_their_page_agree() -> None:
    assert set(re.findall(r"^\| `(s3sink_\w+)` \|", page("metrics.md"), re.M)) == exported(Metrics().registry)


def test_the_operators_metrics_and_their_page_agree() -> None:
    section = page("operator.md").partition("## Watching it")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    named_there = {name for row in rows for name in re.findall(r"`(s3sink_\w+)", row)}
    assert named_there == exported(operators())


def test_every_metric_that_any_page_names_exists() -> None:
    known = exported(Metrics().registry) | exported(operators())
    for path in PAGES:
        used = set(re.findall(r"\bs3sink_(?!api\b|job\b|operator\b)\w+", path.read_text("utf-8")))
        assert used <= known, named(path)


def reasons() -> set[str]:
    """Every reason the code gives, from the calls and classes that carry one."""
    found = {kind.removesuffix("Exception") for kind in (*FINAL, *letter_topic.FINAL, *sending.FINAL)} | {UNAVAILABLE}
    folders = (ROOT / "sinkjob" / "s3sink_job", ROOT / "crds" / "s3sink_api" / "spec")
    for path in (path for folder in folders for path in folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.keyword(arg="reason", value=ast.Constant(value=str(reason))):
                    found.add(reason)
                case ast.Assign(targets=[ast.Name(id="reason")], value=ast.Constant(value=str(reason))):
                    found.add(reason)
                case ast.Call(func=ast.Name(id="Problem" | "Failure"), args=[ast.Constant(value=str(reason)), *_]):
                    found.add(reason)
    return found


def test_every_error_reason_is_explained() -> None:
    explained = set(re.findall(r"^\| `(\w+)` \|", page("troubleshooting.md"), re.M))
    assert explained == reasons()


def test_every_command_and_option_is_described() -> None:
    text = page("cli.md")
    command: Any = typer.main.get_command(app)
    for name, sub in command.commands.items():
        assert f"## {name}\n" in text
        for option in sub.params:
            for spelling in [*option.opts, *option.secondary_opts]:
                assert f"`{spelling}" in text, f"{name} {spelling}"
            if isinstance(option.envvar, str):
                assert f"`{option.envvar}`" in text


def features() -> str:
    return page("features.md")


def test_the_ledger_has_every_row_once_with_a_test_or_a_word() -> None:
    rows = re.findall(r"^\| ([A-Z]\d+) \|.*\| (.*) \|$", features(), re.M)
    assert [number for number, _ in rows] == [f"{k}{n}" for k, count in LEDGER.items() for n in range(1, count + 1)]
    for number, shown in rows:
        assert "::test_" in shown or "not yet" in shown or shown.startswith("partly: "), number


def functions_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_the_ledger_names_only_tests_that_exist() -> None:
    missing = []
    for file, test in re.findall(r"`((?:tests|e2e)/[\w/]+\.py)::(\w+)`", features()):
        path = ROOT / file
        if not path.is_file() or test not in functions_of(path):
            missing.append(f"{file}::{test}")
    assert missing == []
    assert len(re.findall(r"`(?:tests|e2e)/", features())) >= features().count("::")


def test_the_table_of_codecs_is_the_codes() -> None:
    table = features().split("## Compression by format")[1]
    header = [cell.strip().capitalize() for cell in re.search(r"^\| \|(.*)\|$", table, re.M)[1].split("|")]  # type: ignore[index]
    for kind, codecs in CODECS.items():
        row = re.search(rf"^\| {kind} \|(.*)\|$", table, re.M)
        assert row is not None, kind
        cells = dict(zip(header, (cell.strip() for cell in row[1].split("|")), strict=True))
        assert {codec for codec, cell in cells.items() if cell != NEVER} == set(codecs)
        built = {codec for codec, cell in cells.items() if cell == "works"}
        assert built == {codec for codec in codecs if taken(kind, codec)}


def rows_of(text: str) -> dict[str, list[str]]:
    """The rows of tables by their first cell."""
    found = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    return {row[0].strip("`"): row[1:] for row in found}


def test_the_codecs_on_the_page_of_formats_are_the_codes() -> None:
    rows = rows_of(page("formats.md").partition("## Compression")[2].partition("\n## ")[0])
    groups = [re.findall(r"\w+", names) for names in rows["codec"][:5]]
    for codec in get_args(Codec):
        *taken_by, levels, default, extension = rows[codec]
        cells = {kind: cell for kinds, cell in zip(groups, taken_by, strict=True) for kind in kinds}
        assert {kind for kind, cell in cells.items() if cell != NEVER} == {
            k for k, own in CODECS.items() if codec in own
        }
        assert {kind for kind, cell in cells.items() if cell == "default"} == {
            kind for kind in CODECS if Format(type=kind).codec == codec
        }
        assert levels == NEVER.join(map(str, LEVELS.get(codec, ("", ""))))
        assert default == str(DEFAULT_LEVELS.get(codec, NEVER))
        assert extension.strip("`") == CODEC_EXTENSIONS.get(codec, "")


def test_extensions_and_content_types_on_the_page_of_formats_are_the_codes() -> None:
    shown = re.findall(r"^\| \[`(\w+)`\]\(formats/\w+\.md\).*\| `(\S+)` \| `([^`]+)` \|$", page("formats.md"), re.M)
    assert {kind: extension for kind, extension, _ in shown} == {
        kind: f.extension for kind, f in OUTPUT_FORMATS.items()
    }
    assert {kind: content for kind, _, content in shown} == {kind: f.content_type for kind, f in OUTPUT_FORMATS.items()}


def taken(kind: str, codec: str) -> bool:
    from s3sink_api.spec import parse

    spec = {
        "source": {"bootstrapServers": "kafka:9092", "topics": ["orders"]},
        "destination": {"bucket": "lake"},
        "format": {"type": kind, "compression": {"codec": codec}},
    }
    document = {"apiVersion": "s3sink.dev/v1alpha1", "kind": "S3Sink", "metadata": {"name": "a"}, "spec": spec}
    try:
        parse(document)
    except SpecError:
        return False
    return True


def test_state_and_manifest_on_the_page_have_the_fields_of_real_ones() -> None:
    state, manifest = re.findall(r"^```json\n(.*?)^```", page("how-it-works.md"), re.M | re.S)
    assert json.loads(state_to_json(state_from_json(state.encode(), "the page"))) == json.loads(state)
    read = manifest_from_json(manifest.encode(), "the page")
    assert json.loads(read.to_json()) == json.loads(manifest)
    assert json.loads(json.dumps(encoding_to_doc(encoding_from_doc(read.encoding)))) == read.encoding


@pytest.mark.parametrize("path", PAGES, ids=named)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\((?!https?://)([^)]+)\)", path.read_text(encoding="utf-8")):
        name, _, anchor = target.partition("#")
        there = (path.parent / name).resolve() if name else path
        assert there.exists(), target
        if anchor:
            assert anchor in anchors_of(there), target


def anchors_of(path: Path) -> set[str]:
    """Those of the headings, and those that are written out where a heading was renamed."""
    text = path.read_text(encoding="utf-8")
    titles = re.findall(r"^#+ (.*)$", text, re.M)
    made = {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
    return made | set(re.findall(r'^<a id="([\w-]+)"></a>$', text, re.M))


def test_the_index_of_decisions_is_whole() -> None:
    index = page("decisions/README.md")
    records = sorted(p.name for p in (DOCS / "decisions").glob("[0-9]*.md"))
    assert re.findall(r"\((\d{4}-[\w-]+\.md)\)", index) == records
    for name in records:
        assert re.findall(r"^## (.*)$", page(f"decisions/{name}"), re.M) == ["Context", "Decision", "Consequences"]
