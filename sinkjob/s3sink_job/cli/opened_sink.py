"""What every command starts from: the manifest, its secrets, and access to bucket and state."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from s3sink_api import environment
from s3sink_api.spec import S3Sink, load_file
from s3sink_job.base.retry import RetryPolicy
from s3sink_job.base.secrets import Secrets, write_secrets

if TYPE_CHECKING:
    from s3sink_job.commit.ledger import Ledger
    from s3sink_job.stores.bucket import Bucket

LOCAL_CLUSTER = "local"
SECRETS_PREFIX = "s3sink-secrets-"


def cluster_id() -> str:
    """The cluster that owns the state. The operator sets it; outside of Kubernetes it is the same everywhere."""
    return os.environ.get(environment.CLUSTER, LOCAL_CLUSTER)


@dataclass(frozen=True)
class OpenedSink:
    sink: S3Sink
    secrets: Secrets

    @property
    def folder(self) -> str:
        """Of the state and the manifests."""
        return f"{self.sink.spec.destination.state_prefix}/{self.sink.id}"

    def run_once(self) -> OpenedSink:
        """The same sink with `run: Once`, unless it ends anyway."""
        spec = self.sink.spec
        return self if spec.ends else replace(self, sink=replace(self.sink, spec=replace(spec, run="Once")))

    # The clients of S3 and Kafka are imported when they are used: `check --offline` needs neither.
    def bucket(self) -> Bucket:
        from s3sink_job.stores.factory import open_bucket

        retries = self.sink.spec.errors.request_retries
        return open_bucket(self.sink.spec.destination, self.secrets, RetryPolicy(retries.max, retries.backoff))

    def ledger(self, bucket: Bucket) -> Ledger:
        from s3sink_job.commit.ledger import Ledger
        from s3sink_job.flush.state import Owner

        metadata = self.sink.metadata
        owner = Owner(cluster_id(), metadata.namespace, metadata.name, metadata.uid)
        return Ledger(bucket, self.folder, owner, conditional=True)

    def connection(self) -> dict[str, str]:
        """Kafka properties, with those from Secrets."""
        from s3sink_job.kafka.properties import connection

        return connection(self.sink.spec.source, self.secrets)


@contextmanager
def open_sink(file: Path, secrets_folder: Path | None) -> Iterator[OpenedSink]:
    """Secrets come from a folder of mounts, or from the Secret documents in the manifest file."""
    loaded = load_file(file)
    if secrets_folder is not None:
        yield OpenedSink(loaded.sink, Secrets(str(secrets_folder)))
        return
    _remove_leftover_secrets()
    folder = Path(tempfile.mkdtemp(prefix=f"{SECRETS_PREFIX}{os.getpid()}-"))
    try:
        yield OpenedSink(loaded.sink, write_secrets(folder, loaded.secrets))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_leftover_secrets() -> None:
    """Of processes that were killed with SIGKILL and could not remove them."""
    for folder in Path(tempfile.gettempdir()).glob(f"{SECRETS_PREFIX}*-*"):
        owner = folder.name.removeprefix(SECRETS_PREFIX).split("-")[0]
        if owner.isdecimal() and not Path(f"/proc/{owner}").exists() and Path("/proc/self").exists():
            shutil.rmtree(folder, ignore_errors=True)
