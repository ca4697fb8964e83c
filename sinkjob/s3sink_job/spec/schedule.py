"""Cron schedules as Kubernetes takes them: five fields, or a name such as `@hourly`."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from s3sink_job.spec.patterns import CRON_FIELDS, CRON_NAMES
from s3sink_job.spec.problems import Refusal


def _cron(text: str) -> str:
    if text in CRON_NAMES:
        return text
    parts = [part for part in text.lower().split(" ") if part]
    if len(parts) != len(CRON_FIELDS):
        raise Refusal('must be a cron schedule of five fields, such as "0 * * * *"')
    for part, (what, pattern, low, high) in zip(parts, CRON_FIELDS, strict=True):
        if not re.fullmatch(pattern, part, re.ASCII):
            raise Refusal(f'must be a cron schedule such as "0 * * * *"; its {what} does not fit {low} to {high}')
    return text


Schedule = Annotated[str, Field(max_length=256), AfterValidator(_cron)]
