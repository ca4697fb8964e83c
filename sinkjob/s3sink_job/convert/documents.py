"""Text as documents: JSON, YAML without tags, or Java properties. Nothing in it is executed or fetched."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import yaml

from s3sink_job.convert.bad_input import BadInput, Place
from s3sink_job.convert.properties_syntax import looks_like_properties, read_properties

LARGEST = 1024 * 1024
"""Bytes. A configuration with hundreds of connectors is smaller."""
DEEPEST = 50


def read_documents(content: bytes, name: str) -> list[Any]:
    """Every document that is not empty."""
    if len(content) > LARGEST:
        raise BadInput(Place(name), f"has more than {LARGEST:,} bytes, and a configuration has fewer")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(Place(name, content.count(b"\n", 0, error.start) + 1), "is not text in UTF-8") from None
    if not text.strip():
        raise BadInput(Place(name), "is empty")
    if text.lstrip().startswith(("{", "[")):
        documents = [_json(text, name)]
    elif looks_like_properties(text):
        documents = [read_properties(text, name)]
    else:
        documents = _yaml(text, name)
    for document in documents:
        _check_depth(document, name)
    return documents


def _json(text: str, name: str) -> Any:
    def once_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise BadInput(Place(name), f"the key {key} is there twice; keep one of them")
            found[key] = value
        return found

    try:
        return json.loads(text, object_pairs_hook=once_each)
    except json.JSONDecodeError as error:
        raise BadInput(Place(name, error.lineno, error.colno), f"is not JSON: {error.msg.lower()}") from None
    except RecursionError:
        raise BadInput(Place(name), "is nested too deeply") from None


class _PlainLoader(yaml.SafeLoader):
    """YAML without tags, anchors and repeated keys. Dates stay text."""

    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise _refused("has an anchor or an alias; write the part out", event)
        if getattr(event, "tag", None) not in {None, "!"}:
            raise _refused("has a YAML tag, and tags are not read; write a plain value", event)
        return super().compose_node(parent, index)

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, "has a key twice", key.start_mark)
            seen.add(getattr(key, "value", "") if isinstance(key, yaml.ScalarNode) else "")
        return node


def _refused(message: str, event: yaml.Event) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, message, event.start_mark)  # type: ignore[arg-type]


def _yaml(text: str, name: str) -> list[Any]:
    try:
        documents = list(yaml.load_all(text, _PlainLoader))  # A SafeLoader that takes less.
    except yaml.constructor.ConstructorError as error:
        raise BadInput(_place(name, error), str(error.problem)) from None
    except yaml.MarkedYAMLError as error:
        message = "is neither JSON, YAML nor Java properties; in YAML this place cannot be understood"
        raise BadInput(_place(name, error), message) from None
    except yaml.YAMLError:
        raise BadInput(Place(name), "has a character that YAML forbids") from None
    except (RecursionError, ValueError, OverflowError):
        raise BadInput(Place(name), "has a value that YAML cannot hold, or is nested too deeply") from None
    found = [document for document in documents if document is not None]
    if not found:
        raise BadInput(Place(name), "is empty")
    return found


def _place(name: str, error: yaml.MarkedYAMLError) -> Place:
    mark = error.problem_mark or error.context_mark
    return Place(name, mark.line + 1, mark.column + 1) if mark else Place(name)


def _check_depth(document: Any, name: str) -> None:
    level: list[Any] = [document]
    for _ in range(DEEPEST):
        level = [
            child
            for item in level
            for child in (item.values() if isinstance(item, Mapping) else item if isinstance(item, list) else ())
        ]
        if not level:
            return
    raise BadInput(Place(name), f"is nested more than {DEEPEST} levels deep")


def flattened(document: Any, path: str = "") -> dict[str, Any]:
    """Every leaf by its path, `input.kafka.topics`. A list of plain values is one leaf."""
    if isinstance(document, Mapping) and document:
        found: dict[str, Any] = {}
        for key, value in document.items():
            found |= flattened(value, f"{path}.{key}" if path else str(key))
        return found
    if isinstance(document, list) and any(isinstance(item, Mapping | list) for item in document):
        found = {}
        for index, item in enumerate(document):
            found |= flattened(item, f"{path}[{index}]")
        return found
    return {path: document}
