"""`python -m charts.generate` writes what is made from something else: tests fail when it is stale.

The chart's copy of the definition, its README, and the manifests in examples/kubernetes, which are the chart as
`helm template` prints it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from e2e.parts.helm import CHART, NAMESPACE, template
from s3sink_operator.crd import definition, to_yaml

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples" / "kubernetes"
_NAMESPACE = f"""\
apiVersion: v1
kind: Namespace
metadata:
  name: {NAMESPACE}
  labels:
    pod-security.kubernetes.io/enforce: restricted
"""
_MADE = f"""\
# Made by `python -m charts.generate`, which does what this does, and adds the Namespace:
#   helm template s3sink-operator charts/s3sink-operator --namespace {NAMESPACE} --skip-tests \\
"""
_CLUSTER = """\
# The operator for the whole cluster, for people without Helm. First apply crds/s3sinks.s3sink.dev.yaml,
# and put the name of your image in place of s3sink:0.2.0 below, twice.
"""
_NAMESPACED = """\
# The operator for some namespaces only, without any right in others, for people without Helm. First apply
# crds/s3sinks.s3sink.dev.yaml, put the name of your image in place of s3sink:0.2.0 below, twice, that of your namespace
# in place of shop, everywhere, and a name that no other cluster of yours has in place of my-cluster. For several
# namespaces, repeat Role and RoleBinding in each, and name all of them below, with commas between.
# The operator itself has a namespace of its own: whoever may create an S3Sink beside it could use its account.
"""


@dataclass(frozen=True)
class Value:
    """One of values.yaml: where it stands, what it is by default, and its sentence."""

    path: str
    default: Any
    text: str


def files() -> dict[Path, str]:
    """Every generated file with what it should hold."""
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
