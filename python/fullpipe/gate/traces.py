"""Where two runs part: the first sample of their series that differs. Traces keep series for that.

A trace is a Parquet file beside the baseline, for the first seed of a case. Its metadata has the hash of the
run's record, which tells whether it belongs to a line of the baseline.
"""

import hashlib
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from fullpipe import files
from fullpipe.gate.measured import Measured, plain_series, record_of
from fullpipe.measures.run import Run
from fullpipe.runs.worlds import registry

_RECORD = "record"
_FILE = re.compile(r".+\.parquet")
_MOST_BYTES = 1 << 28
# The columns that a reader looks for first, in this order: its name, unit and factor.
_SHOWN: Mapping[str, tuple[str, str, float]] = {
    "phase": ("phase", "", 1),
    "ca_state": ("state", "", 1),
    "cwnd_segments": ("window", "segments", 1),
    "ssthresh_segments": ("slow-start threshold", "segments", 1),
    "pacing_bps": ("pacing rate", "Mbit/s", 1e-6),
    "bandwidth_bps": ("bandwidth estimate", "Mbit/s", 1e-6),
    "inflight_segments": ("in flight", "segments", 1),
    "delivered_bytes": ("delivered", "bytes", 1),
    "retransmits": ("retransmits", "segments", 1),
    "srtt_ms": ("smoothed RTT", "ms", 1),
}
_MOST_SHOWN = 4


@dataclass(frozen=True)
class Difference:
    """The first sample in which two runs differ."""

    time_s: float
    flow: int
    # Name, value before and value after of what differs; and what is the same, for orientation.
    differs: tuple[tuple[str, str, str], ...]
    phase: str = ""

    def sentence(self, before: str = "before", after: str = "now") -> str:
        """Where and how they part, in a line."""
        texts = "; ".join(f"{name} {old} {before}, {new} {after}" for name, old, new in self.differs)
        flow = f", flow {self.flow + 1}" if self.flow else ""
        phase = f", in {self.phase}" if self.phase else ""
        return f"the runs part at {self.time_s:.3f} s{flow}{phase}: {texts}"


def first_difference(before: pl.DataFrame, after: pl.DataFrame) -> Difference | None:
    """The first sample that differs, of series as `plain_series` makes them; None if there is none."""
    columns = [name for name in before.columns if name in after.columns]
    old, new = (frame.select(columns).sort("time_s", "flow").rows(named=True) for frame in (before, after))
    for one, other in zip(old, new, strict=False):
        if one != other:
            return _difference(one, other)
    if len(old) != len(new):
        longer = old if len(old) > len(new) else new
        first = longer[min(len(old), len(new))]
        texts = ("samples", str(len(old)), str(len(new)))
        return Difference(float(first["time_s"]), int(first["flow"]), (texts,))
    return None


def _difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> Difference:
    if (one["time_s"], one["flow"]) != (other["time_s"], other["flow"]):
        time_s = min(one["time_s"], other["time_s"])
        texts = ("next sample at", *(f"{of['time_s']:.3f} s" for of in (one, other)))
        return Difference(time_s, int(one["flow"]), (texts,))  # type: ignore[arg-type]
    names = [name for name in _SHOWN if one.get(name) != other.get(name)]
    names = names or [name for name in one if one[name] != other[name]]
    differs = tuple((_SHOWN.get(name, (name,))[0], _text(name, one), _text(name, other)) for name in names)
    phase = str(one.get("phase") or "") if "phase" not in names else ""
    return Difference(float(one["time_s"]), int(one["flow"]), differs[:_MOST_SHOWN], phase)


def _text(name: str, row: Mapping[str, Any]) -> str:
    _, unit, factor = _SHOWN.get(name, (name, "", 1))
    value = row[name]
    if value is None:
        return "none"
    if isinstance(value, str):
        return value
    return f"{value * factor:,.6g} {unit}".strip()


def folder_of(baseline: Path) -> Path:
    """The folder of a baseline's traces."""
    return baseline.with_suffix(".traces")


def write(baseline: Path, runs: Mapping[tuple[str, str], list[Run]], *, alone: bool) -> None:
    """Writes the trace of the first run of each case. A trace that is already there is not written again.

    Unless these cases are `alone` a part of the baseline, traces of others are removed.

    Raises:
        OutputError: One cannot be written.
    """
    folder = folder_of(baseline)
    files.make_folder(folder)
    for key, own in runs.items():
        if own and registry.named(key[1]).deterministic:
            record = record_of(own[0])
            if _read(folder / name_of(key), record) is None:
                data = files.parquet(plain_series(own[0]), {_RECORD: record})
                files.write(folder, name_of(key), data)
    if not alone:
        files.remove_others(folder, map(name_of, runs), _FILE)


def find(baseline: Path, line: Measured) -> pl.DataFrame | None:
    """The trace of a line's first seed; None if there is none, or it is of another run."""
    return _read(folder_of(baseline) / name_of(line.key), line.records[0]) if line.records else None


def name_of(key: tuple[str, str]) -> str:
    """The name of a case's file."""
    name = f"{key[0]}-{key[1]}"
    short = files.shortened(name)
    # Two cases may have the same short name, whatever file system is below.
    more = "" if short == name.lower() else f"-{hashlib.sha256(name.encode()).hexdigest()[:6]}"
    return f"{short}{more}.parquet"


def _read(path: Path, record: str) -> pl.DataFrame | None:
    """The series in a file; None unless it is a trace of the run with this hash."""
    try:
        if not path.is_file() or path.stat().st_size > _MOST_BYTES:
            return None
        data = path.read_bytes()
        if pl.read_parquet_metadata(io.BytesIO(data)).get(_RECORD) != record:
            return None
        return pl.read_parquet(io.BytesIO(data))
    # polars raises errors of many kinds for a damaged file.
    except Exception:
        return None
