"""The transform of one slice: from decoded batches to those that get their shape.

Conditions on key, headers and metadata come first: what they leave out is never decoded. Then unwrap, steps, the other
conditions, and select. Columns that are selected as they are do not pass through DuckDB, and keep their exact types.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from s3sink_api.spec.sql_expressions import HEADERS, Expression, Star, parse_filter, parse_select
from s3sink_job.columns.types import Column, Path, to_doc
from s3sink_job.decode.bad_records import BadRecords, Fault, Faults, Stage, faults_at
from s3sink_job.decode.decoder import DecodedBatch
from s3sink_job.flush.manifest import InputTypes
from s3sink_job.kafka.single_headers import header_column
from s3sink_job.shape.debezium import unwrapped
from s3sink_job.shape.expression_faults import FAILED, explained
from s3sink_job.shape.field_steps import WHOLE, stepped
from s3sink_job.shape.input_fields import NO_UNWRAP, InputFields, input_fields
from s3sink_job.shape.origin import Origin
from s3sink_job.shape.record_fields import KAFKA_COLUMNS, MetaFields, NoSuchField, field_at, is_meta
from s3sink_job.shape.sql_budget import Budget
from s3sink_job.shape.sql_engine import UnusableType, evaluate
from s3sink_job.shape.transform_settings import TransformSettings
from s3sink_job.shape.transformed_batch import FilteredBatch, TransformedBatch
from s3sink_job.shape.value_columns import ValueColumns, everywhere, only, row_numbers, true_rows

Fields = Callable[[Path], Column]


class TypesChanged(Exception):
    """A field has another type than in the batches before, and an expression may depend on it.

    All records of a slice are transformed with the same types, so that they can be transformed again in the same way.
    """


@dataclass(frozen=True)
class Filtered:
    """Some rows of a batch. `keep` is a mask of them; None for all."""

    batch: pa.RecordBatch
    bad: BadRecords
    keep: Column | None = None


class Transformer:
    def __init__(self, settings: TransformSettings, origin: Origin, *, skip_nulls: bool = False) -> None:
        self._transform, self._origin, self._skip_nulls = settings.transform, origin, skip_nulls
        where = parse_filter(self._transform.where) if self._transform.where else ()
        self._early = tuple(one for one in where if one.of_metadata)
        self._late = tuple(one for one in where if not one.of_metadata)
        self._items = tuple(parse_select(text) for text in self._transform.select or ())
        self._fixed = settings.inputs
        self._types: dict[Path, pa.DataType] = {}
        self._decoded: pa.DataType | None = None
        """Of the last batch with rows."""
        self._budget = Budget()
        """Of the present batch."""

    @property
    def needs_values(self) -> bool:
        """Whether values have to be decoded to columns."""
        return self._transform.changes_values or bool(self._late)

    @property
    def types(self) -> InputTypes:
        """Of the fields that expressions depend on, as all batches so far had them."""
        if self._fixed is not None:
            return self._fixed
        return tuple((path, json.dumps(to_doc(kind))) for path, kind in sorted(self._types.items()))

    @cached_property
    def fields(self) -> InputFields:
        """The decoded fields whose types matter."""
        computed = (one for item in self._items for one in _expressions(item) if one.plain is None)
        return input_fields(self._transform, [*self._late, *computed])

    def input_path(self, path: Path) -> Path | None:
        """The decoded field that a column of the result is, if it is one unchanged."""
        if self._transform.unwrap or self._transform.steps:
            return None
        stars = False
        for item in self._items:
            if isinstance(item, Expression):
                if item.name == path[0]:
                    return None if item.plain is None or is_meta(item.plain) else (*item.plain, *path[1:])
            else:
                stars = path[0] not in {*item.exclude, *(one.name for one in item.replace)}
        return path if stars or not self._items else None

    def early(self, batch: pa.RecordBatch, bad: BadRecords, key: Callable[[], tuple[Column, Faults]]) -> Filtered:
        """By key, headers and metadata alone. The first look at a batch."""
        self._budget = Budget()
        if not self._early:
            return Filtered(batch, bad)
        undecoded: dict[int, Fault] = {}

        def keys() -> Column:
            column, faults = key()
            undecoded.update(faults)
            return column

        meta = MetaFields(batch, self._origin, keys)
        keep, faults = self._conditions(self._early, meta.column, batch.num_rows)
        if undecoded:
            # Whether the condition is true for such a record is not known.
            keep = pc.or_(keep, only(undecoded, batch.num_rows))
        bad.add(Stage.DECODE, undecoded)
        bad.add(Stage.TRANSFORM, faults)
        if pc.all(keep, min_count=0).as_py():
            return Filtered(batch, bad)
        kept = batch.filter(keep)
        return Filtered(kept, bad.kept(kept, keep), keep)

    def apply(self, decoded: DecodedBatch) -> tuple[DecodedBatch, Column | None]:
        """The batch behind the transform, and a mask of the rows that it kept; None for all."""
        values = self._values(decoded)
        meta = MetaFields(decoded.batch, self._origin, lambda: decoded.plain("key")).column
        if self._transform.unwrap:
            values = unwrapped(values, self._transform.debezium or NO_UNWRAP)
        for step in self._transform.steps:
            values = stepped(values, step, meta)
        decoded.bad.add(Stage.TRANSFORM, values.faults)
        keep = self._kept(decoded, values, meta)
        if keep is not None:
            values = _filtered(values, keep)
        source = FilteredBatch(decoded, keep)
        if self._items:
            values = self._selected(values, MetaFields(source.batch, self._origin, lambda: source.plain("key")).column)
        source.bad.add(Stage.TRANSFORM, values.faults)
        if not self._transform.changes_values:
            with_fields = decoded.input("value").has_fields
            return source.with_rows(_batch(values.columns, values.count)) if with_fields else source, keep
        return TransformedBatch(source, _batch(_without_values(values), values.count), values.null), keep

    def _values(self, decoded: DecodedBatch) -> ValueColumns:
        null = decoded.batch.column("value").is_null()
        if decoded.input("value").has_fields:
            rows = decoded.rows()
            columns = dict(zip(rows.schema.names, rows.columns, strict=True))
        else:
            columns = {WHOLE: decoded.plain("value")}
        if len(null):
            self._check_types(columns)
        return ValueColumns(columns, null)

    def _check_types(self, columns: Mapping[str, Column]) -> None:
        """The first batch with rows decides on the types of the slice."""
        record = pa.struct([pa.field(name, column.type) for name, column in columns.items()])
        if self._fixed is not None or record == self._decoded:
            return
        found = self.fields.types_in(record)
        if self._types and found != self._types:
            raise TypesChanged
        self._types, self._decoded = found, record

    def _kept(self, decoded: DecodedBatch, values: ValueColumns, meta: Fields) -> Column | None:
        keep = everywhere(values.count) if values.dropped is None else pc.invert(values.dropped)
        if self._skip_nulls:
            keep = pc.and_(keep, pc.invert(values.null))
        if self._late:
            found, faults = self._conditions(self._late, _fields(values, meta), values.count)
            decoded.bad.add(Stage.TRANSFORM, faults)
            keep = pc.and_(keep, found)
        if len(decoded.bad):
            # What is wrong with a record is said, whether it would have been kept or not.
            keep = pc.or_(keep, decoded.bad.mask())
        return None if pc.all(keep, min_count=0).as_py() else keep

    def _conditions(
        self, conditions: Sequence[Expression], fields: Fields, count: int
    ) -> tuple[Column, dict[int, Fault]]:
        """A mask of the rows for which all are true, or that are at fault."""
        columns, faults = _evaluated(conditions, fields, count, "where", self._budget)
        keep = everywhere(count)
        for column in columns:
            true = column if pa.types.is_boolean(column.type) else pa.nulls(count, pa.bool_())
            if not pa.types.is_boolean(column.type) and not pa.types.is_null(column.type):
                why = f"transform.where {conditions[0].text!r} is {column.type}, and must be a condition"
                faults |= faults_at(range(count), FAILED, why)
            keep = pc.and_(keep, pc.fill_null(true, False))
        if faults:
            keep = pc.or_(keep, only(faults, count))
        return keep, faults

    def _selected(self, values: ValueColumns, meta: Fields) -> ValueColumns:
        fields = _fields(values, meta)
        expressions = [one for item in self._items for one in _expressions(item)]
        computed = [one for one in expressions if one.plain is None]
        try:
            found = {one: fields(one.plain) for one in expressions if one.plain is not None}
        except NoSuchField as error:
            return values.with_faults(faults_at(range(values.count), FAILED, f"transform.select: {error}"))
        columns, faults = _evaluated(computed, fields, values.count, "select", self._budget)
        found |= dict(zip(computed, columns, strict=True))
        explicit = {one.name for one in self._items if isinstance(one, Expression)}
        result: dict[str, Column] = {}
        for item in self._items:
            if isinstance(item, Expression):
                result[item.name] = found[item]
                continue
            replaced = {one.name: found[one] for one in item.replace}
            for name, column in values.columns.items():
                if name not in item.exclude and name not in explicit:
                    result[name] = replaced.get(name, column)
        nulls = set(true_rows(values.null))
        return values.with_columns(result).with_faults({row: why for row, why in faults.items() if row not in nulls})


def kafka_columns(settings: TransformSettings) -> frozenset[str]:
    """The Kafka columns that a transform needs."""
    transform = settings.transform
    expressions = [*(parse_filter(transform.where) if transform.where else ())]
    for text in transform.select or ():
        expressions += _expressions(parse_select(text))
    paths = {path for one in expressions for path in one.paths}
    single = {header_column(path[1]) for path in paths if path[0] == HEADERS and len(path) > 1}
    names = {path[0] for path in paths if path[0] != HEADERS or len(path) == 1}
    names |= {"_timestamp"} if any(getattr(step, "source", "") == "Timestamp" for step in transform.steps) else set()
    return frozenset({"value", *single, *(KAFKA_COLUMNS[name] for name in names if name in KAFKA_COLUMNS)})


def _expressions(item: Expression | Star) -> tuple[Expression, ...]:
    return (item,) if isinstance(item, Expression) else item.replace


def _fields(values: ValueColumns, meta: Fields) -> Fields:
    return lambda path: meta(path) if is_meta(path) else field_at(values.columns, path, values.count)


def _evaluated(
    expressions: Sequence[Expression], fields: Fields, count: int, where: str, budget: Budget
) -> tuple[list[Column], dict[int, Fault]]:
    """The column of each expression, and faults by row with the expression that failed."""
    if not expressions or not count:
        return [pa.nulls(count)] * len(expressions), {}
    names, texts = _compiled(tuple(expressions))
    try:
        columns = {name: fields(path) for path, name in names.items()}
        found = evaluate(texts, columns, count, budget)
    except (NoSuchField, UnusableType) as error:
        return [pa.nulls(count)] * len(expressions), faults_at(range(count), FAILED, f"transform.{where}: {error}")
    results = found.columns or [pa.nulls(count)] * len(expressions)
    if not found.faults:
        return results, {}
    with budget.without_results():
        return results, explained(expressions, texts, columns, found, where, budget)


@lru_cache(256)
def _compiled(expressions: tuple[Expression, ...]) -> tuple[Mapping[Path, str], Sequence[str]]:
    """Names of columns for the fields, and the expressions as SQL with these names."""
    paths = dict.fromkeys(path for one in expressions for path in one.paths)
    names = {path: f"c{number}" for number, path in enumerate(paths)}
    return names, [one.sql(names) for one in expressions]


def _without_values(values: ValueColumns) -> Mapping[str, Column]:
    """The columns, null where the value is."""
    if not pc.any(values.null).as_py():
        return values.columns
    rows = pc.if_else(values.null, pa.scalar(None, pa.int64()), row_numbers(values.count))
    return {name: column.take(rows) for name, column in values.columns.items()}


def _filtered(values: ValueColumns, keep: Column) -> ValueColumns:
    columns = {name: column.filter(keep) for name, column in values.columns.items()}
    return replace(values, columns=columns, null=values.null.filter(keep), dropped=None, faults={})


def _batch(columns: Mapping[str, Column], count: int) -> pa.RecordBatch:
    if not columns:
        # A batch without columns would lose its number of rows.
        return pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([])))
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
