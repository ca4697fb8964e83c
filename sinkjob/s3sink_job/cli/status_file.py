"""The last status of a run, as a file; in Kubernetes that is the container's termination message."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from s3sink_api import environment

SHORT_MESSAGE = 200


def write_status(file: Path, status: dict[str, Any]) -> None:
    file.write_text(status_text(status, int(os.environ.get(environment.STATUS_BYTES, "0"))))


def status_text(status: dict[str, Any], max_bytes: int = 0) -> str:
    """The status as JSON. With a limit, first offsets are left out, then gaps, then the ends of messages."""
    if not max_bytes:
        return json.dumps(status, indent=1)
    kept = dict(status)
    text = json.dumps(kept, separators=(",", ":"))
    while len(text.encode()) > max_bytes:
        if kept.get("offsets"):
            kept["offsets"] = kept["offsets"][: len(kept["offsets"]) // 2]
        elif kept.get("gaps", {}).get("recent"):
            kept["gaps"] = {**kept["gaps"], "recent": []}
        else:
            return json.dumps(_with_short_messages(kept), separators=(",", ":"))
        text = json.dumps(kept, separators=(",", ":"))
    return text


def _with_short_messages(status: dict[str, Any]) -> dict[str, Any]:
    conditions = [{**c, "message": c["message"][:SHORT_MESSAGE]} for c in status["conditions"]]
    retry = {k: str(v)[:SHORT_MESSAGE] if k == "lastError" else v for k, v in status["retry"].items()}
    return status | {"conditions": conditions, "retry": retry}
