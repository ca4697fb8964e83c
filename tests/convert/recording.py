"""Configurations as people have them, and what `s3sink convert` makes of each.

`python -m tests.convert.recording` writes the expected manifests and reports anew. Read the differences as somebody
who migrates would: each line is a promise.
"""

from __future__ import annotations

from pathlib import Path

from s3sink_job.convert.conversion import Conversion, convert
from s3sink_job.convert.output import conversion_text, reports_text

CORPUS = Path(__file__).parent / "corpus"
EXPECTED = Path(__file__).parent / "expected"
SECRET = "S3CR3T"
"""Part of every value in the corpus that is a secret."""


def inputs() -> list[Path]:
    return sorted(file for file in CORPUS.rglob("*") if file.is_file())


def name_of(file: Path) -> str:
    return str(file.relative_to(CORPUS))


def converted(file: Path) -> Conversion:
    return convert(file.read_bytes(), name_of(file))


def expected_files(file: Path) -> tuple[Path, Path]:
    """Of the manifests and of the report."""
    base = EXPECTED / file.relative_to(CORPUS).with_suffix("")
    return base.with_suffix(".yaml"), base.with_suffix(".txt")


def main() -> None:
    for file in inputs():
        conversion = converted(file)
        manifests, report = expected_files(file)
        manifests.parent.mkdir(parents=True, exist_ok=True)
        manifests.write_text(conversion_text(conversion), encoding="utf-8")
        report.write_text(reports_text(conversion) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
