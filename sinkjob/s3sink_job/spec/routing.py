"""The spec as it is for the topics of a route: what the route says, and for the rest what it inherits."""

from __future__ import annotations

from dataclasses import replace

from s3sink_job.spec.format import Csv, Format, Parquet
from s3sink_job.spec.routes import Route, RouteFormat, over
from s3sink_job.spec.sink import Spec


def spec_for(spec: Spec, route: Route) -> Spec:
    return replace(
        spec,
        destination=over(spec.destination, route.destination),
        layout=over(spec.layout, route.layout),
        format=_format(spec.format, route.format),
        flush=over(spec.flush, route.flush),
        routes=(),
    )


def _format(format: Format, own: RouteFormat | None) -> Format:
    """Options of the other format are not inherited: they would mean nothing."""
    if own is not None and own.type not in {None, format.type}:
        format = replace(format, csv=Csv(), parquet=Parquet())
    return over(format, own)
