"""Who holds the last stable offset: the open transactions of a partition, as brokers and coordinators tell of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from py4j.protocol import Py4JJavaError

from s3sink_job.flush.plan import TopicPartition
from s3sink_job.kafka.admin import Admin
from s3sink_job.times import iso

# Idempotent producers are listed for a week: only those that have a transaction open have a start offset.
_PRODUCER = re.compile(
    r"ProducerState\(producerId=(\d+), producerEpoch=(-?\d+),[^()]*lastTimestamp=(-?\d+),"
    r"[^()]*currentTransactionStartOffset=OptionalLong\[(\d+)\]\)"
)
_LISTING = re.compile(r"TransactionListing\(transactionalId='(.*?)', producerId=(\d+), ")


@dataclass(frozen=True)
class OpenTransaction:
    """`last` is the time of the producer's last record there; id, begin and time-out are the coordinator's to tell."""

    at: TopicPartition
    start: int
    producer_id: int
    epoch: int
    last: float
    transactional_id: str = ""
    began: float | None = None
    timeout: float | None = None

    def words(self, servers: str) -> str:
        """Which transaction, since when, and what to do."""
        topic, partition = self.at
        who = f"producer id {self.producer_id}, epoch {self.epoch}"
        if self.transactional_id:
            who = f"transactional id {self.transactional_id}, {who}"
        since = f"since {iso(self.began)}" if self.began else f"its last record is of {iso(self.last)}"
        tool = f"kafka-transactions.sh --bootstrap-server {servers}"
        abort = f"`{tool} abort --topic {topic} --partition {partition} --start-offset {self.start}`"
        if self.transactional_id:
            late = f" after its time-out of {self.timeout:g} s" if self.timeout else ""
            todo = f"its producer has to end it, or the brokers do{late}; if neither happens, {abort} does"
        else:
            todo = f"no coordinator tells whose it is: if `{tool} find-hanging` lists it, {abort} ends it"
        return f"{topic}-{partition}: a transaction is open from offset {self.start} on ({who}; {since}): {todo}"


def holding(admin: Admin, partitions: Sequence[TopicPartition]) -> list[OpenTransaction]:
    """The first open transaction of each partition: the one that holds its last stable offset.

    Empty where the brokers cannot or may not say. What the coordinators may not say is left out.
    """
    found = []
    keys = {at: admin.partition(at) for at in partitions}
    options = admin.courtesy("DescribeProducersOptions")
    answer = admin.client.describeProducers(admin.java_list(keys.values()), options)
    for at, key in keys.items():
        try:
            text = str(answer.partitionResult(key).get().activeProducers().toString())
        except Py4JJavaError:
            continue
        open_here = [tuple(map(int, numbers)) for numbers in _PRODUCER.findall(text)]
        if open_here:
            producer_id, epoch, last, start = min(open_here, key=lambda p: p[3])
            found.append(OpenTransaction(at, start, producer_id, epoch, last / 1000))
    return _named(admin, found) if found else []


def _named(admin: Admin, found: list[OpenTransaction]) -> list[OpenTransaction]:
    try:
        listed = _transactional_ids(admin)
    except Py4JJavaError:
        return found
    return [_told(admin, one, listed[one.producer_id]) if one.producer_id in listed else one for one in found]


def _transactional_ids(admin: Admin) -> dict[int, str]:
    state = admin.jvm.org.apache.kafka.clients.admin.TransactionState
    unfinished = admin.java_list([state.ONGOING, state.PREPARE_COMMIT, state.PREPARE_ABORT])
    options = admin.courtesy("ListTransactionsOptions").filterStates(unfinished)
    text = str(admin.client.listTransactions(options).all().get().toString())
    return {int(producer): name for name, producer in _LISTING.findall(text)}


def _told(admin: Admin, one: OpenTransaction, transactional_id: str) -> OpenTransaction:
    one = replace(one, transactional_id=transactional_id)
    options = admin.courtesy("DescribeTransactionsOptions")
    try:
        described = admin.client.describeTransactions(admin.java_list([transactional_id]), options)
        answer = described.description(transactional_id).get()
    except Py4JJavaError:
        return one  # its coordinator may not say more; the id alone is of use
    began = float(answer.transactionStartTimeMs().orElse(0)) / 1000 or None
    return replace(one, began=began, timeout=float(answer.transactionTimeoutMs()) / 1000)
