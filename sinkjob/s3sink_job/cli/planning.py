"""`s3sink plan`: what a driver would write if it ran now."""

from __future__ import annotations

import json
import os
import threading
from typing import Any

import typer

from s3sink_job.cli.checking import ledger_of, spark_of
from s3sink_job.cli.context import Opened, cluster_id
from s3sink_job.engine.driver import Driver
from s3sink_job.engine.preview import preview
from s3sink_job.errors import S3SinkError
from s3sink_job.report.reporter import Reporter

KEYS_SHOWN = 3


def plan_sink(given: Opened, *, as_json: bool) -> bool:
    try:
        bucket = given.bucket()
        bucket.check()
        with spark_of(given) as spark:
            stop = threading.Event()
            driver = Driver(given.sink, given.secrets, spark, Reporter(), cluster=cluster_id(), stop=stop)
            try:
                doc = preview(driver, ledger_of(given, bucket)).to_doc()
            finally:
                driver.close()
    except S3SinkError as error:
        typer.echo(f"{error.reason}: {error}", err=True)
        return False
    typer.echo(json.dumps(doc, indent=1) if as_json else words(doc))
    return True


def words(doc: dict[str, Any]) -> str:
    start = "spec.reset.to" if doc["reset"] else "spec.source.startingOffsets"
    state = doc["state"] or f"has never run; it would start as {start} says"
    lines = [f"{doc['sink']}: {state}"]
    if doc["publishing"]:
        lines.append(f"flush {doc['publishing']} is committed and would be published first")
    lines += doc["notes"]
    for partition in doc["partitions"]:
        lines += _partition(partition)
    lines += [f"{p['topic']}-{p['partition']}: {p['reason']}: {p['message']}" for p in doc["problems"]]
    due = [p for p in doc["partitions"] if "reason" in p]
    if due:
        objects, offsets = sum(p["objects"] for p in due), sum(p["offsets"] for p in due)
        more = " or more" if any("splitBy" in p for p in due) else ""
        lines.append(f"one flush: {offsets:,} offsets of {len(due)} partitions in about {objects:,} objects{more}")
    else:
        lines.append("nothing is due")
    if doc["left"]:
        lines.append(f"{doc['left']:,} more offsets are due in the flushes after it")
    if doc["paused"]:
        lines.append("spec.state is not Running: nothing would be written")
    return os.linesep.join(lines)


def _partition(doc: dict[str, Any]) -> list[str]:
    name = f"{doc['topic']}-{doc['partition']}"
    line = f"{name}: committed {doc['committed']:,}, end {doc['end']:,}, {doc['lag']:,} behind"
    if "reason" in doc:
        size = f", about {doc['bytes']:,} bytes" if "bytes" in doc else ", of a size not measured yet"
        line += f"; due by {doc['reason']}: {doc['offsets']:,} offsets in {len(doc['slices'])} slices"
        split = f" or more, at least one for each {' and '.join(doc['splitBy'])}" if "splitBy" in doc else ""
        line += f", about {doc['objects']:,} objects{split}{size}"
        more = ["  …"] if len(doc["keys"]) > KEYS_SHOWN else []
        place = f"s3://{doc['bucket']}/" if "bucket" in doc else ""
        return [line, *(f"  {place}{key}" for key in doc["keys"][:KEYS_SHOWN]), *more]
    if "waitsFor" in doc:
        line += f"; due by {doc['waitsFor']} at {doc['due']}"
    return [line]
