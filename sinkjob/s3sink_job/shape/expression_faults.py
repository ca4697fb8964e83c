"""Which of the expressions failed for a record: they are evaluated together, and again one by one for bad records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from s3sink_api.spec.sql_expressions import Expression
from s3sink_job.columns.types import Column
from s3sink_job.decode.bad_records import Fault, ValueFault
from s3sink_job.shape.sql_budget import TOO_SLOW, Budget
from s3sink_job.shape.sql_engine import Evaluated, UnusableType, evaluate, without_values

FAILED = "ExpressionFailed"


def explained(
    expressions: Sequence[Expression],
    texts: Sequence[str],
    columns: Mapping[str, Column],
    found: Evaluated,
    where: str,
    budget: Budget,
) -> dict[int, Fault]:
    """Which of the expressions failed, by row, as far as the time of the batch allows to find it."""
    faults: dict[int, Fault] = {}
    rows = sorted(row for row, why in found.faults.items() if why != TOO_SLOW)
    own = {name: column.take(pa.array(rows, pa.int64())) for name, column in columns.items()}
    for expression, text in zip(expressions, texts, strict=True) if rows else ():
        try:
            alone = evaluate([text], own, len(rows), budget).faults
        except UnusableType as error:
            alone = dict.fromkeys(range(len(rows)), str(error))
        for place, why in alone.items():
            if why != TOO_SLOW:
                faults.setdefault(rows[place], _fault(f"transform.{where} {expression.text!r}:", why))
    rest = {row: _fault(f"transform.{where}:", why) for row, why in found.faults.items() if row not in faults}
    return faults | rest


def _fault(what: str, why: str) -> Fault:
    return ValueFault(FAILED, without_values(why), why).prefixed(what)
