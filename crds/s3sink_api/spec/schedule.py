"""Cron schedules as Kubernetes takes them: five fields, or a name such as `@hourly`."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field

from s3sink_api.cel import Cel, fits, listed
from s3sink_api.spec.checked_types import after
from s3sink_api.spec.field_errors import Refusal
from s3sink_api.spec.regexes import CRON, CRON_FIELDS, CRON_NAMES

_MESSAGE = 'must be a cron schedule of five fields, such as "0 * * * *"'


def _cron(text: str) -> str:
    if text in CRON_NAMES:
        return text
    parts = [part for part in text.lower().split(" ") if part]
    if len(parts) != len(CRON_FIELDS):
        raise Refusal(_MESSAGE)
    for part, (what, pattern, low, high) in zip(parts, CRON_FIELDS, strict=True):
        if not re.fullmatch(pattern, part, re.ASCII):
            raise Refusal(f'must be a cron schedule such as "0 * * * *"; its {what} does not fit {low} to {high}')
    return text


Schedule = Annotated[
    str,
    Field(max_length=256),
    after(_cron, Cel(lambda it: f"{it} in {listed(CRON_NAMES)} || {fits(f'{it}.lowerAscii()', CRON)}", _MESSAGE)),
]
