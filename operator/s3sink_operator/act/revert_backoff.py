"""Stops writing an object that another controller reverts again and again."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from s3sink_api.labels import APPLIED
from s3sink_operator.values.objects import Document, SinkKey

MOST_APPLIES, WINDOW = 6, 300.0
"""How often the same document is applied within so many seconds."""


class _Version(NamedTuple):
    kind: str
    name: str
    applied: str
    """The hash of the document."""


@dataclass
class RevertBackoff:
    """The other controller may be a second operator: the conflict ends when one of them stops."""

    clock: Callable[[], float] = time.monotonic
    _applies: dict[SinkKey, dict[_Version, list[float]]] = field(default_factory=dict)

    def allows(self, key: SinkKey, document: Document) -> bool:
        return len(self._recent(key, document)) < MOST_APPLIES

    def applied(self, key: SinkKey, document: Document) -> None:
        now, before = self.clock(), self._applies.get(key, {})
        kept = {version: times for version, times in before.items() if now - times[-1] < WINDOW}
        self._applies[key] = {**kept, _version(document): [*self._recent(key, document), now]}

    def forget(self, key: SinkKey) -> None:
        self._applies.pop(key, None)

    def _recent(self, key: SinkKey, document: Document) -> list[float]:
        now, times = self.clock(), self._applies.get(key, {}).get(_version(document), ())
        return [at for at in times if now - at < WINDOW]


def _version(document: Document) -> _Version:
    metadata = document["metadata"]
    return _Version(document["kind"], metadata["name"], metadata["annotations"][APPLIED])
