"""`s3sink find`: which object holds a record, or what became of it."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Annotated

import typer

from s3sink_api.exit_codes import DONE, FAILED
from s3sink_job.cli.kafka_on_demand import kafka_on_demand
from s3sink_job.cli.opened_sink import open_sink
from s3sink_job.cli.options import ManifestFile, SecretsFolder


def find(
    file: ManifestFile,
    topic: Annotated[str, typer.Option(help="The topic of the record.")],
    partition: Annotated[int | None, typer.Option(min=0, help="Its partition. Needed with --offset.")] = None,
    offset: Annotated[int | None, typer.Option(min=0, help="Its offset.")] = None,
    key: Annotated[str | None, typer.Option(help="Its key, instead of --offset: finds all records with it.")] = None,
    generation: Annotated[
        int | None, typer.Option(min=1, help="The generation of the topic. Default: the present one.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
    secrets: SecretsFolder = None,
) -> None:
    """Shows which object holds a record, with its row, or what became of it. Exit code 1 if no object has it."""
    if (offset is None) == (key is None):
        raise typer.BadParameter("give one of --offset and --key")
    if offset is not None and partition is None:
        raise typer.BadParameter("--offset needs --partition", param_hint="--partition")
    if key is not None and generation is not None:
        raise typer.BadParameter("is only for --offset", param_hint="--generation")
    from s3sink_job.cli.find_text import find_text
    from s3sink_job.proof.find import WantedKey, WantedOffset
    from s3sink_job.proof.find import find as find_record

    wanted: WantedOffset | WantedKey
    if key is not None:
        wanted = WantedKey(topic, key, partition)
    else:
        assert partition is not None
        assert offset is not None
        wanted = WantedOffset(topic, partition, offset, generation)
    with open_sink(file, secrets) as opened, ExitStack() as started:
        bucket = opened.bucket()
        bucket.check()
        kafka = kafka_on_demand(opened, started)
        doc = find_record(opened.sink, opened.secrets, bucket, opened.ledger(bucket), kafka, wanted)
    typer.echo(json.dumps(doc, indent=1) if as_json else find_text(doc))
    raise typer.Exit(DONE if doc["records"] else FAILED)
