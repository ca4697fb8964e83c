"""All cases by name."""

from __future__ import annotations

from tests.corpus import format_cases, history_cases, layout_cases, record_cases
from tests.corpus.recording import Play

CASES: dict[str, Play] = {
    **format_cases.CASES,
    **record_cases.CASES,
    **layout_cases.CASES,
    **history_cases.CASES,
}
