"""Real parts, one of each for every process of a run, and names in them that no other test uses."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

from tools.parts.class_archive import class_archive
from tools.parts.cli_process import CliProcess
from tools.parts.kafka import KafkaBroker
from tools.parts.proxy import FaultProxy
from tools.parts.registry import SchemaRegistry
from tools.parts.s3 import S3Server, Versitygw

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.harness import World

_numbers = itertools.count(1)
# On a busy machine the time of one example says nothing.
settings.register_profile("s3sink", deadline=None, print_blob=True)
settings.load_profile("s3sink")


TOGETHER = {"apiserver", "argocd", "charts", "chaos", "cli", "examples"}
"""Folders whose tests share a server that takes long to start: one process runs all of them."""
LONG = ("crash", "chaos", "corpus", "cli", "apiserver", "charts", "argocd", "examples")
"""Folders that start first, so that no process is left alone with one of them at the end."""
_HERE = Path(__file__).parent


def pytest_configure() -> None:
    """Java for many short processes: with the archive that `make test` makes, and without its slower compiler."""
    if (archive := class_archive()).exists():
        os.environ["S3SINK_CLASSES"] = str(archive)
    os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long folders first, then files with a Spark session, then the rest: short tests, which even out the end."""
    with_session = {item.path for item in items if "spark" in getattr(item, "fixturenames", ())}
    items.sort(key=lambda item: (_rank(item), item.path not in with_session))


def _rank(item: pytest.Item) -> int:
    folder = item.path.relative_to(_HERE).parts[0] if item.path.is_relative_to(_HERE) else ""
    return LONG.index(folder) if folder in LONG else len(LONG)


class ByFile(LoadScopeScheduling):
    """Gives whole files, and the folders of TOGETHER, to the processes of a run.

    xdist's own groups rename tests, which pytest 9.2 does not allow any more: xdist then groups nothing, silently.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = PurePosixPath(nodeid.partition("::")[0])
        return str(file.parent if TOGETHER & set(file.parts) else file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByFile:
    config.option.loadscopereorder = False
    return ByFile(config, log)


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaBroker]:
    """One broker for each process of a run, with a SASL_SSL listener beside the plain one."""
    with KafkaBroker(secure=True) as broker:
        yield broker


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """One S3 server for each process of a run."""
    with Versitygw() as server:
        yield server


@pytest.fixture(scope="session")
def registry() -> Iterator[SchemaRegistry]:
    """One schema registry for each process of a run."""
    with SchemaRegistry() as server:
        yield server


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One Spark session for each process of a run: only the first job is slow."""
    from tests.harness import start_spark  # most folders need no Spark, and its import takes a second

    session = start_spark()
    yield session
    session.stop()


@pytest.fixture(scope="session")
def s3sink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CliProcess]:
    """The `s3sink` command, for tests that need no process of their own."""
    with CliProcess(tmp_path_factory.mktemp("s3sink") / "log") as running:
        yield running


@pytest.fixture
def bucket(s3: S3Server, request: pytest.FixtureRequest) -> str:
    """A fresh bucket."""
    return s3.create_bucket(_unique(request))


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> str:
    """A topic name that no other test uses; the topic does not exist yet."""
    return _unique(request)


@pytest.fixture
def proxy(s3: S3Server) -> Iterator[FaultProxy]:
    """A proxy in front of the S3 server, without faults yet: give its `endpoint` to what you test."""
    with FaultProxy("127.0.0.1", s3.port) as between:
        yield between


def _unique(request: pytest.FixtureRequest) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower().removeprefix("test_")).strip("-")
    return f"{words[:40].rstrip('-')}-{os.getpid()}-{next(_numbers)}"


@pytest.fixture
def world(
    kafka: KafkaBroker, s3: S3Server, spark: SparkSession, bucket: str, topic_name: str, tmp_path: Path
) -> Iterator[World]:
    from tests.harness import World  # late, as above

    made = World(kafka, s3, spark, bucket, topic_name, tmp_path)
    yield made
    for driver in made.drivers:
        driver.close()
