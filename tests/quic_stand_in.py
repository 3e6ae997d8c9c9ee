"""Speaks the protocol of `fullpipe-quic` with the simulator behind it, so that tests need no QUIC stack.

Run as a program: `quic_stand_in.py about`. `STAND_IN` in the environment names a way to misbehave;
`STAND_IN_ABOUT`, `STAND_IN_HEADER`, `STAND_IN_STATE`, `STAND_IN_LOOKS` and `STAND_IN_PROVENANCE` are more of
what it says, as JSON, and `STAND_IN_INSIDE` what it takes controllers for.
"""

import json
import os
import struct
import sys
import time
from typing import Any

from fullpipe import _native

LENGTH = struct.Struct(">Q")
# What a terminal would obey, and a text that is too long to be shown.
HOSTILE = "\x1b]0;x\x07\u202e\u2028rubbish" + "y" * 20_000
# What it takes the controllers inside its stacks for.
# What it says that it does not support: of a controller inside quinn, of ours, and of a setting.
QUINNS_PACER = "quinn's pacer takes no rate."
OF_OURS = ["Marks are not counted.", "Bursts are <large>.", "What comes late is lost."]
PACING = "hosts.pacing is ignored."
INSIDE = {"noq:bbr3": "bbr3", "noq:cubic": "cubic", "quinn:bbr": "bbr1"}
INSIDE |= json.loads(os.environ.get("STAND_IN_INSIDE", "{}"))
ABOUT = {
    "protocol": 4,
    "build": "stand-in 1",
    "stacks": [
        {
            "name": stack,
            "package": f"{stack}-proto",
            "version": version,
            "controllers": [
                {"name": text.partition(":")[2], "summary": f"that of {stack}", "own": False}
                for text in INSIDE
                if text.startswith(stack)
            ],
        }
        for stack, version in (("noq", "1.4.0"), ("quinn", "0.11.19"))
    ],
}


def answer(*blobs: bytes) -> None:
    for one in blobs:
        sys.stdout.buffer.write(LENGTH.pack(len(one)) + one)
    sys.stdout.buffer.flush()


def reported(**wording: Any) -> bytes:
    return json.dumps(wording).encode()


def request() -> dict[str, Any]:
    head = sys.stdin.buffer.read(LENGTH.size)
    if len(head) < LENGTH.size:
        sys.exit(0)
    found: dict[str, Any] = json.loads(sys.stdin.buffer.read(*LENGTH.unpack(head)))
    return found


def simulated(spec_json: str) -> str:
    """The spec for the simulator."""
    spec = json.loads(spec_json)
    for flow in spec["flows"]:
        flow["controller"] = INSIDE.get(flow["controller"], flow["controller"])
    return json.dumps(spec)


def refusal(spec_json: str) -> str | None:
    if os.environ.get("STAND_IN") == "hostile refusal":
        return HOSTILE
    spec = json.loads(spec_json)
    if spec["hosts"]["tcp_rmem_bytes"][2] < 1_000_000:
        return "hosts.tcp_rmem: QUIC has no such buffer; leave it out"
    for flow in spec["flows"]:
        text = flow["controller"]
        if ":" in text and text.partition(":")[0] in ("noq", "quinn") and text not in INSIDE:
            return f"{text} is not there; choose one of {', '.join(INSIDE)}"
    return None


def unsupported(spec: dict[str, Any]) -> list[str]:
    """Sentences about the controllers of the flows, and about a setting."""
    wording = []
    for flow in spec["flows"]:
        if flow["controller"] == "quinn:bbr":
            wording.append(QUINNS_PACER)
        elif flow["controller"] not in INSIDE:
            wording += OF_OURS
    return [*dict.fromkeys(wording + [PACING] * spec["hosts"]["pacing"])]


def named(summary: str, spec_json: str) -> bytes:
    """The summary as one of this world."""
    found, spec = json.loads(summary), json.loads(spec_json)
    found["provenance"] |= {"world": "quic", "kernel": "noq-proto 1.4.0, quinn-proto 0.11.19"}
    found["provenance"] |= {"unsupported": ignored} if (ignored := unsupported(spec)) else {}
    found["provenance"] |= json.loads(os.environ.get("STAND_IN_PROVENANCE", "{}"))
    for one, flow in zip(found["flows"], spec["flows"], strict=True):
        one["controller"] = flow["controller"]
    return json.dumps(found).encode()


def run() -> None:
    asked = request()
    misbehave(os.environ.get("STAND_IN", ""))
    answer(reported(progress=0.5))
    # The number of a process is another one each time.
    seed = os.getpid() if os.environ.get("STAND_IN") == "not deterministic" else asked["seed"]
    try:
        summary, flows, links = _native.simulate(simulated(asked["spec"]), seed)
    except _native.ScenarioError as error:
        answer(reported(ok=False, kind="ScenarioError", message=str(error), field=error.field))
        return
    header = json.loads(os.environ.get("STAND_IN_HEADER", "{}"))
    how = os.environ.get("STAND_IN", "")
    found = json.loads(named(summary, asked["spec"]))
    whole = told(how, found, flows, links)
    answer(reported(ok=True, **header), spoilt(how, found), whole)


# Columns of series: their names in a run, those in a table, and how many of the former are one of the latter.
OF_FLOWS = {
    "time_ns": ("time_s", 1e9),
    "cwnd": ("cwnd_segments", 1),
    "ssthresh": ("ssthresh_segments", 1),
    "pacing_bps": ("pacing_bps", 1),
    "inflight": ("inflight_segments", 1),
    "srtt_ns": ("srtt_ms", 1e6),
    "min_rtt_ns": ("min_rtt_ms", 1e6),
    "delivery_bps": ("delivery_bps", 1),
    "bandwidth_bps": ("bandwidth_bps", 1),
    "delivered_bytes": ("delivered_bytes", 1),
    "retransmits": ("retransmits", 1),
}
OF_LINKS = {
    "time_ns": ("time_s", 1e9),
    "queue_bytes": ("queue_bytes", 1),
    "queue_delay_ns": ("queue_delay_ms", 1e6),
    "dropped_packets": ("dropped_packets", 1),
    "early_packets": ("early_packets", 1),
    "marked_packets": ("marked_packets", 1),
}
NARROW = ("cwnd", "ssthresh", "inflight")
NO_SENTENCES: dict[str, list[str]] = {"untrustworthy": [], "unsupported": []}


def told(how: str, summary: dict[str, Any], flow_table: bytes, link_table: bytes) -> bytes:
    """The run of a summary and its tables. Phases and recovery states are absent."""
    import polars as pl  # Most of what a program is asked needs none, and it takes long to load.

    def series(
        table: bytes, of: str, name: str, columns: dict[str, tuple[str, float]]
    ) -> dict[str, list[int]]:
        rows = pl.read_parquet(table).filter(pl.col(of) == name)
        found = {}
        for column, (given, factor) in columns.items():
            values = rows[given] if given in rows.columns else [0] * rows.height
            absent = 2**32 - 1 if column in NARROW else 2**64 - 1
            found[column] = [absent if one is None else round(one * factor) for one in values]
        return found

    flows = [
        {
            "label": one["label"],
            "controller": one["controller"],
            "totals": one,
            "transfers_ns": [],
            "rebuffered_ns": None,
            "series": series(flow_table, "flow", one["label"], OF_FLOWS),
        }
        for one in summary["flows"]
    ]
    for one in flows:
        one["series"] |= dict.fromkeys(("phase", "ca_state"), [255] * len(one["series"]["cwnd"]))
    if how == "uneven":
        flows[0]["series"]["cwnd"] = []
    links = [
        {"name": one["name"], "totals": one, "series": series(link_table, "link", one["name"], OF_LINKS)}
        for one in summary["links"]
    ]
    return reported(provenance=summary["provenance"] | NO_SENTENCES, flows=flows, links=links)


NOWHERE = {
    "world": "quic",
    "seed": 1,
    "spec_json": "",
    "version": "",
    "host": "",
    "kernel": "",
    "sysctls": [],
}
NOTHING = reported(provenance=NOWHERE | {"lateness": None, "untrustworthy": []}, flows=[], links=[])


def spoilt(how: str, found: dict[str, Any]) -> bytes:
    """A summary that looks like one."""
    match how:
        case "untrustworthy":
            found["provenance"]["untrustworthy"] = 5
        case "untrustworthy numbers":
            found["provenance"]["untrustworthy"] = [5]
        case "hostile reason":
            found["provenance"]["untrustworthy"] = [HOSTILE]
        case "no links":
            found["links"] = ["x"]
        case "rtt":
            found["flows"][0]["rtt_ms"] = 5.0
        case "rtt without":
            found["flows"][0]["rtt_ms"] = {"min": 5.0}
        case "nested":
            for _ in range(900):
                found["flows"][0]["more"] = [found["flows"][0].get("more")]
    return reported(**found)


def misbehave(how: str) -> None:
    match how:
        case "ends":
            print("first words\nlast words", file=sys.stderr)
            sys.exit(3)
        case "text":
            print("hello, world; this is no blob")
            sys.exit(0)
        case "list":
            answer(b"[1]")
        case "deep":
            answer(b"[" * 100_000)
        case "errno":
            answer(reported(ok=False, errno="many", message="it is broken in a way of its own"))
            sys.exit(0)
        case "disk":
            answer(reported(ok=False, errno=28, message="No space left on device"))
            sys.exit(0)
        case "disk of nothing":
            answer(reported(ok=False, errno=10**30, message={"a": [1]}))
            sys.exit(0)
        case "far":
            answer(b'{"progress": 1' + b"0" * 400 + b"}")
            sys.exit(0)
        case "far beyond":
            answer(b'{"progress": 1' + b"0" * 5000 + b"}")
            sys.exit(0)
        case "utf-16":
            answer(reported(ok=True), '{"flows": []}'.encode("utf-16"), NOTHING)
            sys.exit(0)
        case "half a pair":
            answer(reported(ok=False, message="\ud800"))
            sys.exit(0)
        case "summary":
            answer(reported(ok=True), b"\xff", NOTHING)
            sys.exit(0)
        case "series":
            answer(reported(ok=True), reported(flows=[]), b"text")
            sys.exit(0)
        case "empty":
            answer(reported(ok=True), reported(provenance={}), NOTHING)
            sys.exit(0)
        case "closes":
            os.close(1)
            time.sleep(600)
        case "fails":
            answer(reported(ok=False, kind="WorldError", message="it is broken; repair it", fix="repair it"))
            sys.exit(0)
        case "hostile message":
            answer(reported(ok=False, kind="WorldError", message=HOSTILE, fix=HOSTILE))
            sys.exit(0)
        case "hostile end":
            sys.exit(HOSTILE)
        case "loud":
            for _ in range(64):
                sys.stderr.write("on_ack\n" * (1 << 17))
            sys.exit("last words")
        case "stalls":
            answer(reported(ok=True))
            time.sleep(600)
        case "drips":
            answer(reported(ok=True))
            os.write(1, LENGTH.pack(1 << 20))
            while True:
                os.write(1, b" ")
                time.sleep(0.01)
        case "large":
            answer(reported(ok=True), reported(flows=[]))
            os.write(1, LENGTH.pack(1 << 33))
            time.sleep(600)
        case "half":
            answer(reported(ok=True))
            sys.exit(0)
        case "hangs":
            answer(reported(progress="much"))
            time.sleep(600)


def play() -> None:
    # They take ten times as long to import as the rest, and only this needs them.
    from fullpipe.scenario.scenario import Alternative
    from fullpipe.simulation import Simulation

    asked = request()
    if os.environ.get("STAND_IN") == "play hangs":
        time.sleep(600)
    alternative = Alternative("played", simulated(asked["spec"]))
    simulation = Simulation(alternative, asked["seed"])
    names = [name for name in dir(_native.FlowNow) if not name.startswith("_")]

    def seen() -> dict[str, Any]:
        flow = {name: getattr(simulation.flows[0], name) for name in names}
        if json.loads(asked["spec"])["flows"][0]["controller"] in INSIDE:
            flow |= {"phase": None, "bandwidth_bps": None}
        return flow

    def looked(
        step_ns: int,
        steps: int,
        until_in: str | None = None,
        until_out: str | None = None,
        until_above: dict[str, Any] | None = None,
    ) -> Any:
        looks: list[dict[str, Any]] = []
        for _ in range(steps):
            simulation.advance(step_ns / 1e9)
            queued = sum(queue.backlog_bytes for queue in simulation.queues)
            looks.append(seen() | {"queued_bytes": queued})
            phase = looks[-1]["phase"]
            if until_in in (phase or "",) or until_out not in (None, phase) or not simulation.running:
                break
            if until_above is not None and (looks[-1][until_above["quantity"]] or 0) > until_above["amount"]:
                break
        columns = {name: [look[name] for look in looks] for name in (*names, "queued_bytes")}
        return columns | {name: [[word, 1] for word in columns[name]] for name in ("phase", "state")}

    more: dict[str, Any] = {}
    while True:
        queues = [
            {name: getattr(queue, name) for name in ("name", "backlog_bytes", "dropped_packets")}
            for queue in simulation.queues
        ]
        state = {"running": simulation.running, "now_ns": round(simulation.now * 1e9), "queues": queues}
        state |= {"flow": seen()} | more | json.loads(os.environ.get("STAND_IN_STATE", "{}"))
        answer(reported(ok=True, **state))
        more = {}
        step = request()
        if "look" in step:
            more = {"looks": looked(**step["look"]) | json.loads(os.environ.get("STAND_IN_LOOKS", "{}"))}
        elif "change" in step:
            simulation.path.change(**step["change"])
        else:
            (summary, flows, links), _ = simulation._native.finish()
            last = named(summary, asked["spec"])
            answer(reported(ok=True), last, told("", json.loads(last), flows, links))
            return


match sys.argv[1:]:
    case ["about"] if os.environ.get("STAND_IN") == "hostile about":
        sys.exit(HOSTILE)
    case ["about"] if os.environ.get("STAND_IN") == "hostile protocol":
        print(json.dumps({"protocol": HOSTILE}))
    case ["about"] if os.environ.get("STAND_IN") == "hostile names":
        own = {"name": "red", "summary": HOSTILE}
        print(json.dumps(ABOUT | {"stacks": [{"name": "noq", "version": HOSTILE, "controllers": [own]}]}))
    case ["about"]:
        print(json.dumps(ABOUT | json.loads(os.environ.get("STAND_IN_ABOUT", "{}"))))
    case ["refuses"]:
        answer(reported(refused=refusal(request()["spec"])))
    case ["run"]:
        run()
    case ["play"]:
        play()
    case _:
        sys.exit("expected about, refuses, run or play")
