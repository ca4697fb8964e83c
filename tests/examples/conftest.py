from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator

import pytest
from pyspark.sql import SparkSession

from e2e.parts.kafka import KafkaBroker
from e2e.parts.s3 import S3Server
from tests.engine.conftest import spark
from tests.examples.running import Place
from tests.examples.shop import open_shop

__all__ = ["spark"]

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def shop() -> Iterator[KafkaBroker]:
    """A broker of its own, since manifests name their topics."""
    with KafkaBroker(secure=True) as broker:
        open_shop(broker)
        yield broker


@pytest.fixture(scope="session")
def places(
    shop: KafkaBroker,
    s3: S3Server,
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[], Place]:
    """Makes places with buckets of their own."""
    return lambda: Place(shop, s3, spark, tmp_path_factory.mktemp("place"), f"{os.getpid()}-{next(_numbers)}")


@pytest.fixture
def place(places: Callable[[], Place]) -> Place:
    return places()
