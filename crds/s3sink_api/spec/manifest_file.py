"""The file for `kubectl apply`: one S3Sink, and optionally the Secrets that it names."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from s3sink_api.spec.field_errors import FieldError, SpecError
from s3sink_api.spec.parse import parse
from s3sink_api.spec.sink import S3Sink

_SECRET_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]*[a-z0-9])?", re.ASCII)
_SECRET_KEY = re.compile(r"(?!\.\.)[A-Za-z0-9._-]+", re.ASCII)


@dataclass(frozen=True)
class LoadedManifest:
    sink: S3Sink
    secrets: dict[str, dict[str, bytes]]


@dataclass(frozen=True)
class ManifestDocument:
    content: Mapping[str, Any]
    node: yaml.Node
    """The same as YAML's nodes, which know their lines and columns."""

    @property
    def line(self) -> int:
        return self.node.start_mark.line + 1 if self.node.start_mark else 0


def load_file(path: str | Path) -> LoadedManifest:
    """Raises a SpecError with file, line and column for bad YAML, or with the fields of a bad S3Sink."""
    documents = read_documents(Path(path))
    sinks = [document.content for document in documents if document.content.get("kind") == "S3Sink"]
    if len(sinks) != 1:
        found = f"{len(sinks)} of them" if sinks else kinds_of(documents)
        raise SpecError([FieldError(str(path), f"must hold exactly one document of kind S3Sink, got {found}")])
    sink = parse(sinks[0])
    secrets: dict[str, dict[str, bytes]] = {}
    for document in documents:
        if document.content.get("kind") == "Secret":
            name, namespace, content = read_secret(document, path)
            if namespace is None or namespace == sink.metadata.namespace:
                secrets[name] = content
    return LoadedManifest(sink, secrets)


def kinds_of(documents: list[ManifestDocument]) -> str:
    kinds = {kind for document in documents if isinstance(kind := document.content.get("kind"), str)}
    return ", ".join(sorted(kinds)) or "none"


class _Loader(yaml.SafeLoader):
    """Reads YAML like kubectl: dates stay text, and a repeated key is an error."""

    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, AttributeError, OverflowError):
            raise yaml.constructor.ConstructorError(None, None, "found a malformed value", node.start_mark) from None

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and (key.tag, key.value) in seen:
                raise yaml.constructor.ConstructorError(None, None, "found a key twice", key.start_mark)
            seen.add((key.tag, key.value) if isinstance(key, yaml.ScalarNode) else key)
        return node


def read_documents(path: Path) -> list[ManifestDocument]:
    """Every document that is not empty."""
    loader = _opened(path)
    documents = []
    try:
        while loader.check_node():
            node = loader.get_node()
            assert node is not None
            content = loader.construct_document(node)
            if isinstance(content, Mapping):
                documents.append(ManifestDocument(content, node))
            elif content is not None:
                place = f"{path}:{node.start_mark.line + 1}:{node.start_mark.column + 1}"
                raise SpecError([FieldError(place, "must be a mapping, as every manifest is")])
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{path}:{mark.line + 1}:{mark.column + 1}" if mark else str(path)
        raise SpecError([FieldError(place, f"is not YAML: {_without_content(error.problem)}")]) from None
    except RecursionError:
        raise SpecError([FieldError(str(path), "is nested too deeply")]) from None
    finally:
        loader.dispose()
    return documents


def _opened(path: Path) -> _Loader:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SpecError([FieldError(str(path), f"cannot be read: {error.strerror}")]) from None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise SpecError([FieldError(f"{path}:{line}", "is not text in UTF-8")]) from None
    try:
        return _Loader(text)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise SpecError([FieldError(f"{path}:{line}", "holds a character that YAML forbids")]) from None


def _without_content(problem: str | None) -> str:
    """PyYAML quotes parts of the file, which may be of a Secret. Names of tokens and single characters may stay."""
    return re.sub(r"'(?!<[a-z ]+>')[^']{2,}'", "…", problem or "cannot be understood")


def read_secret(secret: ManifestDocument, path: str | Path) -> tuple[str, object, dict[str, bytes]]:
    """Name, namespace and content."""
    document, place = secret.content, f"{path}:{secret.line}"
    metadata = document.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    name = metadata.get("name")
    if not isinstance(name, str) or not _SECRET_NAME.fullmatch(name):
        raise SpecError([FieldError(f"{place}: metadata.name", "must be the Secret's name")])
    content: dict[str, bytes] = {}
    for section in ("data", "stringData"):
        here = f"{place}: Secret {name}: {section}"
        values = document.get(section) or {}
        if not isinstance(values, Mapping):
            raise SpecError([FieldError(here, "must be a mapping")])
        for key, value in values.items():
            if not isinstance(key, str) or not _SECRET_KEY.fullmatch(key):
                message = "must have keys of letters, digits, dots, hyphens and underscores"
                raise SpecError([FieldError(here, message)])
            content[key] = _decoded(value, section == "data", f"{here}[{key}]")
    return name, metadata.get("namespace"), content


def _decoded(value: object, encoded: bool, place: str) -> bytes:
    if not isinstance(value, str):
        raise SpecError([FieldError(place, "must be text; write it in quotes")])
    if not encoded:
        return value.encode()
    try:
        return base64.b64decode("".join(value.split()), validate=True)
    except (binascii.Error, ValueError):
        raise SpecError([FieldError(place, "must be base64; stringData takes plain text")]) from None
