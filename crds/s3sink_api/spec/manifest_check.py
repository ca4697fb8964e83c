"""Checks a file of manifests, with file, line and column of every mistake."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from s3sink_api.spec.field_errors import FieldError, SpecError
from s3sink_api.spec.manifest_file import ManifestDocument, kinds_of, read_documents, read_secret
from s3sink_api.spec.parse import parse
from s3sink_api.spec.sink import S3Sink

_STEP = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")


def check_file(path: str | Path) -> tuple[S3Sink, ...]:
    """All sinks of the file. Raises a SpecError with the mistakes of all documents."""
    documents = read_documents(Path(path))
    sinks: list[S3Sink] = []
    errors: list[FieldError] = []
    for document in documents:
        try:
            if document.content.get("kind") == "S3Sink":
                sinks.append(parse(document.content))
            elif document.content.get("kind") == "Secret":
                read_secret(document, path)
        except SpecError as error:
            errors += _with_places(error, document, path)
    if errors:
        raise SpecError(errors)
    if not sinks:
        raise SpecError([FieldError(str(path), f"must hold a document of kind S3Sink, got {kinds_of(documents)}")])
    return tuple(sinks)


def _with_places(error: SpecError, document: ManifestDocument, path: str | Path) -> Iterator[FieldError]:
    for one in error.errors:
        if one.path.startswith(f"{path}:"):
            yield one
            continue
        mark = _mark(document.node, one.path)
        yield FieldError(f"{path}:{mark.line + 1}:{mark.column + 1}: {one.path}", one.message)


def _mark(node: yaml.Node, path: str) -> yaml.Mark:
    """Where the field is, or the section that lacks it."""
    mark = node.start_mark
    for name, index in _STEP.findall(path):
        step = name or index
        if isinstance(node, yaml.SequenceNode) and step.isdecimal() and int(step) < len(node.value):
            node = node.value[int(step)]
            mark = node.start_mark
            continue
        found = [pair for pair in node.value if pair[0].value == step] if isinstance(node, yaml.MappingNode) else []
        if not found:
            break
        key, node = found[0]
        mark = key.start_mark
    assert mark is not None
    return mark
