"""Records what the kernel's BBR and CUBIC decide under all the conditions below, and replays it against ours.

    python tests/recordings/record.py --out out/recordings    # all, about 20 minutes; root, clang, libbpf
    python tests/recordings/record.py --out out/recordings bbr-policer cubic-policer

Existing recordings are kept. Exit code 1: a call differs, was lost, or was skipped by the kernel.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

Document: TypeAlias = dict[str, Any]

# Kept in the repository and replayed by the tests: small ones that reach branches which others do not.
CORPUS = {
    "10mbit-1ms",
    "10mbit-40ms",
    "1mbit-200ms",
    "300mbit-mtu-1472",
    "600mbit-mtu-1238",
    "ack-aggregation",
    "bursts",
    "delay-spike",
    "drip",
    "duplicates",
    "idle",
    "loss-0_1",
    "loss-1",
    "loss-5",
    "loss-15",
    "loss-30",
    "outage",
    "paced",
    "policer",
    "probe-while-idle",
    "probe-rtt",
    "rate-rtt-change",
    "reordering-loss",
    "short-flows",
    "slow-acks",
    "trickle",
    "twenty-flows",
}
# Too large for what they add.
LEFT_OUT = {
    "bbr-twenty-flows",
    "cubic-ack-aggregation",
    "cubic-drip",
    "cubic-probe-rtt",
    "cubic-probe-while-idle",
}


def conditions() -> dict[str, Document]:
    """Every scenario by its name."""
    found: dict[str, Document] = {}
    for algorithm, controller in (("bbr", "bbr1"), ("cubic", "cubic")):

        def add(condition: str, seconds: int, path: Document, flows: Sequence[Document] = ({},)) -> None:
            name = f"{algorithm}-{condition}"  # noqa: B023 - called at once
            each = [{"controller": controller, **flow} for flow in flows]  # noqa: B023
            found[name] = {"name": name, "duration": f"{seconds} s", "path": path, "flows": each}

        add("1mbit-200ms", 25, {"rate": "1 Mbit/s", "rtt": "200 ms", "buffer": "4 bdp"})
        add("10mbit-40ms", 12, {"rate": "10 Mbit/s", "rtt": "40 ms"})
        add("10mbit-1ms", 8, {"rate": "10 Mbit/s", "rtt": "1 ms", "buffer": "20 packets"})
        add("100mbit-100ms-deep", 15, {"rate": "100 Mbit/s", "rtt": "100 ms", "buffer": "8 bdp"})
        add("100mbit-20ms-shallow", 12, {"rate": "100 Mbit/s", "rtt": "20 ms", "buffer": "0.1 bdp"})
        add("500mbit-10ms", 8, {"rate": "500 Mbit/s", "rtt": "10 ms"})
        add("1gbit-5ms", 8, {"rate": "1 Gbit/s", "rtt": "5 ms"})
        for loss in ("0.1", "1", "5", "15", "30"):
            path = {"rate": "50 Mbit/s", "rtt": "30 ms", "loss": f"{loss} %"}
            add(f"loss-{loss.replace('.', '_')}", 12, path)
        policer = {"kind": "policer", "rate": "10 Mbit/s", "burst": "60 KB"}
        add("policer", 20, {"rate": "100 Mbit/s", "rtt": "40 ms", "before": [policer]})
        changes = [
            {"at": "5 s", "rate": "10 Mbit/s"},
            {"at": "9 s", "rtt": "80 ms"},
            {"at": "14 s", "rate": "80 Mbit/s"},
        ]
        add("rate-rtt-change", 20, {"rate": "40 Mbit/s", "rtt": "20 ms", "changes": changes})
        changes = [
            {"at": at, "loss": loss}
            for at, loss in (("4 s", "100 %"), ("6 s", "0 %"), ("10 s", "100 %"), ("10.4 s", "0 %"))
        ]
        add("outage", 16, {"rate": "20 Mbit/s", "rtt": "40 ms", "changes": changes})
        changes = [{"at": "4 s", "rtt": "900 ms"}, {"at": "7 s", "rtt": "20 ms"}]
        add("delay-spike", 14, {"rate": "20 Mbit/s", "rtt": "20 ms", "changes": changes})
        jitter = {"jitter": "4 ms", "jitter_reorders": True}
        add("reordering", 12, {"rate": "50 Mbit/s", "rtt": "40 ms", **jitter})
        late = {"kind": "reorder", "probability": "2 %", "delay": "15 ms"}
        add("reordering-loss", 12, {"rate": "20 Mbit/s", "rtt": "40 ms", "loss": "1 %", "after": [late]})
        twice = {"kind": "duplicate", "probability": "2 %"}
        add("duplicates", 10, {"rate": "20 Mbit/s", "rtt": "40 ms", "after": [twice]})
        jitter = {"kind": "jitter", "amplitude": "25 ms"}
        add("ack-aggregation", 14, {"rate": "50 Mbit/s", "rtt": "30 ms", "reverse": {"before": [jitter]}})
        slow = {"rate": "300 kbit/s", "buffer": "50 packets"}
        add("slow-acks", 10, {"rate": "50 Mbit/s", "rtt": "30 ms", "reverse": slow})
        path = {"rate": "40 Mbit/s", "rtt": "30 ms", "buffer": "2 bdp"}
        add("four-flows", 25, path, [{"count": 4, "stagger": "2 s"}])
        path = {"rate": "50 Mbit/s", "rtt": "40 ms", "buffer": "2 bdp"}
        both = [{"controller": "bbr1", "count": 2}, {"controller": "cubic", "count": 2}]
        add("beside-the-other", 20, path, both)
        sizes = (("20 KB", 8, "1 s"), ("200 KB", 6, "2 s"), ("2 MB", 3, "3 s"))
        short = [{"size": size, "count": count, "stagger": stagger} for size, count, stagger in sizes]
        add("short-flows", 15, {"rate": "20 Mbit/s", "rtt": "30 ms"}, short)
        path = {"rate": "10 Mbit/s", "rtt": "20 ms", "buffer": "30 packets"}
        add("twenty-flows", 15, path, [{"count": 20}])
        # Applications that pause: for less than a timeout, more, or over 10 s; or never send much.
        path = {"rate": "20 Mbit/s", "rtt": "40 ms"}
        add("bursts", 20, path, [{"bursts": {"size": "200 KB", "every": "150 ms"}}])
        add("idle", 30, {**path, "loss": "0.5 %"}, [{"bursts": {"size": "400 KB", "every": "2 s"}}])
        add("long-idle", 50, path, [{"bursts": {"size": "1 MB", "every": "12 s"}}])
        later = [{"at": "4 s", "rtt": "45 ms"}, {"at": "18 s", "rtt": "50 ms"}]
        add("drip", 32, {**path, "changes": later}, [{"bursts": {"size": "4 KB", "every": "15 ms"}}])
        steps = [{"at": f"{at} s", "rtt": f"{40 + at} ms"} for at in (2, 12, 22, 32)]
        pauses = [{"count": 12, "bursts": {"size": "60 KB", "every": "400 ms"}}]
        add("probe-while-idle", 45, {**path, "rate": "100 Mbit/s", "changes": steps}, pauses)
        add("trickle", 30, {**path, "loss": "1 %"}, [{"bursts": {"size": "6 KB", "every": "50 ms"}}])
        path = {"rate": "20 Mbit/s", "rtt": "30 ms"}
        add("probe-rtt", 45, {**path, "buffer": "4 bdp"})
        add("probe-rtt-queue", 45, {**path, "buffer": "8 bdp"}, [{"count": 2}])
    # Segments of which one more fits a burst if the host keeps 192 bytes for headers than if it keeps 320.
    for rate, mtu in ((600, 1238), (300, 1472)):
        name = f"bbr-{rate}mbit-mtu-{mtu}"
        path = {"rate": f"{rate} Mbit/s", "rtt": "20 ms"}
        flows = [{"controller": "bbr1"}]
        found[name] = {"name": name, "duration": "1 s", "path": path, "hosts": {"mtu": mtu}, "flows": flows}
    # Slow start after a timeout that stretched ACKs carry past the threshold, of a flow that is paced.
    outage = [{"at": "4 s", "loss": "100 %"}, {"at": "5 s", "loss": "0 %"}]
    path = {"rate": "20 Mbit/s", "rtt": "40 ms", "changes": outage}
    held = {"before": [{"kind": "jitter", "amplitude": "25 ms"}]}
    found["cubic-paced"] = {
        "name": "cubic-paced",
        "duration": "10 s",
        "path": {**path, "reverse": held},
        "hosts": {"pacing": True},
        "flows": [{"controller": "cubic"}],
    }
    return found


def in_corpus(name: str) -> bool:
    """Whether the recording is kept in the repository."""
    return name.partition("-")[2] in CORPUS and name not in LEFT_OUT


def main() -> int:
    """Records, replays and counts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="which conditions; all without any")
    parser.add_argument("--out", type=Path, required=True, help="folder of the recordings")
    parser.add_argument("--list", action="store_true", help="print the names and what is in the corpus")
    given = parser.parse_args()
    known = conditions()
    if unknown := sorted(set(given.names) - set(known)):
        print(f"no such condition: {', '.join(unknown)}; --list names them all", file=sys.stderr)
        return 2
    if given.list:
        for name in known:
            print(name, "(corpus)" if in_corpus(name) else "")
        return 0
    given.out.mkdir(parents=True, exist_ok=True)
    wrong = 0
    calls = 0
    names = given.names or list(known)
    for number, name in enumerate(names, 1):
        recording = given.out / f"{name}.recording"
        scenario = given.out / f"{name}.json"
        scenario.write_text(json.dumps(known[name], indent=1) + "\n")
        if not recording.exists():
            fresh = recording.with_suffix(".part")
            algorithm = name.split("-")[0]
            command = ("kernel", "record", "--cc", algorithm, str(scenario), "--out", str(fresh))
            if _fullpipe(*command).returncode:
                wrong += 1
                print(f"{number}/{len(names)} {name}: not recorded", flush=True)
                continue
            fresh.rename(recording)
        done = _fullpipe("replay", str(recording), "--json")
        reports = json.loads(done.stdout or "[]")
        if not reports:
            wrong += 1
            print(
                f"{number}/{len(names)} {name}: not readable; delete {recording} and start again", flush=True
            )
            continue
        report = reports[0]
        calls += report["calls"]
        wrong += not report["agrees"]
        verdict = "equal" if report["agrees"] else f"not equal: fullpipe replay {recording}"
        print(f"{number}/{len(names)} {name}: {report['calls']} calls, {verdict}", flush=True)
    print(f"{calls} calls in {len(names)} recordings; {wrong} of them missing or not equal")
    return 1 if wrong else 0


def _fullpipe(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fullpipe", *arguments], stdout=subprocess.PIPE, text=True, check=False
    )


if __name__ == "__main__":
    sys.exit(main())
