"""`s3sink restore`: sends the records in objects back to Kafka."""

from __future__ import annotations

import json
import re
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from s3sink_api.exit_codes import DONE, FAILED
from s3sink_job.cli.opened_sink import OpenedSink, open_sink
from s3sink_job.cli.options import ManifestFile, SecretsFolder
from s3sink_job.cli.times import milliseconds

if TYPE_CHECKING:
    from s3sink_job.commit.ledger import Ledger
    from s3sink_job.proof.kafka_records import KafkaAccess
    from s3sink_job.restore.restore import RestoreOptions
    from s3sink_job.stores.bucket import Bucket

RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def restore(
    file: ManifestFile,
    to_topic: Annotated[
        list[str] | None,
        typer.Option(help="Where to: NAME, or TOPIC=NAME of several. Repeatable. Default: topics of the same name."),
    ] = None,
    to_cluster: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="An S3Sink manifest whose spec.source is the Kafka to send to."),
    ] = None,
    from_sink: Annotated[
        str | None,
        typer.Option("--from", help="Objects of another sink in the bucket: [CLUSTER/]NAMESPACE/NAME."),
    ] = None,
    topic: Annotated[list[str] | None, typer.Option(help="Only records of this topic. Repeatable.")] = None,
    partition: Annotated[list[int] | None, typer.Option(min=0, help="Only of this partition. Repeatable.")] = None,
    offsets: Annotated[
        str | None, typer.Option(help="Only offsets from START on and before END, as START:END. Either may be empty.")
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="Only records from this time on, such as 2026-11-18T03:00:00Z.")
    ] = None,
    until: Annotated[str | None, typer.Option(help="Only records before this time.")] = None,
    generation: Annotated[
        int | None, typer.Option(min=1, help="The generation of the topics. Default: the last one of each.")
    ] = None,
    partition_by_key: Annotated[
        bool, typer.Option("--partition-by-key", help="Let Kafka choose partitions by key. Default: as they were.")
    ] = False,
    append: Annotated[bool, typer.Option("--append", help="Send to topics that are not empty, too.")] = False,
    accept_losses: Annotated[
        bool, typer.Option("--accept-losses", help="Send records even if they do not come back as they were.")
    ] = False,
    rate: Annotated[str | None, typer.Option(help="At most so many bytes a second, such as 50Mi.")] = None,
    tasks: Annotated[
        int | None, typer.Option(min=1, help="Partitions at a time. Default: spec.spark.driver.cores.")
    ] = None,
    replication_factor: Annotated[
        int | None, typer.Option(min=1, help="Of topics that it creates. Default: the broker's.")
    ] = None,
    run_id: Annotated[
        str | None,
        typer.Option(help="Name of the restore. Default: made of the options: a second try resumes."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check everything, send nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
    secrets: SecretsFolder = None,
) -> None:
    """Sends the records in the sink's objects to Kafka, once each, and reads the topics to prove it. It resumes.

    Exit code 1 if the topics differ from what was sent.
    """
    if run_id is not None and not RUN_ID.fullmatch(run_id):
        raise typer.BadParameter("use up to 63 letters, digits, dots, dashes and underscores", param_hint="--run-id")
    first, end = _offsets(offsets)
    times = milliseconds(since, "--since"), milliseconds(until, "--until")
    bytes_per_second = _rate(rate)
    from s3sink_job.cli.restore_text import progress_of, restore_text
    from s3sink_job.restore.plan import Selection
    from s3sink_job.restore.restore import Restore, RestoreOptions

    selection = Selection(tuple(topic or ()), tuple(partition or ()), generation, *times, first, end)
    with ExitStack() as started:
        opened = _with_tasks(started.enter_context(open_sink(file, secrets)), tasks)
        target = started.enter_context(open_sink(to_cluster, secrets)) if to_cluster else opened
        bucket = opened.bucket()
        bucket.check()
        options = RestoreOptions(
            selection=selection,
            by_key=partition_by_key,
            append=append,
            accept_losses=accept_losses,
            replication=replication_factor,
            rate=bytes_per_second,
            run_id=run_id or "",
        )
        ledger, options = _ledger(opened, bucket, options, from_sink)
        options = replace(options, targets=_targets(to_topic or [], ledger, topic or []))
        show = started.enter_context(progress_of())
        work = Restore(
            *(opened.sink, opened.secrets, bucket, ledger, _kafka(opened, target, started), options),
            on_progress=show,
            say=lambda text: typer.echo(text, err=True),
        )
        report = work.run(dry_run=dry_run)
    typer.echo(json.dumps(report.to_doc(), indent=1) if as_json else restore_text(report))
    raise typer.Exit(DONE if report.ok else FAILED)


def _with_tasks(opened: OpenedSink, tasks: int | None) -> OpenedSink:
    if tasks is None:
        return opened
    spec = opened.sink.spec
    spark = replace(spec.spark, driver=replace(spec.spark.driver, cores=tasks))
    return replace(opened, sink=replace(opened.sink, spec=replace(spec, spark=spark)))


def _kafka(opened: OpenedSink, target: OpenedSink, started: ExitStack) -> KafkaAccess:
    """Of the target: Java's settings depend on the Kafka that it connects to."""
    from s3sink_job.cli.command_spark import open_admin, spark_session
    from s3sink_job.proof.kafka_records import KafkaAccess

    spec = replace(opened.sink.spec, source=target.sink.spec.source)
    spark = started.enter_context(spark_session(replace(opened, sink=replace(opened.sink, spec=spec))))
    admin = started.enter_context(closing(open_admin(target, spark)))
    return KafkaAccess(spark, admin, target.connection())


def _ledger(
    opened: OpenedSink, bucket: Bucket, options: RestoreOptions, from_sink: str | None
) -> tuple[Ledger, RestoreOptions]:
    from s3sink_job.commit.ledger import Ledger
    from s3sink_job.flush.state import Owner

    if from_sink is None:
        return opened.ledger(bucket), options
    parts = from_sink.split("/")
    if len(parts) not in {2, 3} or not all(parts):
        raise typer.BadParameter(f"{from_sink!r} is not NAMESPACE/NAME or CLUSTER/NAMESPACE/NAME", param_hint="--from")
    owner = Owner(parts[0] if len(parts) == 3 else "", parts[-2], parts[-1])
    folder = f"{opened.sink.spec.destination.state_prefix}/{owner.namespace}/{owner.name}"
    return Ledger(bucket, folder, owner, conditional=True), replace(options, owner=owner)


def _targets(wanted: list[str], ledger: Ledger, topics: list[str]) -> dict[str, str]:
    """By topic. A name alone is enough where there is one topic."""
    found = {}
    for text in wanted:
        source, mark, target = text.partition("=")
        if not mark:
            state = ledger.load()
            known = topics or sorted(state.topics if state is not None else ())
            if state is not None and len(known) != 1:
                raise typer.BadParameter(
                    f"the sink has the topics {', '.join(known)}: say which one, as {known[0]}={text}",
                    param_hint="--to-topic",
                )
            source, target = (known[0] if known else ""), text
        found[source] = target
    return found


def _offsets(text: str | None) -> tuple[int | None, int | None]:
    if text is None:
        return None, None
    found = re.fullmatch(r"(\d*):(\d*)", text, re.ASCII)
    if found is None or text == ":":
        raise typer.BadParameter(f"{text!r} is not START:END, such as 0:1000 or 500:", param_hint="--offsets")
    first, end = (int(number) if number else None for number in found.groups())
    if first is not None and end is not None and first >= end:
        raise typer.BadParameter(f"{text!r} has no offset in it: END is not included", param_hint="--offsets")
    return first, end


def _rate(text: str | None) -> int | None:
    if text is None:
        return None
    from s3sink_api.spec.quantities import parse_quantity

    try:
        size = parse_quantity(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--rate") from None
    if size < 1024:
        raise typer.BadParameter("must be at least 1Ki", param_hint="--rate")
    return size
