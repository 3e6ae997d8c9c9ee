"""Does `fullpipe probe` find the truth? Random emulated paths, one after the other, and what it says of each.

    .venv/bin/python bench/probe.py [--paths 120] [--seed 4] [--out out/probe-paths] [--record]

Each path is drawn from the distribution of `draw`, runs in `fullpipe shell`, and is measured with the default
budget. The far clock is moved away by an offset and a drift, so that no estimate profits from the two ends
having one. A path takes 40 s. An interrupted command resumes: stamps are kept in the folder, and estimated
again each time. A busy machine disturbs emulation; the load is kept with each path.
"""

import argparse
import json
import math
import os
import random
import secrets
import shlex
import subprocess
import sys
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fullpipe import evidence, files
from fullpipe.measures.statistics import share_interval
from fullpipe.probe.analysis import kinds
from fullpipe.probe.analysis.estimate import Estimates, estimate
from fullpipe.probe.stamps import LOST, Measured
from fullpipe.runs.worlds import registry

FILE = Path(__file__).resolve().parent.parent / "results" / "probe.jsonl"
# The far clock: parts in a million, and nanoseconds ahead.
DRIFT, OFFSET_NS = 40e-6, 1_234_567_890_123
QUEUES = {
    kinds.TAIL: "fifo",
    kinds.CODEL: "codel",
    kinds.PIE: "pie",
    kinds.RED: "red",
    kinds.FAIR: "fq_codel",
    kinds.DUAL: "dualpi2",
}
# Which kinds are told apart; the others are "an AQM".
GROUPS = (kinds.TAIL, kinds.POLICER, kinds.FAIR, kinds.DUAL)
# Within which part of the truth an estimate counts as right.
_RATE, _BUFFER, _BUCKET, _LOSS, _LEAST_LOST = 0.02, 0.1, 0.1, 0.3, 45


@dataclass(frozen=True)
class Case:
    """A path of known truth."""

    number: int
    seed: int
    kind: str
    rate_mbps: float
    rtt_ms: float
    buffer_bytes: int
    loss: float
    # Of a policer.
    policed_mbps: float = 0.0
    bucket_bytes: int = 0

    @property
    def options(self) -> list[str]:
        """Of `fullpipe shell`."""
        message = [f"--rate={self.rate_mbps:.3f} Mbit/s", f"--rtt={self.rtt_ms:.3f} ms"]
        message += [f"--buffer={self.buffer_bytes} B", f"--seed={self.seed}"]
        if self.loss:
            message.append(f"--loss={self.loss}")
        if self.kind == kinds.POLICER:
            message.append(f"--policer={self.policed_mbps:.4f} Mbit/s, {self.bucket_bytes} B")
        else:
            message.append(f"--queue={QUEUES[self.kind]}")
        return message


def draw(paths: int, seed: int) -> list[Case]:
    """Random paths; the first ones are the same however many are drawn.

    Logarithmically uniform: rate 1 to 150 Mbit/s, round-trip time 5 to 130 ms, buffer 0.25 to 3 BDP, but at
    least 8 KB, and 60 KB with active management. Three of ten have a tail-drop queue, one of seven a policer.
    """
    chance = random.Random(seed)
    return [_case(number, chance) for number in range(1, paths + 1)]


def _case(number: int, chance: random.Random) -> Case:
    def between(low: float, high: float) -> float:
        return math.exp(chance.uniform(math.log(low), math.log(high)))

    rate, rtt, bdps = between(1, 150), between(5, 130), between(0.25, 3)
    names = [*QUEUES, kinds.POLICER]
    kind = chance.choices(names, [3, 1.5, 1.5, 1, 1, 1, 1.5])[0]
    buffer = max(8_000 if kind in (kinds.TAIL, kinds.POLICER) else 60_000, rate * rtt * 125 * bdps)
    loss = chance.choice([0, 0, 0.001, 0.005, 0.015])
    policed, bucket = rate * chance.uniform(0.2, 0.6), between(10_000, 400_000)
    run = chance.randrange(1 << 31)
    return Case(number, run, kind, rate, rtt, round(buffer), loss, policed, round(bucket))


def run(case: Case, folder: Path) -> None:
    """Measures a path, and keeps the stamps and the load of the machine."""
    token, program = secrets.token_hex(10), shlex.join([sys.executable, "-m", "fullpipe"])
    server = f"{program} probe serve --bind {{server}} --port {{port}} --token {token}"
    client = f"{program} probe $FULLPIPE_SERVER --port $FULLPIPE_PORT --token {token}"
    client += f" --out {shlex.quote(str(folder))}"
    words = [sys.executable, "-m", "fullpipe", "shell", *case.options, "--server", server]
    load = os.getloadavg()[0]
    done = subprocess.run([*words, "--", "sh", "-c", client], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"path {case.number} could not be measured: {done.stderr.strip()[-600:]}")
    load = max(load, os.getloadavg()[0])
    lost = [one for one in done.stderr.splitlines() if "lost at random" in one]
    about = {
        "load": load,
        "doubts": [one for one in done.stderr.splitlines() if "kept up" in one],
        "lost": lost,
    }
    files.write(folder, "about.json", json.dumps(about).encode())


def warped(measured: Measured) -> Measured:
    """The same with a far clock that runs ahead and faster."""
    zero = measured.echoes[0][1]

    def far(stamp: int) -> int:
        return stamp + OFFSET_NS + int((stamp - zero) * DRIFT)

    def column(stamps: "array[int]") -> "array[int]":
        return array("q", [one if one == LOST else far(one) for one in stamps])

    return replace(
        measured,
        echoes=[(a, far(b), far(c), d) for a, b, c, d in measured.echoes],
        forward={
            name: replace(one, arrived_ns=column(one.arrived_ns)) for name, one in measured.forward.items()
        },
        back={name: replace(one, sent_ns=column(one.sent_ns)) for name, one in measured.back.items()},
    )


@dataclass(frozen=True)
class Judged:
    """An estimate beside the truth."""

    truth: float
    value: float | None
    low: float | None
    high: float | None
    right: bool

    @property
    def covered(self) -> bool | None:
        """Whether the interval has the truth; None without one."""
        if self.low is None or self.high is None:
            return None
        return self.low <= self.truth <= self.high


def judge(case: Case, found: Estimates) -> dict[str, Judged]:
    """The quantities of a path that have a truth and a goal."""
    way = found.forward

    def of(quantity: Any, truth: float, error: float) -> Judged:
        value = quantity.value
        right = value is not None and abs(value - truth) <= error
        return Judged(truth, value, quantity.low, quantity.high, right)

    judged = {"rtt_ms": of(found.rtt_ms, case.rtt_ms, max(0.5, 0.01 * case.rtt_ms))}
    if case.kind == kinds.POLICER:
        rate = case.policed_mbps * 1e6
        judged["policer_bps"] = of(way.policer_bps, rate, _RATE * rate)
        judged["bucket_bytes"] = of(way.bucket_bytes, case.bucket_bytes, _BUCKET * case.bucket_bytes)
    else:
        judged["rate_bps"] = of(way.rate_bps, case.rate_mbps * 1e6, _RATE * case.rate_mbps * 1e6)
    if case.kind == kinds.TAIL:
        within = max(1500, _BUFFER * case.buffer_bytes)
        judged["buffer_bytes"] = of(way.buffer_bytes, case.buffer_bytes, within)
    loss = of(way.loss, case.loss, _LOSS * case.loss)
    lost = way.loss.value is not None and way.loss.value > 0 and case.loss
    if lost and way.loss.low is not None and _losses(way.loss) >= _LEAST_LOST:
        judged["loss"] = loss
    return judged


def _losses(loss: Any) -> float:
    """About how many were lost, from the width of the interval: its half is 1.96 roots."""
    half = (loss.high - loss.low) / 2 / loss.value
    return (1.96 / half) ** 2 if half > 0 else 0.0


def group(kind: str | None) -> str:
    """The kind as far as it has to be told apart."""
    return "none" if kind is None else kind if kind in GROUPS else kinds.AQM


def line(case: Case, name: str, found: Estimates, about: dict[str, Any]) -> dict[str, Any]:
    """A path as evidence."""
    return {
        "key": {"set": name, "number": case.number},
        "made": evidence.made(
            "python bench/probe.py --record",
            {"kernel": registry.named("kernel").build()},
            [os.uname().release],
        ),
        "path": " ".join(case.options),
        "load": about["load"],
        "kind": {"truth": case.kind, "found": found.forward.discipline or "none"},
        "quantities": {
            one: {"truth": j.truth, "value": j.value, "low": j.low, "high": j.high, "right": j.right}
            for one, j in judge(case, found).items()
        },
    }


# What counts as right.
GOALS = {
    "rate_bps": f"within {100 * _RATE:.0f} %",
    "rtt_ms": "within 0.5 ms or 1 %",
    "buffer_bytes": f"of tail drop, within {100 * _BUFFER:.0f} % or a packet",
    "loss": f"within {100 * _LOSS:.0f} %, of {_LEAST_LOST} lost packets and more",
    "policer_bps": f"within {100 * _RATE:.0f} %",
    "bucket_bytes": f"within {100 * _BUCKET:.0f} %",
}


def table(lines: Sequence[dict[str, Any]], older: str = "") -> str:
    """How many of each are right, how many intervals cover the truth, and every miss; as Markdown."""
    if not lines:
        return "Not measured yet: `python bench/probe.py --record` takes about 80 min.\n"
    text = [
        f"Made by `{lines[0]['made']['command']}` on {len(lines)} paths, with 95 % intervals of the shares.",
        *(["", older] if older else []),
        "",
        "| quantity | counts as right | right | interval covers the truth |",
        "|---|---|---|---|",
    ]
    misses = []
    for name, goal in GOALS.items():
        of = {one["key"]["number"]: one["quantities"][name] for one in lines if name in one["quantities"]}
        stated = [one for one in of.values() if one["low"] is not None and one["high"] is not None]
        covered = sum(map(_covers, stated))
        text.append(
            f"| {name} | {goal} | {_share(sum(one['right'] for one in of.values()), len(of))} | "
            f"{_share(covered, len(stated))} |"
        )
        for number, one in of.items():
            if not one["right"] or (one in stated and not _covers(one)):
                why = "" if one["right"] else ", not right"
                misses.append(f"* {number}: {name} {one['truth']:.4g}, found {_number(one['value'])}{why}")
    same_kind = [group(one["kind"]["truth"]) == group(one["kind"]["found"]) for one in lines]
    text.append(
        f"| kind | tail drop, policer, fair, dual, or AQM | {_share(sum(same_kind), len(same_kind))} | |"
    )
    misses += [
        f"* {one['key']['number']}: {one['kind']['truth']}, found {one['kind']['found']}"
        for one, right in zip(lines, same_kind, strict=True)
        if not right
    ]
    return "\n".join([*text, "", "Each miss, with the number of its path:", "", *misses, ""])


def _covers(one: dict[str, Any]) -> bool:
    return bool(one["low"] <= one["truth"] <= one["high"])


def _share(some: int, all_: int) -> str:
    if not all_:
        return "–"
    low, high = share_interval(some, all_)
    return f"{some} of {all_} ({100 * low:.0f} to {100 * high:.0f} %)"


def main() -> None:
    """Measures, prints a line for each path and a table, and records them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--paths", type=int, default=120)
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("--out", type=Path, default=Path("out/probe-paths"))
    parser.add_argument("--record", action="store_true", help="put the results into results/probe.jsonl")
    message = parser.parse_args()
    if message.record:
        evidence.read(FILE)  # A file that cannot be used is an error now.
    lines = []
    for case in draw(message.paths, message.seed):
        folder = message.out.absolute() / f"{message.seed}-{case.number:03}"
        if not (folder / "about.json").exists():
            run(case, folder)
        found = estimate(warped(Measured.read(folder)))
        about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
        lines.append(line(case, f"seed {message.seed}", found, about))
        said = {
            name: f"{j.truth:.4g}: {_number(j.value)}{'' if j.right else ' !'}{'' if j.covered else ' ?'}"
            for name, j in judge(case, found).items()
        }
        kind = f"{case.kind}: {found.forward.discipline}"
        print(
            case.number,
            kind,
            *(f"{name} {text}" for name, text in said.items()),
            f"load {about['load']:.1f}",
            sep="  ",
            flush=True,
        )
    print(table(lines))
    if message.record:
        evidence.replace(FILE, lines)


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}"


if __name__ == "__main__":
    main()
