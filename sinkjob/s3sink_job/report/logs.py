"""Logs: JSON lines for machines, short lines for people. No secret is ever logged."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

FIELDS = "fields"
log = logging.getLogger("s3sink")


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, FIELDS, {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


class ShortLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).astimezone().strftime("%H:%M:%S")
        mark = "" if record.levelno < logging.WARNING else f"{record.levelname}: "
        fields = "".join(f" {key}={value}" for key, value in getattr(record, FIELDS, {}).items())
        text = f"{time} {mark}{record.getMessage()}{fields}"
        return text + ("\n" + self.formatException(record.exc_info) if record.exc_info else "")


def set_up(*, json_lines: bool) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if json_lines else ShortLines())
    log.handlers[:] = [handler]
    log.setLevel(logging.INFO)
    log.propagate = False


def info(message: str, **fields: object) -> None:
    log.info(message, extra={FIELDS: fields})


def warning(message: str, **fields: object) -> None:
    log.warning(message, extra={FIELDS: fields})
