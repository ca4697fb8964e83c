"""A manifest in the making, with the account of the keys it is made from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from s3sink_api.group import API_VERSION, KIND
from s3sink_api.spec.text_types import has_user_info
from s3sink_job.convert.report import Entry, Outcome, Report

PLACEHOLDER_SERVERS = "replace-me:9092"
PLACEHOLDER_TOPIC = "replace-me"
LONGEST_NAME = 52


class Draft:
    """Each key of the input is reported once: the first report of a key stays."""

    def __init__(self, system: str, settings: Mapping[str, Any], name: str) -> None:
        self.system, self.given_name = system, name
        self.name = sink_name(name)
        self.settings = dict(settings)
        self.spec: dict[str, Any] = {}
        self.secrets: dict[str, list[str]] = {}
        """Keys of each Secret that the manifest names."""
        self.origins: dict[str, str] = {}
        """The key that each field of the spec is from."""
        self.carried: dict[str, str] = {}
        """Of these, the ones with a key of their own, and nothing else."""
        self._entries: dict[str, Entry] = {}
        self.notes: list[str] = []

    def text(self, key: str, default: str = "") -> str:
        """The value of a key as text, or the default."""
        return plain(self.settings.get(key, default))

    def has(self, key: str) -> bool:
        """Whether the key is set, and not to nothing."""
        return key in self.settings and self.settings[key] not in (None, "", [], {})

    def put(self, path: str, value: Any) -> None:
        """Sets a field of the spec, such as `flush.records`."""
        *sections, last = path.split(".")
        section = self.spec
        for name in sections:
            section = section.setdefault(name, {})
        section[last] = value

    def value_at(self, path: str) -> Any:
        section: Any = self.spec
        for name in path.split("."):
            if not isinstance(section, Mapping) or name not in section:
                return None
            section = section[name]
        return section

    def exact(self, key: str, text: str) -> None:
        self._enter(key, "Exact", text)

    def different(self, key: str, text: str) -> None:
        self._enter(key, "Different", text)

    def lost(self, key: str, text: str) -> None:
        self._enter(key, "Lost", text)

    def carry(self, key: str, path: str, value: Any, difference: str = "") -> None:
        """Sets a field from a key, and reports it."""
        self.put(path, value)
        self.origins[path] = self.carried[path] = key
        # A section that is taken out later leaves this text behind.
        shown = f"spec.{path}" if has_user_info(plain(value)) else f"spec.{path}: {plain(value)}"
        if difference:
            self.different(key, f"{shown}; {difference}")
        else:
            self.exact(key, shown)

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def default(self, key: str, path: str, value: Any) -> None:
        """A key that is not set, whose default differs from that of the field."""
        if not self.has(key):
            self.put(path, value)
            self.note(f"{key} is {plain(value)} there by default: spec.{path}: {plain(value)}.")

    def secret(self, key: str, secret: str, secret_key: str, path: str) -> None:
        """A secret value becomes a key of a Secret that the manifest names. The value itself goes nowhere."""
        name = self.secret_name(secret)
        keys = self.secrets.setdefault(name, [])
        if secret_key not in keys:
            keys.append(secret_key)
        self.exact(key, f"spec.{path} names the Secret {name}; put the value into its key {secret_key}")

    def secret_name(self, secret: str) -> str:
        return f"{self.name}-{secret}"

    def reported(self, key: str) -> bool:
        return key in self._entries

    def unreported(self) -> Iterable[str]:
        return [key for key in self.settings if key not in self._entries]

    def worst(self, prefix: str) -> Outcome:
        found = {entry.outcome for key, entry in self._entries.items() if key.startswith(prefix)}
        order: tuple[Outcome, ...] = ("Lost", "Different", "Exact")
        return next((outcome for outcome in order if outcome in found), "Exact")

    def enter(self, key: str, outcome: Outcome, text: str) -> None:
        self._enter(key, outcome, text)

    def amend(self, key: str, text: str) -> None:
        """What was carried over turned out to differ."""
        self._entries[key] = Entry(key, "Different", text)

    def withdraw(self, key: str, text: str) -> None:
        """What was carried over turned out to be refused by the manifest's parser."""
        self._entries[key] = Entry(key, "Lost", text)
        for whole, entry in self._entries.items():
            if key.startswith(f"{whole}["):
                self._entries[whole] = replace(entry, outcome="Lost")

    def _enter(self, key: str, outcome: Outcome, text: str) -> None:
        self._entries.setdefault(key, Entry(key, outcome, text))

    def report(self, written_as: Mapping[str, str]) -> Report:
        """In the order of the input; parts of a key, such as statements of KCQL, after all keys.

        `written_as` are keys that the input has under another name.
        """
        keys = [*self.settings, *(key for key in self._entries if key not in self.settings)]
        entries = [self._entries[key] for key in keys]
        renamed = tuple(replace(entry, key=written_as.get(entry.key, entry.key)) for entry in entries)
        return Report(self.system, self.given_name, renamed, tuple(self.notes))

    def manifest(self) -> dict[str, Any]:
        return {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"name": self.name},
            "spec": _in_order(self.spec),
        }

    def secret_manifests(self) -> list[dict[str, Any]]:
        return [
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": name},
                "stringData": dict.fromkeys(keys, ""),
            }
            for name, keys in self.secrets.items()
        ]


_ORDER = (
    *("state", "run", "schedule", "mode", "source", "destination", "layout", "format", "flush"),
    *("delivery", "nullValues", "transform", "routes", "errors", "spark"),
)


def _in_order(spec: Mapping[str, Any]) -> dict[str, Any]:
    ordered = {name: spec[name] for name in (*_ORDER, *spec) if name in spec}
    first = ("bootstrapServers", "topics", "topicPattern")
    source = spec.get("source", {})
    return {**ordered, "source": {name: source[name] for name in (*first, *source) if name in source}}


def plain(value: Any) -> str:
    """A value as the input's own syntax would write it."""
    match value:
        case None:
            return ""
        case bool():
            return str(value).lower()
        case list() | tuple():
            return f"[{', '.join(map(plain, value))}]"
        case dict():
            return "{" + ", ".join(f"{name}: {plain(item)}" for name, item in value.items()) + "}"
        case _:
            return str(value)


def sink_name(name: str) -> str:
    """The nearest name that Kubernetes accepts."""
    label = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return label[:LONGEST_NAME].strip("-") or "converted"
