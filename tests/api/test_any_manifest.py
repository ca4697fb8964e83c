"""Whatever stands in a manifest: a valid one is taken whole, a wrong one ends in a SpecError."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from s3sink_api.spec import parse, to_document
from tests.api.documents import (
    Document,
    Steps,
    documents,
    errors_of,
    everything_built,
    full,
    minimal,
    places,
    put,
    written,
)

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates() | st.datetimes(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text() | st.integers(), inner, max_size=3),
    max_leaves=6,
)
slow_to_draw = settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow], deadline=None)


@slow_to_draw
@given(documents())
def test_any_valid_manifest_is_taken_and_survives_being_written_and_read(document):
    with everything_built():
        sink = parse(document)
        assert parse(to_document(sink)) == sink


def test_the_full_manifest_survives_being_written_and_read():
    with everything_built():
        sink = parse(full())
        assert parse(to_document(sink)) == sink


ALSO_NUMBERS = {"maxBytesPerSecond", "partSize", "rowGroupBytes", "bytes", "memory", "spill", "cpuRequest"}
WRONG: dict[str, Any] = {
    "text": "x y/",
    "number": 5,
    "truth": True,
    "list": [[1]],
    "mapping": {"x y": 1},
    "null": None,
}


def kind_of(value: Any) -> str:
    match value:
        case bool():
            return "truth"
        case int() | float():
            return "number"
        case str():
            return "text"
        case list():
            return "list"
        case dict():
            return "mapping"
    return "null"


@pytest.mark.parametrize(
    ("steps", "value"), list(places(full())), ids=lambda part: written(part) if isinstance(part, tuple) else ""
)
def test_a_wrong_type_anywhere_is_blamed_on_that_field(steps: Steps, value: Any):
    right = {kind_of(value)} | ({"number"} if steps[-1] in ALSO_NUMBERS else set())
    if steps[0] == "metadata" and len(steps) == 2:
        right.add("null")
    blamed = written(steps)
    for kind in WRONG.keys() - right:
        with everything_built():
            errors = errors_of(put(full(), steps, WRONG[kind]))
        assert any(path == blamed or path.startswith((f"{blamed}.", f"{blamed}[")) for path in errors), kind
        assert all("is not valid (" not in message for message in errors.values()), kind


@slow_to_draw
@given(st.data())
def test_no_value_anywhere_raises_anything_but_a_spec_error(data):
    document = data.draw(st.sampled_from([minimal(), full()]))
    steps, _ = data.draw(st.sampled_from(list(places(document))))
    mutated = put(document, steps, data.draw(anything))
    for path, message in errors_of(mutated).items():
        assert path
        assert message
        assert "is not valid (" not in message


@slow_to_draw
@given(documents(), st.text(st.characters(categories=["L", "N"]), min_size=1))
def test_an_unknown_field_in_any_section_is_an_error(document: Document, name: str):
    with everything_built():
        for section in ("source", "destination", "format"):
            changed = put(document, ("spec", section, f"{name}x"), 1)
            assert any("unknown field" in message for message in errors_of(changed).values())


@given(st.text())
def test_any_prefix_is_taken_or_refused_with_one_that_is_taken(prefix):
    errors = errors_of(put(minimal(), "spec.destination.prefix", prefix))
    message = errors.get("spec.destination.prefix", "")
    if '; write "' in message:
        better = message.split('; write "')[1].removesuffix('"')
        assert errors_of(put(minimal(), "spec.destination.prefix", better)) == {}
