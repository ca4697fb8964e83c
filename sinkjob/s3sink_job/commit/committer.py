"""The state as last stored, and the only ways to change it: swap, commit a flush, publish it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from s3sink_job.base.errors import FinalError, ProtocolError
from s3sink_job.commit.ledger import Ledger
from s3sink_job.commit.letter_publisher import LetterPublisher
from s3sink_job.commit.multipart_publisher import MultipartPublisher
from s3sink_job.commit.publisher import Publisher
from s3sink_job.commit.schemas import Schemas
from s3sink_job.flush.manifest import Gap, LastLetter, LetterTopicEntry, Manifest, ObjectEntry, SliceEntry, SourceLog
from s3sink_job.flush.refresh import is_publishing_run, published_of_run
from s3sink_job.flush.state import SinkState
from s3sink_job.flush.transitions import commit, published
from s3sink_job.task.encoding_documents import encoding_to_doc
from s3sink_job.task.routing import Encodings
from s3sink_job.task.slice_result import SliceResult


class Committer:
    def __init__(
        self,
        ledger: Ledger,
        state: SinkState,
        clock: Callable[[], float] = time.time,
        publisher: Publisher | None = None,
        letters: LetterPublisher | None = None,
    ) -> None:
        self.ledger = ledger
        self.schemas = Schemas(ledger)
        self.clock = clock
        self.publisher = publisher or MultipartPublisher()
        self.letters = letters
        self._state: SinkState | None = state

    @property
    def in_doubt(self) -> bool:
        """After a failed swap nothing more may be done here: the sink has to be taken over again."""
        return self._state is None

    @property
    def state(self) -> SinkState:
        if self._state is None:
            raise ProtocolError("the outcome of the last swap is not known")
        return self._state

    def swap(self, state: SinkState) -> SinkState:
        self._state = None
        self._state = self.ledger.swap(state)
        return self._state

    def commit(self, state: SinkState, manifest: Manifest) -> SinkState:
        self.ledger.put_manifest(manifest)
        return self.swap(commit(state, manifest))

    def publish(self, manifest: Manifest) -> list[ObjectEntry]:
        """Makes the committed flush visible and stores that at once. Returns its lost objects.

        At once, because readers may load and delete objects as soon as they see them. While the state says that the
        flush is being published, a deleted object would be mistaken for a lost one and written again.
        """
        try:
            lost = self.publisher.publish(self.ledger.bucket, manifest, exclusive=self.ledger.conditional)
        except FinalError:
            # If another driver took over, the key may hold what it wrote again.
            self.ledger.confirm()
            raise
        if self.letters is not None:
            lost += self.letters.publish(self.ledger, manifest)
        keys = {entry.key for entry in lost}
        numbers = [n for n, entry in enumerate(manifest.objects) if entry.key in keys]
        if self.state.publishing is not None:
            self.swap(published(self.state, numbers))
        elif is_publishing_run(self.state):
            self.swap(published_of_run(self.state, manifest.name, numbers))
        if self.letters is not None:
            self.letters.remove_staged(self.ledger, manifest)
        return lost

    def manifest(
        self,
        state: SinkState,
        encodings: Encodings,
        *,
        number: int | None = None,
        results: list[SliceResult] | None = None,
        gaps: tuple[Gap, ...] = (),
        logs: Mapping[str, SourceLog] | None = None,
        letter_topic: LetterTopicEntry | None = None,
    ) -> Manifest:
        results = results or []
        return Manifest(
            number=self.ledger.next_number(state) if number is None else number,
            writer=self.ledger.writer,
            epoch=state.epoch,
            committed_at=self.clock(),
            encoding=encoding_to_doc(encodings.default),
            routed={topic: encoding_to_doc(encoding) for topic, encoding in encodings.routed.items()},
            stamp=encodings.stamp,
            previous=state.last,
            slices=tuple(_entry(r) for r in results),
            objects=tuple(o for r in results for o in r.objects),
            gaps=gaps,
            schemas=self.schemas.widened(state, results, {t for t in state.topics if encodings.of(t).decoding.typed}),
            logs=logs or {},
            last_letter=_last_letter(results),
            letter_topic=letter_topic,
        )


def _last_letter(results: list[SliceResult]) -> LastLetter | None:
    found = [(r.slice, record) for r in results for record in r.shown if record.became == "DeadLetter"]
    return next((LastLetter(*s.at, one.offset, one.reason, one.message) for s, one in reversed(found)), None)


def _entry(result: SliceResult) -> SliceEntry:
    part = result.slice
    return SliceEntry(
        *(part.topic, part.generation, part.partition, part.start, result.end, part.reason),
        rows=sum(o.rows for o in result.objects if not o.letters),
        skipped=result.skipped,
        letters=result.letters,
        filtered=result.filtered,
        inputs=result.inputs,
        bytes=sum(o.bytes for o in result.objects if not o.letters),
        # A slice that stopped early had read further, so its bytes would be a wrong measure.
        read=result.read_bytes if result.failure is None else 0,
        more=part.more or result.end < part.end,
    )
