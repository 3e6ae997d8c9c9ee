"""What a measurement leaves: the two stamps of every packet, and what the kernel said of TCP flows."""

import json
import sys
from array import array
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fullpipe import files, reading
from fullpipe.errors import mistake
from fullpipe.probe.control import Refused
from fullpipe.probe.flows import TcpFlow

# In place of the arrival of a packet that was lost.
LOST = 0
# Bytes of IP of an echo, the least that a datagram has; and of a packet of a thin flow.
ECHO_BYTES, ECHO_BYTES_V6 = 76, 96
THIN_BYTES = 100
STAMPS, ECHOES, EVIDENCE = "stamps.parquet", "echoes.parquet", "probe.json"
_MOST_EVIDENCE = 1 << 20
# Stamps of one stage that are further apart are no stamps.
_LONGEST_NS = 600_000_000_000
_DIRECTIONS = ("forward", "back")
# What `Measured` has besides stamps and flows.
_REST = ("idle", "skipped", "notes", "mtu", "echo_bytes", "seconds", "bytes")


def column(code: str, data: bytes) -> "array[int]":
    """Whole numbers from little-endian bytes."""
    found = array(code, data)
    if sys.byteorder == "big":
        found.byteswap()
    return found


# A sender that is later than this has been kept from the processor.
LATE_S = 0.010


@dataclass
class Stream:
    """A stage's packets, in the order in which they were sent. Times are of the clock of whoever saw them."""

    sent_ns: "array[int]"
    sizes: "array[int]"
    flows: "array[int]"
    ecn: "array[int]"
    arrived_ns: "array[int]"
    marks: "array[int]"
    duplicates: int = 0
    # Why sending ended, and how late the latest packet was.
    end: str = "whole"
    late_s: float = 0.0
    # Packets that the receiving machine dropped itself.
    dropped_here: int = 0

    @classmethod
    def of(cls, sent: bytes, arrived: bytes) -> "Stream":
        """From the columns of both ends. What cannot be is refused."""
        count, came = len(sent) // 12, len(arrived) // 13
        if len(sent) != 12 * count or len(arrived) != 13 * came:
            raise Refused("the other end sent columns that are not of packets")
        made = cls(
            column("q", sent[: 8 * count]),
            column("H", sent[8 * count : 10 * count]),
            column("B", sent[10 * count : 11 * count]),
            column("B", sent[11 * count :]),
            array("q", [LOST]) * count,
            array("B", [0]) * count,
        )
        at = column("q", arrived[: 8 * came])
        numbers = column("I", arrived[8 * came : 12 * came])
        for stamps in (at, made.sent_ns):
            if stamps and max(stamps) - min(stamps) > _LONGEST_NS:
                raise Refused("the other end sent stamps that cannot be")
        for stamp, number, mark in zip(at, numbers, arrived[12 * came :], strict=True):
            # Nobody sent what has a higher number.
            if number >= count:
                continue
            if made.arrived_ns[number] != LOST:
                made.duplicates += 1
                continue
            made.arrived_ns[number] = stamp
            made.marks[number] = mark & 3
        return made

    def __len__(self) -> int:
        return len(self.sent_ns)

    @property
    def bytes(self) -> int:
        """All that was sent."""
        return sum(self.sizes)

    @property
    def lost_bytes(self) -> int:
        """What did not arrive."""
        return sum(size for size, at in zip(self.sizes, self.arrived_ns, strict=True) if at == LOST)


@dataclass
class Measured:
    """All of a measurement."""

    # Of each echo: sent, arrived, answered, back; the first `idle` of these before anything else was sent.
    echoes: list[tuple[int, int, int, int]] = field(default_factory=list)
    idle: int = 0
    forward: dict[str, Stream] = field(default_factory=dict)
    back: dict[str, Stream] = field(default_factory=dict)
    flows: list[TcpFlow] = field(default_factory=list)
    # Why a stage did not run, and what else happened.
    skipped: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    mtu: int = 1500
    echo_bytes: int = ECHO_BYTES
    seconds: float = 0.0
    bytes: int = 0

    def write(self, folder: Path) -> None:
        """Writes stamps, echoes and the rest into a folder."""
        import polars as pl

        names = ("sent_ns", "arrived_ns", "sizes", "flows", "ecn", "marks")
        parts = [
            pl.DataFrame(
                {name: list(getattr(one, name)) for name in names}, schema=dict.fromkeys(names, pl.Int64)
            ).with_columns(pl.lit(stage).alias("stage"), pl.lit(way).alias("direction"))
            for way in _DIRECTIONS
            for stage, one in getattr(self, way).items()
        ]
        if parts:
            files.write(folder, STAMPS, files.parquet(pl.concat(parts)), lasting=True)
        of_echoes = ("sent_ns", "arrived_ns", "answered_ns", "back_ns")
        rows = pl.DataFrame(self.echoes, schema=dict.fromkeys(of_echoes, pl.Int64), orient="row")
        files.write(folder, ECHOES, files.parquet(rows), lasting=True)
        rest = {name: getattr(self, name) for name in _REST}
        ends = {
            f"{way} {stage}": {
                name: getattr(one, name) for name in ("duplicates", "end", "late_s", "dropped_here")
            }
            for way in _DIRECTIONS
            for stage, one in getattr(self, way).items()
        }
        message = {**rest, "flows": [asdict(one) for one in self.flows], "stages": ends}
        files.write(folder, EVIDENCE, (json.dumps(message, indent=1) + "\n").encode(), lasting=True)

    @classmethod
    def read(cls, folder: Path) -> "Measured":
        """What `write` wrote. Raises `ScenarioError` if that is damaged."""
        from io import BytesIO

        import polars as pl

        import fullpipe._native as _native

        try:
            message = json.loads(reading.text(folder / EVIDENCE, _MOST_EVIDENCE))
            frames = [
                pl.read_ipc_stream(BytesIO(_native.read_parquet(str(folder / name))))
                for name in (ECHOES, STAMPS)
            ]
            # Older ones are all of IPv4.
            found = cls(**{name: {"echo_bytes": ECHO_BYTES, **message}[name] for name in _REST})
            found.flows = [TcpFlow(**one) for one in message["flows"]]
            found.echoes = [tuple(map(int, row)) for row in frames[0].rows()]  # type: ignore[misc]
            for (way, stage), part in (
                frames[1].partition_by(["direction", "stage"], as_dict=True, maintain_order=True).items()
            ):
                into: dict[str, Stream] = getattr(found, str(way))
                into[str(stage)] = _stream(part, message["stages"][f"{way} {stage}"])
        except (OSError, reading.Unreadable, ValueError, KeyError, TypeError, AttributeError) as error:
            raise mistake(
                "folder", str(folder), f"what `fullpipe probe` wrote ({error})", "measure again"
            ) from None
        return found


def _stream(part: Any, more: dict[str, Any]) -> Stream:
    def of(name: str, code: str) -> "array[int]":
        return array(code, part[name].to_list())

    return Stream(
        of("sent_ns", "q"),
        of("sizes", "H"),
        of("flows", "B"),
        of("ecn", "B"),
        of("arrived_ns", "q"),
        of("marks", "B"),
        **more,
    )
