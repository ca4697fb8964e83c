from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crash.harness import Sink
from tools.parts.cli_process import CliProcess
from tools.parts.kafka import KafkaBroker
from tools.parts.proxy import FaultProxy
from tools.parts.s3 import S3Server

MakeSink = Callable[..., Sink]


@pytest.fixture
def make_sink(
    kafka: KafkaBroker,
    s3: S3Server,
    proxy: FaultProxy,
    s3sink: CliProcess,
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
