"""Validates records against their JSON Schema, a batch at a time, with a compiled validator."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pyarrow as pa
import pyarrow.compute as pc
from referencing.jsonschema import DRAFT4, DRAFT6, DRAFT7, DRAFT201909, DRAFT202012

from s3sink_job.columns.types import Column
from s3sink_job.decode.bad_records import Fault
from s3sink_job.decode.json_schema_documents import Documents
from s3sink_job.decode.writer_schemas import InvalidSchema

VALIDATORS = {
    DRAFT4: jsonschema_rs.Draft4Validator,
    DRAFT6: jsonschema_rs.Draft6Validator,
    DRAFT7: jsonschema_rs.Draft7Validator,
    DRAFT201909: jsonschema_rs.Draft201909Validator,
    DRAFT202012: jsonschema_rs.Draft202012Validator,
}
DRAFTS = {
    DRAFT4: jsonschema_rs.Draft4,
    DRAFT6: jsonschema_rs.Draft6,
    DRAFT7: jsonschema_rs.Draft7,
    DRAFT201909: jsonschema_rs.Draft201909,
    DRAFT202012: jsonschema_rs.Draft202012,
}
BACKTRACKS = 50_000
"""Steps back of a regular expression. A value that would take more is refused: some patterns take years."""
MASKED = "the value"
"""Messages are logged, and values may be secret."""
TOO_DEEP = Fault("TooDeep", "is nested too deeply to be validated")


class RecordValidator:
    def __init__(self, documents: Documents) -> None:
        """Raises `InvalidSchema`."""
        draft = documents.draft
        if draft not in VALIDATORS:
            why = f"its $schema is {documents.root['$schema']}, and drafts 4, 6, 7, 2019-09 and 2020-12 can be used"
            raise InvalidSchema(f"a JSON Schema that records cannot be validated with: {why}")
        patterns = jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACKS)
        try:
            registry = jsonschema_rs.Registry(documents.by_address.items(), DRAFTS[draft], documents.at)
            self._all = VALIDATORS[draft](
                {"items": {"$ref": documents.address}},
                registry=registry,
                retriever=documents.at,
                mask=MASKED,
                pattern_options=patterns,
            )
        except (ValueError, jsonschema_rs.ReferencingError) as error:
            why = str(error).split("\n", 1)[0]
            raise InvalidSchema(f"a JSON Schema that records cannot be validated with: {why}") from None

    def faults(self, payload: Column) -> dict[int, Fault]:
        """Of texts that are JSON."""
        whole = pa.ListArray.from_arrays(pa.array([0, len(payload)], pa.int32()), payload)
        values: list[Any] = json.loads(f"[{pc.binary_join(whole, ',')[0]}]")
        try:
            found = self._faults(values)
            left = [row for row in range(len(values)) if row not in found]
            if not found or self._all.is_valid([values[row] for row in left]):
                return found
        except ValueError:
            found, left = {}, list(range(len(values)))
        # One value may end the search for others: a pattern with too many steps, or more levels than there may be.
        for row in left:
            try:
                alone = self._faults([values[row]])
            except ValueError:
                alone = {0: TOO_DEEP}
            if alone:
                found[row] = alone[0]
        return found

    def _faults(self, values: list[Any]) -> dict[int, Fault]:
        found: dict[int, Fault] = {}
        if not self._all.is_valid(values):
            for error in self._all.iter_errors(values):
                row, *path = error.instance_path
                found.setdefault(int(row), _fault(path, error))
        return found


def _fault(path: list[str | int], error: jsonschema_rs.ValidationError) -> Fault:
    where = "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    rule = "/".join(str(step) for step in error.schema_path)
    return Fault("SchemaMismatch", f"is not valid by its own schema: {where}: {error.message} (rule {rule})")
