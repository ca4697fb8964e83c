"""Batches without a record, as tombstones that are left out leave them: no rows, no folders, and no error."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from s3sink_job.encoding import Encoding
from s3sink_job.formats import unwritable
from s3sink_job.layout import TOPIC as TOPIC_ITEM
from s3sink_job.layout import Item, Layout
from s3sink_job.records.decode import null_rows, open_decoder
from s3sink_job.records.folders import folders_of
from s3sink_job.records.groups import groups_of
from tests.records.batches import TOPIC, batch_of
from tests.records.model import SOURCES
from tests.records.test_every_shape import SHAPES, name_of

ITEMS = [
    Item("Time", source="Record", format="yyyy/MM/dd", timezone="Europe/Berlin"),
    Item("Time", source="Field", path=("t",), format="yyyy/MM/dd"),
    Item("Field", "c", ("c",)),
    Item("Key"),
    Item("Key", "k", ("k",)),
    Item("Header", "h", ("h",)),
]
LAYOUTS = [Layout(items=(TOPIC_ITEM, ITEMS[0])), Layout(items=tuple(ITEMS))]


@pytest.mark.parametrize("shape", SHAPES, ids=name_of)
def test_a_batch_of_nothing_but_tombstones_to_skip_stops_no_slice(shape: Encoding) -> None:
    for source, layout in product(SOURCES, LAYOUTS):
        wanted = replace(shape, key=source, value=source, layout=layout, nulls="Skip", window=60.0)
        batch = batch_of().select(["partition", "offset", *wanted.columns])

        found = open_decoder(wanted, TOPIC).decode(batch)
        folders, unplaced = folders_of(batch, wanted, TOPIC, 0, 900, found.rows)
        groups = groups_of(batch, wanted, folders)

        assert found.rows.num_rows == len(null_rows(batch)) == 0
        assert (found.bad.rows, unplaced.rows, unwritable(found.rows, wanted)) == ({}, {}, {})
        assert groups is not None
        assert groups.keys == []
