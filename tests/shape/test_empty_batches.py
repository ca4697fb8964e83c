"""Batches without records, as after skipping tombstones: no rows, no folders, no error."""

from __future__ import annotations

from itertools import product

import pytest

from s3sink_job.layout.folders import folders_of
from s3sink_job.layout.groups import groups_of
from s3sink_job.layout.settings import TOPIC as TOPIC_ITEM
from s3sink_job.layout.settings import LayoutItem, ObjectLayout
from s3sink_job.shape.tombstones import tombstones
from s3sink_job.task.encoding import Encoding
from tests.decode.batches import TOPIC, batch_of
from tests.encodings import changed
from tests.shape.model import SOURCES
from tests.shape.test_every_shape import SHAPES, name_of

ITEMS = [
    LayoutItem("Time", source="Record", format="yyyy/MM/dd", timezone="Europe/Berlin"),
    LayoutItem("Time", source="Field", path=("t",), format="yyyy/MM/dd"),
    LayoutItem("Field", "c", ("c",)),
    LayoutItem("Key"),
    LayoutItem("Key", "k", ("k",)),
    LayoutItem("Header", "h", ("h",)),
]
LAYOUTS = [ObjectLayout(items=(TOPIC_ITEM, ITEMS[0])), ObjectLayout(items=tuple(ITEMS))]


@pytest.mark.parametrize("shape", SHAPES, ids=name_of)
def test_a_batch_of_skipped_tombstones_gives_no_rows_and_no_error(shape: Encoding) -> None:
    for source, layout in product(SOURCES, LAYOUTS):
        wanted = changed(shape, key=source, value=source, layout=layout, nulls="Skip", window=60.0)
        batch = batch_of().select(["partition", "offset", *wanted.columns])

        found = wanted.row_builder(TOPIC).build(batch)
        folders = folders_of(found.decoded, wanted.grouping, TOPIC, 0, 900)
        groups = groups_of(batch, wanted.grouping, folders)

        assert found.rows.num_rows == len(tombstones(batch)) == 0
        assert (found.bad.messages, wanted.format.unwritable(found.rows, wanted.output)) == ({}, {})
        assert groups is not None
        assert groups.keys == []
