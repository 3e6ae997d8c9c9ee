"""A list of flows: one row a transfer, with the pauses between those of a flow.

| column | |
|---|---|
| `flow` | the transfer's flow, numbered from 0 in the order of their starts |
| `start_ns` | when its first byte was sent, from the beginning of the list |
| `pause_ns` | how long the flow had been silent before it; 0 for the first of a flow |
| `bytes` | payload |

As a Parquet file it is what `fullpipe trace flows` writes.
"""

import json
from pathlib import Path

import polars as pl

from fullpipe import _native
from fullpipe.errors import mistake

SCHEMA: dict[str, type[pl.Int64]] = {
    "flow": pl.Int64,
    "start_ns": pl.Int64,
    "pause_ns": pl.Int64,
    "bytes": pl.Int64,
}


def of_capture(path: Path) -> pl.DataFrame:
    """The flows of a pcap or pcapng file that sent payload.

    Raises:
        TraceError: It is no capture, or damaged.
    """
    about, columns = _native.read_capture(str(path))
    values = memoryview(columns).cast("Q")
    if not len(values):
        packets = json.loads(about)["packets"]
        expected = f"a capture with TCP payload; there is none in its {packets} packets"
        raise mistake("capture", str(path), expected, "capture a link that carries traffic")
    rows = {name: values[at :: len(SCHEMA)].tolist() for at, name in enumerate(SCHEMA)}
    return pl.DataFrame(rows, schema=SCHEMA)


def read(path: Path) -> pl.DataFrame:
    """Reads a list that `write` wrote."""
    expected = f"a Parquet file with the columns {', '.join(SCHEMA)}, flow by flow in order of time"
    mend = "write one with `fullpipe trace flows`"
    try:
        frame = pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError):
        raise mistake("flows", str(path), expected, mend) from None
    if dict(frame.schema) != SCHEMA or not frame.height or sum(frame.null_count().row(0)):
        raise mistake("flows", str(path), expected, mend)
    least = frame.select(pl.min("flow", "start_ns", "pause_ns"), pl.col("bytes").min() - 1).row(0)
    if min(least) < 0:
        raise mistake("flows", str(path), expected, mend)
    return frame


def write(frame: pl.DataFrame, path: Path) -> None:
    """Writes a list."""
    frame.write_parquet(path)


def summary(frame: pl.DataFrame) -> str:
    """What a list holds, in a sentence."""
    flows = frame.group_by("flow").agg(pl.col("bytes").sum())
    seconds = max(1, frame.select(pl.col("start_ns").max()).item()) / 1e9
    mean_gbps = frame.select(pl.col("bytes").sum()).item() * 8e-9 / seconds
    kilobytes = float(flows.select(pl.col("bytes").quantile(0.9)).item()) / 1e3
    return (
        f"{flows.height} flows in {frame.height} transfers over {seconds:.1f} s, {mean_gbps:.3g} Gbit/s on "
        f"average; 90 % of the flows are smaller than {kilobytes:.3g} KB"
    )
