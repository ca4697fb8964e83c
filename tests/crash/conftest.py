from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.parts.commands import Commands
from e2e.parts.kafka import KafkaBroker
from e2e.parts.proxy import FaultProxy
from e2e.parts.s3 import S3Server
from tests.crash.harness import Sink

MakeSink = Callable[..., Sink]


@pytest.fixture
def make_sink(
    kafka: KafkaBroker,
    s3: S3Server,
    proxy: FaultProxy,
    s3sink: Commands,
    bucket: str,
    topic_name: str,
    tmp_path: Path,
) -> Iterator[MakeSink]:
    made: list[Sink] = []

    def make(**settings: Any) -> Sink:
        made.append(Sink(kafka, s3, proxy, s3sink, bucket, topic_name, tmp_path, **settings))
        return made[-1]

    yield make
    for sink in made:
        sink.close()
