"""Random scenarios and their summaries from the native simulator; the engine must give the same bytes.

`python summaries.py FILE [COUNT]` writes COUNT of them as JSON lines, and one for each scenario that the
package ships and that needs no file. The seed of the draws is fixed, so that the scenarios are always
the same. `same.test.ts` reads the file.
"""

import json
import random
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import fullpipe._native as _native

SCENARIOS = Path(__file__).parents[3] / "scenarios"
CONTROLLERS = [
    "reno",
    "cubic",
    "cubic:beta=0.5",
    "newreno",
    "newreno:hystartpp=1",
    "cubic9438",
    "cubic9438:beta=0.8",
    "bbr1",
    "bbr1:probe_gain=1.5",
    "bbr3",
    "bbr3:profile=linux",
    "vegas",
    "copa",
    "dctcp",
    "fixed:cwnd=40",
]
QUEUES = (
    "fifo",
    "codel",
    "codel:target=2 ms",
    "fq_codel",
    "pie",
    "red",
    "step",
    "dualpi2",
)


def document(draws: random.Random, number: int) -> dict[str, Any]:
    """A scenario that is over in a few hundred thousand packets."""
    rate = draws.choice([0.3, 1, 3.7, 10, 25, 100, 400])
    path: dict[str, Any] = {
        "rate": f"{rate} Mbit/s",
        "rtt": f"{draws.choice([0.1, 1, 7, 40, 133, 300])} ms",
        "buffer": draws.choice(["2 packets", "25 packets", "0.3 bdp", "1 bdp", "4 bdp", "123457 B"]),
    }
    plain = draws.random() < 0.4
    if plain:
        path["queue"] = draws.choice(QUEUES)
    if draws.random() < 0.5:
        path["loss"] = f"{draws.choice([0, 0.01, 0.3, 2, 11])} %"
    if draws.random() < 0.3:
        path["jitter"] = f"{draws.choice([0.07, 1, 9])} ms"
        path["jitter_reorders"] = draws.random() < 0.5
    if draws.random() < 0.15:
        path["burst"] = "30 KB"
    elif draws.random() < 0.3:
        path["changes"] = [
            {"at": "500 ms", "rate": f"{rate * draws.choice([0.3, 2.5])} Mbit/s"},
            {"at": "1100 ms", "rtt": f"{draws.choice([3, 60])} ms", "loss": "0.7 %"},
        ]
    path["before"] = [element(draws, rate) for _ in range(draws.choice([0, 0, 1, 2]))]
    path["after"] = [element(draws, rate) for _ in range(draws.choice([0, 0, 0, 1, 3]))]
    path["reverse"] = draws.choice(
        [
            {},
            {},
            {"rate": "1 Mbit/s", "buffer": "60 packets", "queue": "codel"},
            {"loss": "4 %"},
            {"jitter": "3 ms", "jitter_reorders": True},
            {"after": [{"kind": "aggregate", "every": "2 ms"}]},
        ]
    )
    return {
        "name": f"random {number}",
        "duration": f"{draws.choice([0.6, 1.7, 3])} s",
        "path": path,
        "flows": [flow(draws) for _ in range(draws.choice([1, 1, 2, 3]))],
        "hosts": {
            "mtu": draws.choice([576, 1500, 1500, 9000]),
            "pacing": draws.random() < 0.3,
            "gro": draws.choice(["0", "0", "0.1 ms", "1 ms"]),
            "tcp_memory": draws.choice(["max", "linux", "ubuntu-18.10"]),
            "ecn": draws.random() < 0.4,
        },
        "record": draws.choice([{}, {}, {"interval": "3.7 ms"}, {"flows": False}, {"series": False}]),
    }


def flow(draws: random.Random) -> dict[str, Any]:
    """A flow, or several equal ones, of any workload."""
    data: dict[str, Any] = {
        "controller": draws.choice(CONTROLLERS),
        "count": draws.choice([1, 1, 1, 2, 9]),
        "start": draws.choice(["0", "0", "210 ms"]),
    }
    workload = draws.choice(
        ["bulk", "bulk", "size", "bursts", "requests", "video", "transfers", "stop", "cwnd", "rtt", "media"]
    )
    size = draws.choice(["1 B", "1449 B", "40001 B", "1 MB"])
    match workload:
        case "size":
            data["size"] = size
        case "bursts":
            data["bursts"] = {"size": size, "every": draws.choice(["20 ms", "333 ms"])}
        case "requests":
            data["requests"] = {"size": size, "pause": draws.choice(["0", "17 ms"])}
        case "video":
            data["video"] = {
                "rate": draws.choice(["333 kbit/s", "7 Mbit/s"]),
                "chunk": "130 ms",
                "buffer": "700 ms",
            }
        case "transfers":
            pauses = [draws.choice(["0", "3 ms", "90 ms"]) for _ in range(5)]
            data["transfers"] = [
                {"size": draws.choice(["1 B", "2896 B", "50 KB"]), "pause": pause} for pause in pauses
            ]
        case "stop":
            data["stop"] = "590 ms"
            data["start"] = "0"
            data["start_jitter"] = "10 ms"
        case "cwnd":
            data["max_cwnd"] = "25 packets"
        case "rtt":
            data["rtt"] = "310 ms"
        case "media":
            del data["controller"]
            data["media"] = {"frame": size, "every": draws.choice(["5 ms", "33 ms"])}
    return data


def element(draws: random.Random, rate: float) -> dict[str, Any]:
    """A further element of a path."""
    faster = f"{rate * draws.choice([0.7, 1, 2.3])} Mbit/s"
    return draws.choice(
        [
            {"kind": "link", "rate": faster, "buffer": "70 packets"},
            {"kind": "policer", "rate": faster, "burst": "60 KB"},
            {"kind": "token_bucket", "rate": faster, "burst": "20 KB", "buffer": "100 KB"},
            {
                "kind": "cellular",
                "rates": [f"{rate * share} Mbit/s" for share in (0.4, 0.8, 1.7)],
                "review": "50 ms",
                "demand": "10 ms",
                "buffer": "200 packets",
            },
            {"kind": "delay", "delay": "1.3 ms"},
            {"kind": "gilbert_elliott", "good_to_bad": "0.3 %", "bad_to_good": "31 %"},
            {"kind": "duplicate", "probability": "1.7 %"},
            {"kind": "reorder", "probability": "2 %", "delay": "1 ms"},
            {"kind": "jitter", "amplitude": "0.3 ms", "reorders": draws.random() < 0.5},
            {"kind": "aggregate", "every": "4 ms"},
            {"kind": "wifi", "collisions": "3 %"},
            {"kind": "bleach", "probability": "40 %"},
        ]
    )


def line(text: str, form: str, seed: int) -> str:
    """The summaries of all alternatives of a document."""
    _, alternatives = _native.resolve(text, form, None)
    summaries = [_native.simulate(spec, seed)[0] for _, spec in alternatives]
    return json.dumps({"document": {"text": text, "format": form}, "seed": seed, "summaries": summaries})


def shipped() -> list[str]:
    """The scenarios that need no file and no program, but for one that takes longer than all others."""
    left_out = ("core-scale", "program-iperf3")
    files = [path for path in sorted(SCENARIOS.glob("*.toml")) if path.stem not in left_out]
    return [text for text in (path.read_text() for path in files) if "deliveries = " not in text]


def main() -> None:
    """Writes them."""
    out, count = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 240
    draws = random.Random(14)
    lines = [line(text, "toml", 1) for text in shipped()]
    most, number = len(lines) + count, 0
    while len(lines) < most:
        number += 1
        text = json.dumps(document(draws, number))
        # Some draws do not go together, such as a large packet and a small buffer.
        with suppress(_native.ScenarioError):
            lines.append(line(text, "json", draws.choice([0, 1, 7, 2**53 - 1])))
    out.write_text("\n".join(lines) + "\n")
    print(f"{len(lines)} scenarios in {out}")


if __name__ == "__main__":
    main()
