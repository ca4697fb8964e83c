"""The spill folder: limited in size, a clear error when full, and files of killed processes are removed."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

from s3sink_job.base.errors import TransientError
from s3sink_job.base.spill import Spill, SpillFull, SpillPlace, spill_folder
from s3sink_job.formats.registry import OUTPUT_FORMATS
from s3sink_job.formats.settings import Output, ParquetOptions

HOLD = """
import sys, time
from s3sink_job.base.spill import Spill, SpillPlace

path = Spill(SpillPlace(sys.argv[1], 2**20))
file = path.new_file()
file.write_bytes(b"left over")
print(file, flush=True)
time.sleep(600)
"""


@contextmanager
def holding(folder: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process that holds a file in the spill folder, and the file."""
    sinkjob = Path(__file__).parents[2] / "sinkjob"
    command = [sys.executable, "-c", HOLD, str(folder)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(sinkjob)}
    ) as process:
        try:
            assert process.stdout is not None
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


def spill(folder: Path, limit: int = 2**20) -> Spill:
    return Spill(SpillPlace(str(folder), limit))


@pytest.mark.crash
def test_what_a_killed_process_left_is_removed_by_the_next_and_a_living_ones_is_not(tmp_path: Path) -> None:
    with holding(tmp_path) as (killed, left), holding(tmp_path) as (_, kept):
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert left.exists()

        spill(tmp_path).new_file()

        assert not left.parent.exists()
        assert kept.read_bytes() == b"left over"


def test_a_spill_folder_whose_process_died_before_locking_it_is_removed(tmp_path: Path) -> None:
    (tmp_path / "half-made").mkdir()

    spill(tmp_path).new_file()

    assert not (tmp_path / "half-made").exists()


def test_tasks_that_start_together_do_not_remove_each_others_files(tmp_path: Path) -> None:
    def used(number: int) -> bytes:
        path = spills[number].new_file()
        path.write_bytes(b"%d" % number)
        return path.read_bytes()

    spills = [spill(tmp_path) for _ in range(64)]
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(used, range(64))) == [b"%d" % n for n in range(64)]
    assert all(s.new_file().parent.is_dir() for s in spills)


def test_nothing_stays_after_close_and_it_can_be_used_again(tmp_path: Path) -> None:
    mine = spill(tmp_path)
    for _ in range(2):
        path = mine.new_file()
        path.write_bytes(b"x")
        mine.grew(path, 1)

        mine.close()

        assert mine.used == 0
        assert [p for p in tmp_path.iterdir() if p.is_dir()] == []


def test_reaching_the_spill_limit_is_a_retryable_error(tmp_path: Path) -> None:
    mine = spill(tmp_path, limit=3 << 20)
    one, other = mine.new_file(), mine.new_file()
    mine.grew(one, 1 << 20)
    assert not mine.crowded
    mine.grew(other, 1 << 20)
    assert mine.crowded
    mine.grew(one, 2 << 20)

    with pytest.raises(SpillFull, match=r"limit of 3 MiB is reached.*spark\.driver\.spill") as caught:
        mine.grew(other, (1 << 20) + 1)

    assert caught.value.retryable
    assert isinstance(caught.value, TransientError)
    mine.remove(other)
    assert mine.used == 2 << 20


def test_the_spill_folder_is_in_sparks_local_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/scratch/a,/scratch/b")
    assert spill_folder() == f"/scratch/a/s3sink-spill-{os.getuid()}"

    monkeypatch.delenv("SPARK_LOCAL_DIRS")
    assert Path(spill_folder()).name == f"s3sink-spill-{os.getuid()}"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "s3sink-test", str(disk)], check=False)
    if made.returncode:
        pytest.skip("only root may mount")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_is_an_error_in_words_that_may_be_tried_again(small_disk: Path) -> None:
    wanted = Output("Parquet", parquet=ParquetOptions(row_group_bytes=2**18, dictionary=False))
    mine = spill(small_disk, limit=2**30)
    writer = OUTPUT_FORMATS["Parquet"].open(wanted, io.BytesIO(), mine)

    rows = pa.RecordBatch.from_pydict({"t": [os.urandom(500).hex() for _ in range(2_000)]})

    with pytest.raises(SpillFull, match="the disk is full") as caught:
        writer.write(rows)
    assert caught.value.retryable
    writer.abandon()
    mine.close()

    assert [p for p in small_disk.iterdir() if p.is_dir()] == []
