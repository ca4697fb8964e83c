"""`python -m charts.generate` writes the files that are made from others. Tests fail when one is stale.

These are the chart's copy of the definition, its README, and the manifests in examples/kubernetes, which are the output
of `helm template`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from s3sink_api.definition import definition, to_yaml
from tools.parts.helm import CHART, NAMESPACE, template
from tools.product_version import product_version

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples" / "kubernetes"
IMAGE = f"s3sink:{product_version()}"
_NAMESPACE = f"""\
apiVersion: v1
kind: Namespace
metadata:
  name: {NAMESPACE}
  labels:
    pod-security.kubernetes.io/enforce: restricted
"""
_MADE = f"""\
# Made by `python -m charts.generate`: the Namespace, and the output of
#   helm template s3sink-operator charts/s3sink-operator --namespace {NAMESPACE} --skip-tests \\
"""
_CLUSTER = f"""\
# The operator for the whole cluster, for people without Helm. First apply crds/s3sinks.s3sink.dev.yaml,
# and replace {IMAGE} below, twice, by the name of your image.
"""
_NAMESPACED = f"""\
# The operator for some namespaces only, without rights in others, for people without Helm. First apply
# crds/s3sinks.s3sink.dev.yaml. Then replace: {IMAGE}, twice, by the name of your image; shop, everywhere, by your
# namespace; my-cluster by a name that is unique among your clusters. For several namespaces, repeat Role and
# RoleBinding in each, and list all of them below, separated by commas.
# The operator has its own namespace: whoever may create an S3Sink beside it could use its ServiceAccount.
"""


@dataclass(frozen=True)
class Value:
    """One of values.yaml: its path, its default, and its description."""

    path: str
    default: Any
    text: str


def files() -> dict[Path, str]:
    """Every generated file with its text."""
    none = {"crds": {"install": False}}
    some = none | {"watch": {"namespaces": ["shop"]}, "clusterId": "my-cluster"}
    return {
        CHART / "files" / "s3sinks.s3sink.dev.yaml": to_yaml(definition()),
        CHART / "README.md": readme(),
        EXAMPLES / "operator.yaml": _example(_CLUSTER, none, "crds.install=false"),
        EXAMPLES / "operator-namespaced.yaml": _example(
            *(_NAMESPACED, some, "crds.install=false", "watch.namespaces={shop}", "clusterId=my-cluster")
        ),
    }


def values() -> tuple[Value, ...]:
    text = (CHART / "values.yaml").read_text()
    root = yaml.compose(text)
    assert isinstance(root, yaml.MappingNode)
    return tuple(_values(root, text.splitlines(), ()))


def readme() -> str:
    rows = [f"| `{value.path}` | `{json.dumps(value.default)}` | {_cell(value.text)} |" for value in values()]
    head = (ROOT / "charts" / "readme.head.md").read_text()
    return "\n".join([head + "| value | default | |", "|---|---|---|", *rows]) + "\n"


def _values(node: yaml.MappingNode, lines: Sequence[str], path: tuple[str, ...]) -> Iterator[Value]:
    """A map in block style is a section; one in braces is a value."""
    for key, held in node.value:
        here = (*path, key.value)
        if isinstance(held, yaml.MappingNode) and not held.flow_style:
            yield from _values(held, lines, here)
        else:
            written = yaml.serialize(held)
            yield Value(".".join(here), yaml.safe_load(written), _comment(lines, key.start_mark.line))


def _comment(lines: Sequence[str], line: int) -> str:
    start = line
    while start and lines[start - 1].lstrip().startswith("#"):
        start -= 1
    return " ".join(text.strip().removeprefix("#").strip() for text in lines[start:line])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _example(head: str, values: dict[str, Any], *settings: str) -> str:
    flags = " ".join(f"--set {setting}" for setting in settings)
    return f"{head}{_MADE}#     {flags}\n{_NAMESPACE}{template(values, '--skip-tests')}"


def main() -> None:
    for path, text in files().items():
        path.write_text(text)


if __name__ == "__main__":
    main()
