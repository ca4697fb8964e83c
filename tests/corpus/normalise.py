"""What differs from run to run is replaced by names that do not. Everything else is compared as it is.

Documents are changed as text and never parsed and written again: their order, indentation and numbers count.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import fastavro

AVRO_MAGIC = b"Obj\x01"
AVRO_HEADER = fastavro.parse_schema(
    {
        "type": "record",
        "name": "Header",
        "fields": [
            {"name": "magic", "type": {"type": "fixed", "name": "Magic", "size": 4}},
            {"name": "meta", "type": {"type": "map", "values": "bytes"}},
            {"name": "sync", "type": {"type": "fixed", "name": "Sync", "size": 16}},
        ],
    }
)
NO_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""What stands in a state for a topic without an id. It is not random."""


@dataclass
class Names:
    """The random texts of one case, each with the text that takes its place."""

    replaced: dict[str, str] = field(default_factory=dict)

    def __call__(self, text: str) -> str:
        # The longest first: a bucket's name may be the beginning of another's.
        for found in sorted(self.replaced, key=lambda each: (-len(each), each)):
            text = text.replace(found, self.replaced[found])
        return text

    def bucket(self, name: str) -> None:
        """No two tests use one bucket."""
        self.replaced[name] = "BUCKET"

    def state(self, document: Mapping[str, Any]) -> None:
        self._writer(document)
        for name, topic in document["topics"].items():
            self._topic_id(name, topic["id"])

    def manifest(self, document: Mapping[str, Any], with_random_bytes: Iterable[str]) -> None:
        self._writer(document)
        for name, log in document.get("logs", {}).items():
            self._topic_id(name, log["id"])
        for entry in document["objects"]:
            # The store chooses the upload's id.
            if entry["upload_id"]:
                self.replaced[_in_json(entry["upload_id"])] = "UPLOAD-ID"
            # An ETag is the hash of a part, sync marker included.
            if entry["key"] in with_random_bytes:
                self.replaced |= {_in_json(etag): f"ETAG-{n}" for n, etag in enumerate(entry["etags"], 1)}

    def _writer(self, document: Mapping[str, Any]) -> None:
        """Each driver has a random id. It also stands in names of manifests, so the length is kept.

        An epoch has one driver.
        """
        self.replaced[document["writer"]] = f"writer{document['epoch']:06d}"

    def _topic_id(self, topic: str, found: str) -> None:
        """Kafka chooses them. A recreated topic has another one."""
        if found and found != NO_TOPIC_ID and found not in self.replaced:
            known = {name for name in self.replaced.values() if name.startswith(f"TOPIC-ID-{topic}-#")}
            self.replaced[found] = f"TOPIC-ID-{topic}-#{len(known) + 1}"


def without_sync_marker(body: bytes) -> bytes:
    """Avro files end each block with 16 random bytes, which their header tells."""
    if not body.startswith(AVRO_MAGIC):
        return body
    header: Any = fastavro.schemaless_reader(io.BytesIO(body), AVRO_HEADER, None)
    return body.replace(header["sync"], bytes(16))


def _in_json(text: str) -> str:
    return json.dumps(text)[1:-1]
