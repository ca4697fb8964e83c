"""`docs/architecture.md` is a map of the code: every file on it exists, and its order is the order of the imports."""

from __future__ import annotations

import re
import tomllib
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
JOB, OPERATOR, API = "sinkjob/s3sink_job", "operator/s3sink_operator", "crds/s3sink_api"
RECORD, SPEC_CHANGE = "The path of a record", "The path of a spec change"
PIPELINE = ["kafka", "decode", "shape", "layout", "formats", "stores", "task", "commit"]
CHANGES = [
    *("input format", "output format", "flush rule", "condition", "metric", "command"),
    *("store", "retry policy", "dead letters", "SQL", "table commit", "full refresh"),
]


def section(title: str) -> str:
    _, _, rest = PAGE.partition(f"\n## {title}\n")
    assert rest, title
    return rest.partition("\n## ")[0]


def steps(title: str) -> list[list[str]]:
    """The files of each step of a numbered list."""
    found = re.split(r"^\d+\. ", section(title), flags=re.M)[1:]
    return [files_in(step) for step in found]


def paths_in(text: str) -> list[str]:
    return re.findall(r"`([\w.-]+/[\w./-]*)`", text)


def files_in(text: str) -> list[str]:
    return [path for path in paths_in(text) if (ROOT / path).is_file()]


def room_of(path: str) -> str | None:
    found = re.match(rf"{JOB}/(\w+)/", path)
    return found[1] if found else None


def contracts() -> list[dict[str, Any]]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = settings["tool"]["importlinter"]["contracts"]
    return found


def levels() -> dict[str, int]:
    """The rooms of the job, each with the number of its layer, counted from the bottom."""
    layers = next(c["layers"] for c in contracts() if c["type"] == "layers" and "s3sink_job" in c["containers"])
    return {room: level for level, layer in enumerate(reversed(layers)) for room in re.findall(r"\w+", layer)}


def test_every_path_on_the_page_exists() -> None:
    named = paths_in(PAGE)
    assert len(named) > 50
    assert [path for path in named if not (ROOT / path).exists()] == []
    # A module without its folder would pass unseen.
    assert re.findall(r"`([\w.]+\.py)`", PAGE) == []


@pytest.mark.parametrize("title", [RECORD, SPEC_CHANGE])
def test_every_step_names_a_file(title: str) -> None:
    found = steps(title)
    assert len(found) >= 8
    assert all(found), found


def test_a_record_passes_the_rooms_in_the_order_of_the_layers() -> None:
    named = [room for files in steps(RECORD) for path in files if (room := room_of(path))]
    entered = [room for room, _ in groupby(named)]
    assert len(entered) == len(set(entered)), f"a room is entered twice: {entered}"
    assert [room for room in entered if room in PIPELINE] == PIPELINE
    order = [levels()[room] for room in entered]
    assert order == sorted(order), entered


def test_a_spec_change_goes_from_the_operator_to_the_job_and_back() -> None:
    sides = [{path.split("/")[1] for path in files} for files in steps(SPEC_CHANGE)]
    assert "s3sink_api" in sides[0]
    assert sides[-1] == {"s3sink_operator"}
    job = [number for number, side in enumerate(sides) if "s3sink_job" in side]
    operator = [number for number, side in enumerate(sides) if "s3sink_operator" in side]
    assert job
    assert operator[0] < job[0]
    assert job[-1] < operator[-1]


@pytest.mark.parametrize("package", [JOB, OPERATOR])
def test_every_room_is_named(package: str) -> None:
    rooms = {path.parent.name for path in (ROOT / package).glob("*/__init__.py")}
    assert rooms
    assert rooms - set(re.findall(rf"`{package}/(\w+)/", PAGE)) == set()


def test_the_table_of_easy_changes_names_files_for_each() -> None:
    lines = [line for line in section("Twelve easy changes").splitlines() if line.startswith("|")][2:]
    rows = {line.split("|")[1].strip(): line for line in lines}
    assert list(rows) == CHANGES
    assert [change for change, line in rows.items() if not files_in(line)] == []


@pytest.mark.parametrize(
    "package",
    [
        "s3sink_job",
        "s3sink_operator",
        "s3sink_api",
    ],
)
def test_every_module_of_a_package_is_in_a_layer(package: str) -> None:
    exhaustive = [c for c in contracts() if c["type"] == "layers" and c.get("exhaustive")]
    assert package in {container for contract in exhaustive for container in contract["containers"]}
