"""What is valid, but probably not meant, is told."""

from __future__ import annotations

import pytest

from s3sink_api.spec import parse, warnings_of
from tests.api.documents import minimal, put


def told(pattern: str) -> list[str]:
    items = [{"type": "Topic"}, {"type": "Time", "source": "Record", "format": pattern}]
    return [str(warning) for warning in warnings_of(parse(put(minimal(), "spec.layout", {"partitionBy": items})).spec)]


@pytest.mark.parametrize("pattern", ["'year'=YYYY/'month'=MM/'day'=dd", "YYYY-MM", "'at 'YY", "YYYY"])
def test_a_year_of_the_week_without_a_week_is_told(pattern):
    (warning,) = told(pattern)
    years = "YYYY" if "YYYY" in pattern else "YY"
    assert warning.startswith(f"spec.layout.partitionBy[1].format: {years} is the year of the week")
    assert warning.endswith(f"write {years.lower()}")


@pytest.mark.parametrize("pattern", ["'year'=yyyy", "YYYY-'W'ww", "'YYYY'=yyyy", "HH"])
def test_a_pattern_that_means_what_it_says_is_not(pattern):
    assert told(pattern) == []


def test_a_route_is_named():
    layout = {"partitionBy": [{"type": "Time", "source": "Record", "format": "YYYY"}]}
    document = put(minimal(), "spec.routes", [{"topics": ["orders"]}, {"topicPattern": "p.*", "layout": layout}])
    (warning,) = warnings_of(parse(document).spec)
    assert warning.path == "spec.routes[1].layout.partitionBy[0].format"
