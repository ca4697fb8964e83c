"""Lost objects that a slice writes again: which rows belong to which of them, and under which key they are written."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa

from s3sink_job.layout.groups import Groups
from s3sink_job.layout.keys import key_with_mark
from s3sink_job.task.task_settings import Group, Rewrite


class RewrittenObjects:
    """To the writer each lost object is a group of its own, named by its number."""

    def __init__(self, rewrites: tuple[Rewrite, ...]) -> None:
        self._rewrites = rewrites
        self._begun: Counter[int] = Counter()
        numbers: dict[Group, list[int]] = defaultdict(list)
        for number, one in sorted(enumerate(rewrites), key=lambda item: item[1].first):
            numbers[one.group].append(number)
        self._numbers = {group: np.array(own, np.int32) for group, own in numbers.items()}
        self._firsts = {group: np.array([rewrites[n].first for n in own]) for group, own in numbers.items()}
        self._lasts = {group: np.array([rewrites[n].last for n in own]) for group, own in numbers.items()}

    def pick(
        self, rows: pa.RecordBatch, offsets: pa.Array, groups: Groups | None
    ) -> tuple[pa.RecordBatch, pa.Array, Groups]:
        """The rows that belong to lost objects."""
        at = offsets.to_numpy()
        keys: list[Group] = [()] if groups is None else list(groups.keys)
        codes = np.zeros(len(at), np.int32) if groups is None else groups.codes.to_numpy()
        owner = np.full(len(at), -1, np.int32)
        for code, group in enumerate(keys):
            if group in self._numbers:
                mine = np.flatnonzero(codes == code)
                # Objects of one group follow one another.
                nearest = np.searchsorted(self._firsts[group], at[mine], "right") - 1
                within = (nearest >= 0) & (at[mine] <= self._lasts[group][nearest])
                owner[mine[within]] = self._numbers[group][nearest[within]]
        kept = owner >= 0
        present, numbers = np.unique(owner[kept], return_inverse=True)
        groups = Groups([(str(number),) for number in present.tolist()], pa.array(numbers, pa.int32()))
        return rows.filter(pa.array(kept)), offsets.filter(pa.array(kept)), groups

    def group(self, name: Group) -> Group:
        return self._rewrites[int(name[0])].group

    def key(self, name: Group, extension: str, mark: str) -> str:
        """A lost object is written under its own key. If it needs a second object, that stands beside it.

        Without conditional writes two drivers may do this at once: `mark` keeps their names apart.
        """
        number = int(name[0])
        self._begun[number] += 1
        key = self._rewrites[number].key
        if mark:
            key = key_with_mark(key, extension, mark)
        return key if self._begun[number] == 1 else f"{key.removesuffix(extension)}-r{self._begun[number]}{extension}"
