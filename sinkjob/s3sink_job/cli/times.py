"""Times in options."""

from __future__ import annotations

from datetime import datetime

import typer


def milliseconds(text: str | None, option: str) -> int | None:
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a time such as 2026-11-18T03:00:00Z", param_hint=option) from None
    if time.tzinfo is None:
        raise typer.BadParameter(f"{text!r} has no time zone; add Z for UTC", param_hint=option)
    return round(time.timestamp() * 1000)
