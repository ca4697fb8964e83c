"""Generated files are up to date, and every value is documented and used."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
import yaml

from charts.generate import IMAGE, ROOT, files, values
from s3sink_operator.process.flags import flag_parser
from tests.charts.cases import CASES, Document, only, rendered
from tools.parts.helm import CHART, helm


def put(path: str, value: Any) -> dict[str, Any]:
    for name in reversed(path.split(".")):
        value = {name: value}
    return dict(value)


def held(document: Any, path: str) -> Any:
    for name in path.split("."):
        document = document.get(name) if isinstance(document, dict) else None
    return document


def environment(documents: list[Document]) -> dict[str, str]:
    (container,) = only(documents, "Deployment")["spec"]["template"]["spec"]["containers"]
    return {variable["name"]: variable["value"] for variable in container["env"]}


def test_generated_files_are_up_to_date() -> None:
    stale = [str(path.relative_to(ROOT)) for path, text in files().items() if path.read_text() != text]
    assert stale == [], "run `python -m charts.generate`"


def test_helm_lint_passes() -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART))


def test_chart_and_product_have_one_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    product = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert (chart["version"], chart["appVersion"]) == (product, product)


def test_every_value_has_a_description() -> None:
    assert len(values()) > 100
    assert [value.path for value in values() if not re.fullmatch(r"[A-Z].*\.", value.text)] == []


@pytest.mark.parametrize("value", values(), ids=lambda value: value.path)
def test_every_value_is_changed_in_a_case(value: Any) -> None:
    tried = [held(case, value.path) for case in CASES.values()]
    assert [one for one in tried if one is not None and one != value.default]


def test_every_flag_of_the_operator_is_a_value() -> None:
    flags = {action.dest for action in flag_parser()._actions} - {"help", "image"}
    given = {name.removeprefix("S3SINK_OPERATOR_").lower() for name in environment(rendered())}
    assert given - {"s3sink_image", "home"} == flags


def test_the_chart_and_the_operator_have_the_same_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = vars(flag_parser().parse_args(["--image", IMAGE]))
    for name, value in environment(rendered()).items():
        monkeypatch.setenv(name, value)
    assert vars(flag_parser().parse_args([])) == alone


def test_the_operator_understands_what_the_chart_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment(rendered(CASES["settings"])).items():
        monkeypatch.setenv(name, value)
    parsed = flag_parser().parse_args([])
    assert (parsed.listen, parsed.workers, parsed.grace, parsed.driver_port) == ("0.0.0.0:9443", 16, 1000000, 9090)
    assert (parsed.poll_interval, parsed.resync_interval, parsed.allow_unsafe_templates) == (0.5, 1200.5, True)
