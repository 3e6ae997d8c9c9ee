"""Instructions a packet, by callgrind, against the committed counts: the load of the machine does not matter.

    python3 bench/instructions.py            # fails where a packet takes 2 % more, and shows the functions
    python3 bench/instructions.py --renew    # commits to what is counted now
    python3 bench/instructions.py --json     # also lines for bench/record.py

A short run is subtracted from a long one, so that set-up does not count. Counts of another compiler are
compared, but not judged. The last case is a control, with a planted cost: it must fail. Needs valgrind.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
COMMITTED = HERE / "instructions.json"
# How much more a packet may take.
MARGIN = 0.02
# How many functions a profile shows.
SHOWN = 15
PATH = ("100 Mbit/s", "40 ms", "1 bdp")
MANY_FLOWS = ("1 Gbit/s", "20 ms", "1 bdp")
SHORT = ("2 s", "10 s")
# Time between two samples of the control, of which the committed runs have none.
PLANTED = "1 ms"


class Case(NamedTuple):
    """What is run: words for `fullpipe-bench --once`, with a short and a long duration after them."""

    name: str
    words: tuple[str, ...]
    durations: tuple[str, str]
    more: tuple[str, ...] = ()


class Count(NamedTuple):
    """Instructions a packet, in all and by function, without what it calls."""

    packet: float
    functions: Mapping[str, float]


CASES = [
    *(
        Case(f"{controller}, 100 Mbit/s, 40 ms, {loss}", (controller, *PATH, loss), durations)
        for loss in ("0 %", "1 %", "5 %")
        for controller in ("bbr1", "cubic", "reno")
        # Random loss leaves the other two a fraction of the packets.
        for durations in [SHORT if loss == "0 %" or controller == "bbr1" else ("20 s", "200 s")]
    ),
    *(
        Case(
            f"{flows} flows of {controller}", (controller, *MANY_FLOWS, "0 %"), ("300 ms", "900 ms"), (flows,)
        )
        for controller, flows in (("bbr1", "100"), ("bbr3", "100"), ("cubic", "200"))
    ),
]
PLAIN = CASES[0]
CONTROL = Case("control: sampled every millisecond", PLAIN.words, PLAIN.durations, ("1", PLANTED))


def main() -> int:
    """Counts, and returns the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--renew", action="store_true", help=f"write {COMMITTED.name}")
    parser.add_argument("--json", action="store_true", help="also print lines for bench/record.py")
    asked = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("instructions are not counted: valgrind is missing (Debian, Ubuntu: apt-get install valgrind)")
        return 2 if asked.renew or asked.json else 0
    program, compiler = build(), version()
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        each = list(pool.map(lambda case: count(program, case), [*CASES, CONTROL]))
    found = dict(zip([case.name for case in CASES], each[:-1], strict=True))
    if asked.json:
        print("\n".join(line(name, one) for name, one in found.items()))
    if asked.renew:
        COMMITTED.write_text(json.dumps(document(compiler, found), indent=1) + "\n", encoding="utf-8")
        print(f"{COMMITTED.name} has the counts of {compiler}")
        return 0
    committed = json.loads(COMMITTED.read_text(encoding="utf-8"))
    text, passes = judged(compiler, found, committed["compiler"], counts(committed))
    print(text)
    # The control is judged by the run without the planted cost.
    seen, unseen = judged(compiler, {PLAIN.name: each[-1]}, compiler, {PLAIN.name: found[PLAIN.name]})
    message = "not noticed, so that this check is broken" if unseen else "noticed"
    print(f"\nThe control, {CONTROL.name}: {message}")
    print(seen.replace("FAILS", "more, as planted"))
    return 0 if passes and not unseen else 1


def build() -> Path:
    """The program, as users have it."""
    subprocess.run(
        ["cargo", "build", "--release", "-q", "--locked", "-p", "fullpipe-bench"], cwd=HERE.parent, check=True
    )
    return HERE.parent / os.environ.get("CARGO_TARGET_DIR", "target") / "release" / "fullpipe-bench"


def version() -> str:
    """The compiler, whose version changes the counts."""
    message = subprocess.run(
        ["rustc", "--version"], cwd=HERE.parent, capture_output=True, text=True, check=True
    )
    return " ".join(message.stdout.split()[:2])


def count(program: Path, case: Case) -> Count:
    """What a packet of the long run takes that is not in the short one."""
    packets: list[int] = []
    costs: list[dict[str, int]] = []
    for duration in case.durations:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "callgrind.out"
            words = [str(program), "--once", *case.words, duration, *case.more]
            tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"]
            run = subprocess.run([*tool, *words], capture_output=True, text=True, check=False)
            if run.returncode != 0:
                raise SystemExit(f"{' '.join(words)} fails under valgrind:\n{run.stderr[-2000:]}")
            packets.append(int(run.stdout.split(" packets")[0]))
            costs.append(by_function(out.read_text(encoding="utf-8")))
    (short, long), more = costs, packets[1] - packets[0]
    functions = {name: (long.get(name, 0) - short.get(name, 0)) / more for name in {*short, *long}}
    return Count(sum(functions.values()), functions)


def by_function(profile: str) -> dict[str, int]:
    """The instructions of each function in a profile, without those of the functions that it calls."""
    names: dict[str, str] = {}
    costs: dict[str, int] = defaultdict(int)
    current, of_a_call = "", False
    for one in profile.splitlines():
        if found := re.match(r"c?fn=(\(\d+\))(?: (.*))?", one):
            if found[2]:
                names[found[1]] = short_name(found[2])
            if one.startswith("fn="):
                current = names[found[1]]
        elif one.startswith("calls="):
            of_a_call = True
        elif found := re.match(r"[+*\-\d]\d* (\d+)$", one):
            if not of_a_call:
                costs[current] += int(found[1])
            of_a_call = False
    return dict(costs)


def short_name(name: str) -> str:
    """The name of a function without its hash, and without callgrind's mark of a recursive call."""
    return re.sub(r"(::h[0-9a-f]{16})?('\d+)?$", "", name)


def judged(
    compiler: str, found: Mapping[str, Count], committed_by: str, committed: Mapping[str, Count]
) -> tuple[str, bool]:
    """A table, with the profile of what takes more; and whether all is within the margin."""
    judges = compiler == committed_by
    rows, profiles, passes = [f"{'instructions a packet':<40} {'before':>8} {'now':>8}"], [], True
    for name, now in found.items():
        before = committed.get(name)
        if before is None:
            rows.append(f"{name:<40} {'':>8} {now.packet:>8.0f}  FAILS: no committed count (--renew)")
            passes = False
            continue
        change = now.packet / before.packet - 1
        message = f"{round(100 * change, 1) + 0.0:+.1f} %"
        if change > MARGIN and judges:
            message += f"  FAILS: more than {MARGIN:.0%}"
            profiles.append(f"\n{name}, by function:\n{profile(before, now)}")
            passes = False
        elif change < -MARGIN and judges:
            message += "  less: commit to it (--renew)"
        rows.append(f"{name:<40} {before.packet:>8.0f} {now.packet:>8.0f}  {message}")
    if not judges:
        rows.append(f"not judged: the committed counts are of {committed_by}, and this is {compiler}")
    return "\n".join([*rows, *profiles]), passes


def profile(before: Count, now: Count) -> str:
    """The functions that changed most, the largest change first."""
    names = {*before.functions, *now.functions}
    each = [(now.functions.get(name, 0.0), before.functions.get(name, 0.0), name) for name in sorted(names)]
    each.sort(key=lambda one: -abs(one[0] - one[1]))
    rows = [f"{before:>8.1f} {now:>8.1f} {now - before:>+8.1f}  {name}" for now, before, name in each[:SHOWN]]
    return "\n".join([f"{'before':>8} {'now':>8} {'change':>8}", *rows])


def document(compiler: str, found: Mapping[str, Count]) -> dict[str, object]:
    """What is committed: functions of at least half an instruction a packet."""
    return {
        "compiler": compiler,
        "cases": {
            name: {
                "packet": round(one.packet, 1),
                "functions": {
                    function: round(cost, 1)
                    for function, cost in sorted(one.functions.items(), key=lambda pair: -pair[1])
                    if cost >= 0.5
                },
            }
            for name, one in found.items()
        },
    }


def counts(committed: Mapping[str, Mapping[str, Mapping[str, object]]]) -> dict[str, Count]:
    """The inverse of `document`."""
    return {name: Count(**one) for name, one in committed["cases"].items()}  # type: ignore[arg-type]


def line(name: str, one: Count) -> str:
    """A line for bench/record.py."""
    none = dict.fromkeys(("low", "high", "ratio"))
    return json.dumps(
        {
            "benchmark": "instructions",
            "case": name,
            "unit": "instructions/packet",
            "median": round(one.packet),
        }
        | none
        | {"runs": 1}
    )


if __name__ == "__main__":
    sys.exit(main())
