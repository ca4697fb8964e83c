"""Checks before a driver takes a sink over: the state is this sink's, of no newer resource, and not an old copy."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from s3sink_api.labels import ADOPT_FROM
from s3sink_job.base.errors import FinalError, ProtocolError
from s3sink_job.base.times import iso
from s3sink_job.flush.manifest import Manifest, number_of
from s3sink_job.flush.state import Owner, Resource, SinkState
from s3sink_job.stores.object_tags import FLUSH_TAG

if TYPE_CHECKING:
    from s3sink_job.commit.ledger import Ledger

MANIFEST_NAME = re.compile(r"[0-9]{12,}-[0-9a-f]+")
OBJECTS_CHECKED = 100
"""Of a manifest that is newer than the state. Publishing starts with the first ones."""


def check_owner(url: str, stored: Owner, ours: Owner, adopt_from: str) -> None:
    if stored.same_sink(ours) or stored.cluster == adopt_from:
        return
    raise FinalError(
        f"{url} belongs to the sink {stored}; this sink is {ours}. Use another name or statePrefix. If that sink is "
        f"gone for good, adopt its state with the annotation {ADOPT_FROM}: {stored.cluster!r}",
        reason="ForeignState",
    )


def check_resource(url: str, stored: Resource | None, ours: Resource | None, cluster: str) -> None:
    """A pod on a node that was cut off may restart with an old spec."""
    if stored is not None and ours is not None and ours.older_than(stored):
        raise FinalError(
            f"{url} belongs to a newer version of the resource, {stored}. This driver was started for {ours} and must "
            f"not take over. If it is right, because the cluster was restored from a backup, set the annotation "
            f"{ADOPT_FROM}: {cluster!r} and remove it later",
            reason="OlderResource",
        )


def check_not_rolled_back(ledger: Ledger, state: SinkState) -> None:
    """Raises if an older copy of the state was restored: later flushes would be written a second time."""
    if not ledger.conditional:
        return  # AtLeastOnce: records that the older state does not know are written again under other names
    begin = ledger.manifest_key(f"{state.flush + 1:012d}").removesuffix(".json")
    for key, _ in ledger.bucket.list(f"{ledger.folder}/flushes/", after=begin):
        name = key.rpartition("/")[2].removesuffix(".json")
        # Some stores ignore where a list should begin, and people may put files there.
        if not MANIFEST_NAME.fullmatch(name) or number_of(name) <= state.flush:
            continue
        manifest = _readable_manifest(ledger, name)
        if manifest and _was_committed(ledger, state, manifest) and not ledger.state_object.changed():
            raise ProtocolError(
                f"state rolled back: {ledger.state_object.url} is at flush {state.flush}, but {key} proves that a "
                f"later flush was committed. Going on would write its records twice. Restore the newest version of the "
                f"state object, of {iso(manifest.committed_at)} or later. Nothing was changed",
                reason="StateRolledBack",
            )


def _readable_manifest(ledger: Ledger, name: str) -> Manifest | None:
    """None for a manifest of a newer release. It was not committed, since the state is readable."""
    try:
        return ledger.manifest(name)
    except ProtocolError as error:
        if error.reason != "NewerFormat":
            raise
        return None


def _was_committed(ledger: Ledger, state: SinkState, manifest: Manifest) -> bool:
    """Whether the manifest proves that a later state than this one was stored."""
    if manifest.epoch > state.epoch or number_of(manifest.previous) > state.flush:
        return True
    return is_visible(ledger, manifest)


def is_visible(ledger: Ledger, manifest: Manifest) -> bool:
    """Whether some of its first objects are there."""
    # Objects without an upload prove nothing: they are visible before the commit.
    uploads = [entry for entry in manifest.objects if entry.upload_id][:OBJECTS_CHECKED]
    found = (ledger.bucket.named(entry.bucket).head(entry.key) for entry in uploads)
    return any(one is not None and one.metadata.get(FLUSH_TAG) == manifest.name for one in found)
