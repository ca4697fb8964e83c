"""`make demo`: copies a real topic into a real bucket, with a crash, and proves that nothing was lost.

It starts a broker and an S3 server. Everything else is what a user runs: the manifest beside this file and the `s3sink`
command. `--keep` leaves both servers running.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.parts.jars import connector_dir
from tools.parts.kafka import KafkaBroker
from tools.parts.processes import free_ports, port_answers
from tools.parts.s3 import Moto

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

MANIFEST = Path(__file__).with_name("quickstart.yaml")
KAFKA_PORT, S3_PORT = 9092, 9000
TOPIC, BUCKET = "orders", "lake"
PARTITIONS, RECORDS = 4, 100_000
COUNTRIES = ("DE", "FR", "IT", "PL", "SE")


def main() -> int:
    options = argparse.ArgumentParser(prog="make demo", description="Kafka to S3, exactly once, with a crash.")
    options.add_argument("--keep", action="store_true", help="leave broker and S3 server running until Ctrl-C")
    keep = options.parse_args().keep
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="s3sink-demo-")))
        manifest, kafka_port, s3_port = _manifest(folder)
        _say(f"a Kafka broker on 127.0.0.1:{kafka_port} and an S3 server on 127.0.0.1:{s3_port}")
        kafka = stack.enter_context(KafkaBroker(port=kafka_port))
        s3 = stack.enter_context(Moto(port=s3_port))
        s3.create_bucket(BUCKET)
        kafka.create_topic(TOPIC, partitions=PARTITIONS)
        _say(f"{RECORDS:,} orders into topic {TOPIC}, {PARTITIONS} partitions")
        kafka.produce(TOPIC, _orders())
        code = _tour(manifest, folder, s3.client())
        if keep and code == 0:
            _say(f"still running, Ctrl-C ends it; try: .venv/bin/s3sink verify -f {manifest} --json")
            with contextlib.suppress(KeyboardInterrupt):
                signal.pause()
        return code


def _tour(manifest: Path, folder: Path, s3: S3Client) -> int:
    _say(f"s3sink check -f {_short(manifest)}")
    if (code := _s3sink("check", manifest)) != 0:
        return code
    _say("s3sink run --once, and kill -9 while it writes")
    _killed_run(manifest, s3)
    _say("s3sink run --once again: it resumes from the state in the bucket")
    status = folder / "status.json"
    if (code := _s3sink("run", manifest, "--once", "--short-logs", "--status-file", str(status))) != 0:
        return code
    _show_objects(s3)
    _show_status(json.loads(status.read_text()))
    _say("s3sink verify: every offset in Kafka against every row in the bucket")
    return _s3sink("verify", manifest)


def _manifest(folder: Path) -> tuple[Path, int, int]:
    """The quick start's manifest or, if its ports are in use, a copy with others."""
    if not port_answers(KAFKA_PORT) and not port_answers(S3_PORT):
        return MANIFEST, KAFKA_PORT, S3_PORT
    kafka_port, s3_port = free_ports(2)
    text = MANIFEST.read_text().replace(f":{KAFKA_PORT}", f":{kafka_port}").replace(f":{S3_PORT}", f":{s3_port}")
    copy = folder / MANIFEST.name
    copy.write_text(text)
    return copy, kafka_port, s3_port


def _orders() -> Iterator[tuple[bytes, bytes, list[tuple[str, bytes | None]], None]]:
    chance = random.Random(7)
    for number in range(RECORDS):
        order = {
            "order": number,
            "customer": {"id": chance.randrange(5000), "country": chance.choice(COUNTRIES)},
            "amount": round(chance.uniform(1, 500), 2),
            "items": [{"sku": f"A-{chance.randrange(100):03d}", "quantity": chance.randrange(1, 5)}],
        }
        yield str(order["order"]).encode(), json.dumps(order).encode(), [("source", b"shop")], None


def _environment() -> dict[str, str]:
    return {**os.environ, "S3SINK_JARS": str(connector_dir())}


def _command(name: str, manifest: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "s3sink_job", name, "-f", str(manifest), *more]


def _s3sink(name: str, manifest: Path, *more: str) -> int:
    return subprocess.run(_command(name, manifest, *more), env=_environment(), check=False).returncode


def _killed_run(manifest: Path, s3: S3Client) -> None:
    process = subprocess.Popen(_command("run", manifest, "--once", "--short-logs"), env=_environment())
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        uploads = s3.list_multipart_uploads(Bucket=BUCKET, Prefix="raw/").get("Uploads", [])
        if len(uploads) >= PARTITIONS // 2:
            process.kill()
            process.wait()
            visible = s3.list_objects_v2(Bucket=BUCKET, Prefix="raw/").get("KeyCount", 0)
            print(f"killed: {len(uploads)} uploads started, {visible} objects visible")
            return
        time.sleep(0.02)
    process.kill()
    process.wait()


def _show_objects(s3: S3Client) -> None:
    objects = s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])
    _say(f"the bucket: {len(objects)} objects")
    for found in objects:
        print(f"{found['Size']:>10,}  s3://{BUCKET}/{found['Key']}")
    first = next(o["Key"] for o in objects if o["Key"].startswith("raw/"))
    rows = gzip.decompress(s3.get_object(Bucket=BUCKET, Key=first)["Body"].read()).decode().splitlines()
    _say(f"the first rows of {first}")
    for row in rows[:2]:
        print(row)


def _show_status(status: dict[str, Any]) -> None:
    _say("the status, as the operator writes it to the resource")
    shown = {key: status[key] for key in ("phase", "flush", "lag", "retry", "driver") if key in status}
    print(json.dumps(shown, indent=2))
    for condition in status["conditions"]:
        print(f"{condition['type']:<20} {condition['status']:<6} {condition['reason']}: {condition['message']}")


def _short(path: Path) -> str:
    with contextlib.suppress(ValueError):
        return str(path.relative_to(Path.cwd()))
    return path.name


def _say(text: str) -> None:
    print(f"\n\033[1m▸ {text}\033[0m" if sys.stdout.isatty() else f"\n▸ {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
