"""A list of flows: one row for each transfer, with the pauses between the transfers of a flow.

| column | |
|---|---|
| `flow` | the transfer's flow, numbered from 0 in the order of their starts |
| `start_ns` | when its first byte was sent, from the beginning of the list |
| `pause_ns` | how long the flow had been silent before it; 0 for the first of a flow |
| `bytes` | payload |

`fullpipe flows` writes it as a Parquet file.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

import fullpipe._native as _native
from fullpipe import files
from fullpipe.errors import mistake
from fullpipe.scenario import kinds, parquet

SCHEMA: dict[str, type[pl.Int64]] = {
    "flow": pl.Int64,
    "start_ns": pl.Int64,
    "pause_ns": pl.Int64,
    "bytes": pl.Int64,
}

# A rate over less time describes a few packets and not a link.
_RATED_S = 0.1
# The longest that a list may last, nanoseconds: a year. Time stamps beyond are damaged, or clocks were set.
MOST_NS = 366 * 86_400 * 10**9
# The most payload that a list may have: what 100 Gbit/s carry in that time, rounded up.
MOST_BYTES = 4 * 10**17


@dataclass(frozen=True)
class Captured:
    """What a packet capture has."""

    flows: pl.DataFrame
    lasts_s: float
    # What was skipped or is missing, in sentences without a final stop.
    notes: tuple[str, ...]


def of_capture(path: Path) -> Captured:
    """The flows of a pcap or pcapng file that sent payload.

    Raises:
        RecordingError: It is not a capture, it is damaged, or no flow in it can be read.
    """
    about_json, columns = _native.read_capture(str(path))
    about, values = json.loads(about_json), memoryview(columns).cast("Q")
    notes = tuple(about["notes"])
    if not len(values):
        found = "; ".join(
            [f"{about['packets']} packets, {about['segments']} of them TCP without payload", *notes]
        )
        raise _native.RecordingError(
            f"{path}: it has no TCP payload ({found}); capture TCP connections while they transfer data"
        )
    lasts_ns = about["duration_ns"]
    if lasts_ns > MOST_NS:
        raise _native.RecordingError(
            f"{path}: its time stamps are {_days(lasts_ns)} apart; expected at most a year; "
            "cut such packets out with editcap -A, -B"
        )
    rows = {name: values[at :: len(SCHEMA)].tolist() for at, name in enumerate(SCHEMA)}
    frame = pl.DataFrame(rows, schema=SCHEMA)
    back = disorder(frame)
    return Captured(frame, lasts_ns / 1e9, notes if back is None else (*notes, back))


def read(path: Path, field: str = "flows") -> pl.DataFrame:
    """Reads a list that `write` wrote. `field` is what named it, for errors."""
    expected = f"a Parquet file with the columns {', '.join(SCHEMA)}, each flow's rows in order of time"
    fix = "write one with `fullpipe flows`"
    kinds.check(field, path, ("FlowList", "OtherParquet"), expected)
    try:
        frame = parquet.read(path)
    except _native.RecordingError as error:
        raise mistake(field, str(path), f"{expected} ({error})", fix) from None
    if dict(frame.schema) != SCHEMA or not frame.height or sum(frame.null_count().row(0)):
        raise mistake(field, str(path), expected, fix)
    least = frame.select(pl.min("flow", "start_ns", "pause_ns"), pl.col("bytes").min() - 1).row(0)
    ordered = frame.select((pl.col("start_ns").diff().over("flow") >= 0).all()).item()
    if min(least) < 0 or not ordered:
        raise mistake(field, str(path), expected, fix)
    if (wrong := _beyond(frame)) is not None:
        within_reason = "times within a year, and no more payload than 100 Gbit/s carry in one"
        raise mistake(field, str(path), f"{within_reason}; {wrong}", fix)
    return frame


def write(frame: pl.DataFrame, path: Path, notes: Sequence[str] = ()) -> None:
    """Writes a list; `notes` go into the file's metadata, as a JSON list with the key `fullpipe.notes`."""
    metadata = {"fullpipe.notes": json.dumps(notes)} if notes else None
    files.write_named(path, files.parquet(frame, metadata))


def summary(frame: pl.DataFrame, seconds: float) -> str:
    """A list of this length, described in a sentence."""
    flows = frame.group_by("flow").agg(pl.col("bytes").sum())
    kilobytes = float(flows.select(pl.col("bytes").quantile(0.9)).item()) / 1e3
    message = f"{flows.height} flows in {frame.height} transfers over {seconds:.3g} s"
    if seconds >= _RATED_S:
        mean_gbps = frame.select(pl.col("bytes").sum()).item() * 8e-9 / seconds
        message += f", {mean_gbps:.3g} Gbit/s on average"
    return f"{message}; 90 % of the flows are smaller than {kilobytes:.3g} KB"


def disorder(captured: pl.DataFrame) -> str | None:
    """Reports transfers of a capture that are earlier than one seen before them: its clock went back."""
    early_ns = pl.col("start_ns").cum_max() - pl.col("start_ns")
    back, most_ns = captured.select((early_ns > 0).sum(), early_ns.max().alias("most")).row(0)
    if not back:
        return None
    return (
        f"the capture's clock went back: {back} of {captured.height} transfers begin before one that was "
        f"seen earlier, by up to {most_ns / 1e6:.3g} ms; reordercap puts packets in order"
    )


def _beyond(frame: pl.DataFrame) -> str | None:
    """What in a list is impossible for a capture, as text; None if all is plausible."""
    for name in ("start_ns", "pause_ns"):
        most = frame.select(pl.max(name)).item()
        if most > MOST_NS:
            return f"its largest {name} is {most}, {_days(most)}"
    # As floats: the sum may be beyond what 64 bits hold.
    total = frame.select(pl.col("bytes").cast(pl.Float64).sum()).item()
    return f"its transfers have {total:.3g} bytes" if total > MOST_BYTES else None


def _days(ns: int) -> str:
    return f"{ns / 86_400e9:,.0f} days"
