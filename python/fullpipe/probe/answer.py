"""The answer in words: what was measured, what is assumed, and what was not measurable."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fullpipe import files
from fullpipe.probe import path_file, validation
from fullpipe.probe.analysis.estimate import Direction, Estimates, estimate
from fullpipe.probe.analysis.quantity import Quantity
from fullpipe.probe.stamps import Measured
from fullpipe.probe.validation import Checked, Compared

ESTIMATES = "estimates.json"
_RATE, _BYTES, _SHARE = (1e-6, "Mbit/s"), (1e-3, "KB"), (100.0, "%")


@dataclass(frozen=True)
class Row:
    """A line of the table: a quantity in both directions."""

    name: str
    forward: str
    back: str


@dataclass(frozen=True)
class Answer:
    """What is known of the path to a host."""

    host: str
    measured: Measured
    estimates: Estimates
    checked: list[Checked]
    notes: list[str]

    @classmethod
    def of(cls, host: str, measured: Measured, folder: Path) -> "Answer":
        """Estimates, writes the path into a folder, and validates it there."""
        estimates = estimate(measured)
        checked: list[Checked] = []
        notes = [*estimates.doubts, *(f"{stage}: {why}" for stage, why in measured.skipped.items())]
        if path_file.write(estimates, host, folder) is None:
            notes.append(f"no {path_file.PATH} is written: the rate is not measurable")
        elif measured.flows:
            checked, more = validation.validate(estimates, measured.flows, measured.mtu, folder)
            notes += more
        return cls(host, measured, estimates, checked, notes)

    @property
    def sentence(self) -> str:
        """The first line."""
        ways = (self.estimates.forward, self.estimates.back)
        forward, back = map(_brief, ways)
        rtt = _said(self.estimates.rtt_ms, 1, "ms", wide=False)
        return f"To {self.host}: {forward}; back: {back}; round trip {rtt}."

    @property
    def rows(self) -> list[Row]:
        """The table of what was measured."""
        forward, back = self.estimates.forward, self.estimates.back
        found = [
            Row("Base RTT", _said(self.estimates.rtt_ms, 1, "ms"), ""),
            Row("MTU", f"{self.estimates.mtu} B", ""),
        ]
        for name, attribute, (factor, unit) in _QUANTITIES:
            values = [_said(getattr(one, attribute), factor, unit) for one in (forward, back)]
            if values != ["", ""]:
                found.append(Row(name, *values))
        found.append(Row("Discipline", forward.discipline or "", back.discipline or ""))
        for name in ("p50", "p90", "p99", "p99.9"):
            found.append(Row(f"Jitter {name}", *(_jitter(one, name) for one in (forward, back))))
        return found

    @property
    def assumed(self) -> list[str]:
        """What the path has that was not measured."""
        lines = [
            f"{_PREFIX[way]}{key.name}{'' if key.value is None else f' {key.value}'} ({key.source})"
            for way in ("forward", "back")
            for key in path_file.keys(self.estimates, way)
            if "assumed" in key.source
        ]
        if self.estimates.rtt_ms.value is None and path_file.usable(self.estimates):
            lines.append(f"rtt {self.estimates.least_rtt_ms:.2f} ms (assumed: the least that was seen)")
        return lines

    @property
    def not_measurable(self) -> list[str]:
        """Each with its reason."""
        lines = []
        if self.estimates.rtt_ms.value is None:
            lines.append(f"base RTT: {self.estimates.rtt_ms.why}")
        for way in ("forward", "back"):
            one: Direction = getattr(self.estimates, way)
            reasons: dict[str, list[str]] = {}
            for name, attribute, _ in _QUANTITIES:
                quantity: Quantity = getattr(one, attribute)
                if quantity.value is None and attribute != "buffer_ms":
                    reasons.setdefault(quantity.why, []).append(name.lower())
            if one.discipline is None:
                reasons.setdefault(one.why_no_discipline, []).append("discipline")
            lines += [f"{_PREFIX[way]}{', '.join(names)}: {why}" for why, names in reasons.items()]
        return lines

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "host": self.host,
            "sentence": self.sentence,
            **self.estimates.to_dict(),
            "not_measurable": self.not_measurable,
            "assumed": self.assumed,
            "validation": [asdict(one) for one in self.checked],
            "notes": self.notes,
            "seconds": self.measured.seconds,
            "bytes": self.measured.bytes,
        }

    def to_json(self) -> str:
        """As text."""
        return json.dumps(self.to_dict(), indent=1)

    def write(self, folder: Path) -> None:
        """Writes the estimates beside the path."""
        files.write(folder, ESTIMATES, (self.to_json() + "\n").encode())


_PREFIX = {"forward": "", "back": "back: "}
_QUANTITIES: tuple[tuple[str, str, tuple[float, str]], ...] = (
    ("Rate", "rate_bps", _RATE),
    ("Buffer", "buffer_bytes", _BYTES),
    ("Buffer in time", "buffer_ms", (1.0, "ms")),
    ("Random loss", "loss", _SHARE),
    ("Policer", "policer_bps", _RATE),
    ("Bucket", "bucket_bytes", _BYTES),
    ("Reordered", "reordered", _SHARE),
    ("Aggregation", "aggregation_ms", (1.0, "ms")),
    ("Others' traffic", "others_bps", _RATE),
)


def _said(one: Quantity, factor: float, unit: str, *, wide: bool = True) -> str:
    """A value with its interval, and what makes it unsure; empty if there is none."""
    if one.value is None:
        return "" if wide else "not measurable"
    scaled = one.scaled(factor)
    text = f"{scaled.value:.4g} {unit}"
    if not wide:
        return text
    if scaled.low is not None:
        text += f" ({scaled.low:.4g} to {'more' if scaled.high is None else f'{scaled.high:.4g}'})"
    return f"{text}; {one.why}" if one.why else text


def _brief(one: Direction) -> str:
    if one.policer_bps.value is not None:
        return f"policed to {_said(one.policer_bps, *_RATE, wide=False)}"
    if one.rate_bps.value is None:
        if one.at_least_bps is not None:
            return f"at least {one.at_least_bps / 1e6:.4g} Mbit/s"
        return "no one rate" if one.pieces else "rate not measurable"
    text = _said(one.rate_bps, *_RATE, wide=False)
    if one.buffer_bytes.value is not None:
        text += f", buffer {_said(one.buffer_ms, 1, 'ms', wide=False)}"
    return text if one.discipline is None else f"{text}, {one.discipline}"


def _jitter(one: Direction, name: str) -> str:
    value = one.jitter_ms.get(name)
    return "" if value is None else f"{value:.2f} ms"


def compared(one: Compared, digits: int) -> str:
    """Measured beside simulated."""
    simulated = f"{one.mean:.{digits}f} ({one.least:.{digits}f} to {one.most:.{digits}f})"
    return f"{one.measured:.{digits}f} / {simulated}{' !' if one.off else ''}"
