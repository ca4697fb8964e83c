"""The answer of `s3sink takeover`: the manifest with its start, and the report as lines of text."""

from __future__ import annotations

from pathlib import Path

from s3sink_api.spec import read_documents
from s3sink_job.convert.output import yaml_text
from s3sink_job.handover.handover import Handover
from s3sink_job.handover.positions import PartitionStart

SHOWN = 20
_ADVICE = {
    True: "These objects hold no others: delete them before the sink runs:",
    False: "These objects may hold earlier ones, too, so do not delete them. Start the other sink again, let it write"
    " everything without new records, stop it and run takeover again:",
}


def manifest_with_start(file: Path, handover: Handover) -> str:
    """The S3Sink of the file as it is, without comments, with startingOffsets. Secrets of the file are not printed."""
    document = next(one.content for one in read_documents(file) if one.content.get("kind") == "S3Sink")
    spec = document["spec"]
    source = {**spec["source"], "startingOffsets": handover.starting_offsets()}
    return yaml_text({**document, "spec": {**spec, "source": source}})


def takeover_text(handover: Handover) -> str:
    lines = [line for start in handover.partitions for line in _lines(start)]
    if handover.clean:
        end = "clean: nothing is missing, and nothing is written twice"
    else:
        end = "not clean: see the lines with missing and repeated before the sink runs"
    count = len(handover.partitions)
    return "\n".join([*lines, f"{handover.sink} continues {handover.group} in {count} partitions; {end}"])


def _lines(start: PartitionStart) -> list[str]:
    lines = [f"{start.topic}-{start.partition}: begins at {start.offset}, by the {start.by}"]
    if start.missing:
        low, high = start.missing
        lines.append(f"  missing: offsets {low} to {high - 1}; Kafka has removed them")
    if start.repeated:
        low, high_or_none = start.repeated
        until = "on" if high_or_none is None else f"to {high_or_none - 1}"
        lines.append(f"  repeated: offsets {low} {until} are in objects already. {_ADVICE[start.deletable]}")
        lines += [f"    {key}" for key in start.objects[:SHOWN]]
        if len(start.objects) > SHOWN:
            lines.append(f"    and {len(start.objects) - SHOWN} more; --json lists them")
    return [*lines, *(f"  {note}" for note in start.notes)]
