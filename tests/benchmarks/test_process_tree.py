"""The benchmark measures the whole process tree."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.process_tree import Tree, Watch

MIB = 2**20
BURN = "import time\nwhile time.process_time() < 0.3: pass\n"
# Each prints "ready" when it is done, and then waits until its standard input is closed.
WAIT = "import sys\nprint('ready', flush=True)\nsys.stdin.read()\n"
PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdout.readline()
"""
HOLD = f"data = bytearray({64 * MIB})\ndata[::4096] = bytes(1) * len(data[::4096])\n"


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        # Leaving Popen's own block closes the pipes, which ends the tree from the top.


def test_descendants_belong_to_the_tree() -> None:
    with running(PARENT + WAIT, WAIT) as process:
        pids = Tree(process.pid).pids()

    assert len(pids) == 2
    assert pids[0] == process.pid


def test_processes_outside_the_tree_do_not_count() -> None:
    with running(WAIT) as one, running(WAIT) as other:
        assert Tree(one.pid).pids() == [one.pid]
        assert Tree(other.pid).pids() == [other.pid]


def test_cpu_time_of_living_descendants_counts() -> None:
    with running(PARENT + WAIT, BURN + WAIT) as process:
        assert Tree(process.pid).cpu_seconds() > 0.25


def test_cpu_time_of_descendants_that_ended_counts() -> None:
    """Spark's Python workers end during a run."""
    ended = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', sys.argv[1]], check=True)\n"
    with running(ended + WAIT, BURN) as process:
        tree = Tree(process.pid)
        assert tree.pids() == [process.pid]
        assert tree.cpu_seconds() > 0.25


def test_memory_of_every_process_counts() -> None:
    with running(WAIT) as alone:
        small = Tree(alone.pid).memory()
    with running(PARENT + WAIT, HOLD + WAIT) as process:
        assert Tree(process.pid).memory() > small + 60 * MIB


def test_pages_that_a_fork_shares_count_once() -> None:
    fork = "import os\nfor _ in range(4):\n    if os.fork() == 0:\n        os.read(0, 1)\n        os._exit(0)\n"
    with running(HOLD + fork + WAIT) as process:
        tree = Tree(process.pid)
        assert len(tree.pids()) == 5
        assert tree.memory() < 3 * 64 * MIB


def test_a_watch_sees_the_peak_and_only_its_own_cpu_time() -> None:
    turn = "print('ready', flush=True)\nsys.stdin.readline()\n"
    with running("import sys\n" + BURN + turn + HOLD + turn + "del data\n" + WAIT) as process:
        tree = Tree(process.pid)
        with Watch(tree, every=0.01) as watch:
            go_on(process)
        go_on(process)

        assert watch.peak > 60 * MIB
        assert watch.peak > tree.memory() + 30 * MIB
        assert watch.cpu_seconds < tree.cpu_seconds() - 0.25


def go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    assert process.stdout.readline() == "ready\n"


def test_a_tree_that_has_ended_measures_zero() -> None:
    with running(WAIT) as process:
        tree = Tree(process.pid)

    assert (tree.pids(), tree.cpu_seconds(), tree.memory()) == ([], 0.0, 0)
