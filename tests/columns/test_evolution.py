"""`format.schemaEvolution.mode`: which schemas fit the known columns."""

from __future__ import annotations

from typing import Any, get_args

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3sink_api.spec.format import EvolutionMode
from s3sink_job.columns.evolution import Incompatible, evolved
from s3sink_job.columns.known_columns import NO_COLUMNS, KnownColumns, known_from_text, known_to_text
from s3sink_job.columns.sources import MOST_RECORDS, SourceField, SourceRecord, merged_sources
from s3sink_job.columns.types import ITEM

MODES: tuple[EvolutionMode, ...] = get_args(EvolutionMode)
REQUIRED, NULLABLE, DEFAULT = (
    SourceField(required=True),
    SourceField(False, nullable=True),
    SourceField(False, default="7"),
)
INT, LONG, TEXT = pa.int32(), pa.int64(), pa.string()


def schema(name: str = "shop.Order", **fields: tuple[pa.DataType, SourceField]) -> KnownColumns:
    return KnownColumns(
        pa.struct([(field, kind) for field, (kind, _) in fields.items()]),
        {(): {name: SourceRecord({field: source for field, (_, source) in fields.items()})}},
    )


ID = {"id": (INT, REQUIRED)}
CHANGES: dict[str, tuple[KnownColumns, KnownColumns, set[str]]] = {
    "a new field that may be null": (schema(**ID), schema(**ID, x=(TEXT, NULLABLE)), set()),
    "a new field with a default": (schema(**ID), schema(**ID, x=(TEXT, DEFAULT)), set()),
    "a new field without": (schema(**ID), schema(**ID, x=(TEXT, REQUIRED)), {"Backward", "Full"}),
    "a nullable field is gone": (schema(**ID, x=(TEXT, NULLABLE)), schema(**ID), set()),
    "a field with a default is gone": (schema(**ID, x=(TEXT, DEFAULT)), schema(**ID), set()),
    "a required field is gone": (schema(**ID, x=(TEXT, REQUIRED)), schema(**ID), {"Forward", "Full"}),
    "a required field may be null": (schema(**ID), schema(id=(INT, NULLABLE)), {"Forward", "Full"}),
    "a required field has a default": (schema(**ID), schema(id=(INT, DEFAULT)), set()),
    "a wider type": (schema(**ID), schema(id=(LONG, REQUIRED)), {"Forward", "Full"}),
    "a narrower type": (schema(id=(LONG, REQUIRED)), schema(**ID), set()),
    "another type": (schema(**ID), schema(id=(TEXT, REQUIRED)), set(MODES)),
    "a record of another name": (schema(**ID), schema("shop.Refund", x=(TEXT, REQUIRED)), set()),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("change", CHANGES)
def test_each_mode_refuses_its_changes(change: str, mode: EvolutionMode) -> None:
    known, new, refused_by = CHANGES[change]
    if mode in refused_by:
        with pytest.raises(Incompatible):
            evolved(known, new, mode)
    else:
        assert evolved(known, new, mode).record.names == list(dict.fromkeys([*known.record.names, *new.record.names]))


@pytest.mark.parametrize(
    ("change", "mode", "message"),
    [
        (
            "a new field without",
            "Backward",
            "field 'x' of shop.Order is new, and has neither null nor a default: format.schemaEvolution.mode Backward "
            "refuses that",
        ),
        (
            "a required field is gone",
            "Full",
            "field 'x' of shop.Order had a value in every record, and is gone: format.schemaEvolution.mode Full "
            "refuses that",
        ),
        ("another type", "None", "field 'id' was int32 and is now string, and no type holds both"),
    ],
)
def test_messages_name_field_and_mode(change: str, mode: EvolutionMode, message: str) -> None:
    known, new, _ = CHANGES[change]
    with pytest.raises(Incompatible) as error:
        evolved(known, new, mode)
    assert str(error.value) == message


def nested(kind: pa.DataType, **fields: SourceField) -> KnownColumns:
    return KnownColumns(
        pa.struct([("items", pa.list_(kind))]),
        {
            (): {"Order": SourceRecord({"items": REQUIRED})},
            ("items", ITEM): {"Item": SourceRecord(fields)},
        },
    )


def test_records_within_lists_are_compared_too() -> None:
    known = nested(pa.struct([("sku", TEXT)]), sku=REQUIRED)
    new = nested(pa.struct([("sku", TEXT), ("price", INT)]), sku=REQUIRED, price=REQUIRED)
    with pytest.raises(Incompatible, match=r"'items\.\[\]\.price' of Item is new"):
        evolved(known, new, "Backward")
    assert evolved(known, new, "Forward").record.equals(new.record)


def test_one_more_type_in_a_union_is_only_for_readers_of_the_newest_schema() -> None:
    def union(*names: str) -> KnownColumns:
        branches = pa.struct([(name, TEXT) for name in names])
        return KnownColumns(pa.struct([("u", branches)]), {(): {"R": SourceRecord({"u": REQUIRED})}})

    for mode in MODES:
        if mode in {"Forward", "Full"}:
            with pytest.raises(Incompatible, match="one more type in its union"):
                evolved(union("a", "b"), union("a", "b", "c"), mode)
        else:
            evolved(union("a", "b"), union("a", "b", "c"), mode)
        evolved(union("a", "b", "c"), union("a", "b"), mode)


fields = st.dictionaries(
    st.sampled_from("abcd"),
    st.tuples(st.sampled_from([INT, LONG, pa.float64()]), st.sampled_from([REQUIRED, NULLABLE, DEFAULT])),
)
schemas = st.builds(lambda name, given: schema(name, **given), st.sampled_from(["A", "B"]), fields)


@given(st.lists(schemas, max_size=6), st.sampled_from(MODES), st.randoms())
def test_what_was_taken_once_is_always_taken_again(
    versions: list[KnownColumns], mode: EvolutionMode, random: Any
) -> None:
    """Producers with two versions may alternate for ever: neither is refused, and at last nothing changes any more."""
    known, taken = NO_COLUMNS, []
    for version in versions:
        try:
            known = evolved(known, version, mode)
            taken.append(version)
        except Incompatible:
            continue
    random.shuffle(taken)
    for version in taken:
        assert evolved(known, version, mode) == known


@given(st.lists(schemas, max_size=5))
def test_known_columns_survive_the_state(versions: list[KnownColumns]) -> None:
    known = NO_COLUMNS
    for version in versions:
        try:
            known = evolved(known, version)
        except Incompatible:
            continue
    assert known_from_text(known_to_text(known)) == known


def test_docs_aliases_and_defaults_survive_the_state() -> None:
    source = SourceField(False, True, doc="é", aliases=("b", "c"), default='"x"')
    known = KnownColumns(pa.struct([("a", TEXT)]), {("v", ITEM): {"n.R": SourceRecord({"a": source}, "doc", ("Old",))}})
    assert known_from_text(known_to_text(known)) == known


def test_columns_of_an_older_state_have_no_sources() -> None:
    assert known_from_text('{"struct":{"a":"text"}}') == KnownColumns(pa.struct([("a", TEXT)]))
    assert known_from_text("") == NO_COLUMNS


def test_ten_thousand_types_of_records_do_not_fill_the_state() -> None:
    known = NO_COLUMNS
    for number in range(2 * MOST_RECORDS):
        known = evolved(known, schema(f"R{number}", **ID), "Full")
    assert len(known.sources[()]) == MOST_RECORDS


def test_the_first_doc_is_kept() -> None:
    """Otherwise two producers would change the state with every flush."""
    one, other = ({(): {"R": SourceRecord({}, doc)}} for doc in ("first", "second"))
    assert merged_sources(merged_sources(one, other), other) == one
