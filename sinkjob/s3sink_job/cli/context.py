"""What every command starts from: the manifest, its secrets, and a bucket to talk to."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from s3sink_job.secrets import Secrets, write_secrets
from s3sink_job.spec import S3Sink, load_file
from s3sink_job.stores.bucket import Bucket, Retrying
from s3sink_job.stores.client import open_bucket

LOCAL_CLUSTER = "local"
SECRETS = "s3sink-secrets-"


def cluster_id() -> str:
    """Who owns the state. The operator sets it; outside of a cluster it is the same everywhere."""
    return os.environ.get("S3SINK_CLUSTER", LOCAL_CLUSTER)


@dataclass(frozen=True)
class Opened:
    sink: S3Sink
    secrets: Secrets

    @property
    def folder(self) -> str:
        return f"{self.sink.spec.destination.state_prefix}/{self.sink.id}"

    def bucket(self) -> Bucket:
        retries = self.sink.spec.errors.request_retries
        return open_bucket(self.sink.spec.destination, self.secrets, Retrying(retries.max, retries.backoff))


def _remove_leftovers() -> None:
    """Secrets laid out by a run that was killed and could not remove them itself."""
    for folder in Path(tempfile.gettempdir()).glob(f"{SECRETS}*-*"):
        owner = folder.name.removeprefix(SECRETS).split("-")[0]
        if owner.isdecimal() and not Path(f"/proc/{owner}").exists() and Path("/proc/self").exists():
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def opened(file: Path, secrets_folder: Path | None) -> Iterator[Opened]:
    """Secrets come from a folder of mounts, or from Secret documents beside the S3Sink in the file."""
    loaded = load_file(file)
    if secrets_folder is not None:
        yield Opened(loaded.sink, Secrets(str(secrets_folder)))
        return
    _remove_leftovers()
    folder = Path(tempfile.mkdtemp(prefix=f"{SECRETS}{os.getpid()}-"))
    try:
        yield Opened(loaded.sink, write_secrets(folder, loaded.secrets))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
