"""Keys that the store refuses: the records of such an object are bad records, and the rest of the slice goes on.

A refusal is found only when the object is written. Then the slice fails, and is read once more with the refused
groups known.
"""

from __future__ import annotations

from s3sink_job.flush.manifest import Slice
from s3sink_job.layout.keys import refused_for_length
from s3sink_job.stores.uploads import try_upload
from s3sink_job.task.slice_objects import SliceObjects
from s3sink_job.task.slice_result import Failure
from s3sink_job.task.task_settings import Group, SliceWork


class RefusedKeys:
    def __init__(self, work: SliceWork) -> None:
        self._known = work.refused_keys
        self._longest_segment = work.settings.longest_segment
        self._folders_vary = work.target.encoding.folders_vary

    @property
    def possible(self) -> bool:
        return bool(self._known) or self._longest_segment is not None

    def reason(self, group: Group) -> str:
        """Why the store refuses the key of the group's object; empty if it does not, or if that is not known yet."""
        if why := self._known.get(group):
            return why
        return refused_for_length(group[0], self._longest_segment) if self._folders_vary else ""


def refusal(objects: SliceObjects, slice: Slice, prefix: str) -> Failure | None:
    """The failure of a slice with refused keys. Raises if the store refuses any other key as well."""
    if not objects.refused:
        return None
    try_upload(objects.bucket, prefix)
    why = next(iter(objects.refused.values()))
    return Failure("KeyRefused", f"{slice}: {why}", retryable=False)
