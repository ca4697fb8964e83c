"""A command that prints one row of an object, for people with the AWS CLI and Python."""

from __future__ import annotations

from s3sink_job.formats.settings import Output

TOOLS = {
    "None": "cat",
    "Gzip": "zcat",
    "Zstd": "zstd -dc",
    "Bzip2": "bzcat",
    "Xz": "xzcat",
    "Lz4": "lz4 -dc",
    "Brotli": "brotli -dc",
}
READERS = {
    "Parquet": "pyarrow.parquet.read_table('{file}').slice({row}, 1).to_pylist()",
    "Orc": "pyarrow.orc.read_table('{file}').slice({row}, 1).to_pylist()",
    "Avro": "next(itertools.islice(fastavro.reader(open('{file}', 'rb')), {row}, None))",
}


def how_to_read(url: str, output: Output, row: int | None) -> str:
    """Empty if the row is not known."""
    if row is None:
        return ""
    fetch = f"aws s3 cp '{url}'"
    if output.format == "Bytes":
        return f"{fetch} -"
    if output.format in READERS:
        reader = READERS[output.format].format(file=url.rpartition("/")[2], row=row)
        return f"{fetch} . ; then in Python: {reader}"
    lines = f"{fetch} - | {TOOLS[output.codec]}"
    if output.format == "Csv":
        # A value may hold line breaks, so a row need not be a line.
        rows = f"csv.reader(open('rows.csv', newline=''), delimiter={output.csv.delimiter!r})"
        return f"{lines} > rows.csv ; then in Python: list({rows})[{row + output.csv.header}]"
    return f"{lines} | sed -n {row + 1}p"
