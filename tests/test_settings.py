"""Every setting of a scenario does something, or an error or a note says that it does nothing."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from conftest import filled_once
from fullpipe import ScenarioError, _native, schema
from fullpipe.scenario.scenario import Scenario, from_document

pytestmark = pytest.mark.long  # Thousands of runs.

# Values that differ from the default, by the end of a setting's place; the longest end counts.
VALUES: dict[str, list[Any]] = {
    "after": [],
    "amplitude": ["3 ms"],
    "at": ["300 ms"],
    "bad_to_good": ["30 %"],
    "before": [],
    "buffer": ["3 packets", "9 KB"],
    "burst": ["40 KB"],
    "bursts.every": ["50 ms"],
    "bursts.size": ["60 KB"],
    "changes": [],
    "chunk": ["200 ms"],
    "client": ["iperf3 -c {server}"],
    "collisions": ["30 %"],
    "compare": [["cubic", "reno"]],
    "controller": ["reno", "dctcp"],
    "count": [3],
    "delay": ["9 ms"],
    "deliveries": ["slow.trace"],
    "demand": ["1 ms"],
    "direction": ["reverse"],
    "duration": ["700 ms"],
    "ecn": [True],
    "every": ["7 ms"],
    "good_to_bad": ["3 %"],
    "gro": ["3 ms"],
    "gso_max_segs": [1, 3],
    "interval": ["20 ms"],
    "jitter": ["4 ms"],
    "jitter_reorders": [True],
    "label": ["mine"],
    "locked": [["cwnd"], ["rtt"]],
    "loss": ["2 %"],
    "loss_bad": ["50 %"],
    "loss_good": ["2 %"],
    "max_cwnd": ["5 packets"],
    "media.deadline": ["1 ms"],
    "media.every": ["20 ms"],
    "media.frame": ["20 KB"],
    "merge": [True],
    "metrics.cwnd": [5],
    "metrics.rtt": ["300 ms"],
    "metrics.rttvar": ["200 ms"],
    "model": ["linux"],
    "mtu": [1000],
    "name": ["mine"],
    "pacing": [True],
    "pause": ["70 ms"],
    "policer": ["700 kbit/s, 40 KB"],
    "probability": ["2 %"],
    "queue": ["codel", "codel:ecn=off", "fq_codel", "pie:ecn=on", "red", "step", "dualpi2"],
    "rate": ["700 kbit/s"],
    "rates": [["1 Mbit/s", "3 Mbit/s"]],
    "receiver": ["hides_loss", "splits_acks", "hides_ce"],
    "record.flows": [False],
    "record.series": [False],
    "reorder": ["2 %, 8 ms"],
    "reordering": [20],
    "reorders": [True],
    "review": ["5 ms"],
    "router": ["tbf"],
    "rtt": ["33 ms"],
    "save_ssthresh": [True],
    "seed": [7],
    "sender": ["server"],
    "server": ["iperf3 -s"],
    "size": ["100 KB"],
    "ssthresh": [4],
    "stagger": ["100 ms"],
    "start": ["200 ms"],
    "start_jitter": ["100 ms"],
    "stop": ["500 ms", "1 s", "2 s"],
    "tcp_memory": ["linux", "ubuntu-18.10"],
    "tcp_rmem": [["4096", "20000", "60000"]],
    "tcp_wmem": [["4096", "20000", "60000"]],
    "transfers.pause": ["70 ms"],
    "unit": ["burst"],
    "video.buffer": ["600 ms"],
    "video.rate": ["3 Mbit/s"],
}
ELEMENTS: dict[str, dict[str, Any]] = {
    "link": {"rate": "8 Mbit/s", "buffer": "20 KB"},
    "delivery_trace": {"deliveries": "fast.trace", "buffer": "20 KB"},
    "cellular": {
        "rates": ["2 Mbit/s", "6 Mbit/s"],
        "review": "20 ms",
        "demand": "4 ms",
        "buffer": "20 KB",
    },
    "token_bucket": {"rate": "8 Mbit/s", "burst": "3 KB", "buffer": "20 KB"},
    "policer": {"rate": "8 Mbit/s", "burst": "20 KB"},
    "delay": {"delay": "3 ms"},
    "loss": {"probability": "1 %"},
    "gilbert_elliott": {"good_to_bad": "1 %", "bad_to_good": "50 %"},
    "jitter": {"amplitude": "5 ms"},
    "wifi": {"collisions": "5 %"},
    "aggregate": {"every": "5 ms"},
    "duplicate": {"probability": "1 %"},
    "reorder": {"probability": "1 %", "delay": "8 ms"},
    "bleach": {},
    "ecn_blackhole": {},
}
# What acknowledgements need is smaller.
OF_ACKS = {
    "link": {"rate": "150 kbit/s", "buffer": "2 KB"},
    "delivery_trace": {"deliveries": "acks.trace", "buffer": "2 KB"},
    "cellular": {**ELEMENTS["cellular"], "rates": ["60 kbit/s", "120 kbit/s"], "buffer": "2 KB"},
    "token_bucket": {"rate": "150 kbit/s", "burst": "1500 B", "buffer": "2 KB"},
    "policer": {"rate": "150 kbit/s", "burst": "1500 B"},
}
OF_ACKS_VALUES = {
    "buffer": ["1500 B"],
    "rate": ["90 kbit/s"],
    "rates": [["30 kbit/s", "90 kbit/s"]],
    "burst": ["3 KB"],
    "deliveries": ["slow.trace"],
    "loss": ["20 %"],
    "policer": ["90 kbit/s, 1500 B"],
    "probability": ["20 %"],
    "reorder": ["20 %, 8 ms"],
}

# What a new item of a list needs, by the table or the kind of element that has the list.
ITEMS: dict[str, dict[str, Any]] = {
    "path": {"at": "500 ms", "rate": "5 Mbit/s"},
    "reverse": {"at": "500 ms", "loss": "10 %"},
    "<link>": {"at": "500 ms", "rate": "100 kbit/s"},
    "<delay>": {"at": "500 ms", "delay": "20 ms"},
    "<loss>": {"at": "500 ms", "probability": "10 %"},
    "[]": {"size": "20 KB"},
}

PATH = {"rate": "10 Mbit/s", "rtt": "20 ms", "buffer": "30 KB"}
PLAIN = {"duration": "1 s", "path": PATH, "flows": [{"controller": "cubic"}]}
MERGED = {"kind": "aggregate", "every": "5 ms", "merge": True}
VIDEO = {"rate": "2 Mbit/s", "chunk": "100 ms", "buffer": "300 ms"}


def _with(**others: Any) -> dict[str, Any]:
    made: dict[str, Any] = copy.deepcopy(PLAIN)
    for key, value in others.items():
        made[key] = {**PATH, **value} if key == "path" else value
    return made


SITUATIONS: dict[str, dict[str, Any]] = {
    "a cubic flow": PLAIN,
    "a bbr flow": _with(flows=[{"controller": "bbr1"}]),
    "compared flows": {**_with(compare=["bbr1", "cubic"]), "flows": [{}]},
    "linux hosts": _with(hosts={"model": "linux"}),
    "ecn": _with(hosts={"ecn": True}, path={"queue": "codel"}),
    "dctcp": _with(flows=[{"controller": "dctcp"}], path={"queue": "step"}),
    "codel without ecn": _with(path={"queue": "codel"}),
    "loss": _with(path={"loss": "1 %"}),
    "single packets": _with(hosts={"gso_max_segs": 1}),
    "a token bucket": _with(path={"burst": "30 KB"}),
    "a router": _with(path={"burst": "30 KB", "router": "tbf"}),
    "deliveries": {**PLAIN, "path": {"deliveries": "fast.trace", "rtt": "20 ms", "buffer": "30 KB"}},
    "a change": _with(path={"changes": [{"at": "500 ms", "rate": "5 Mbit/s"}]}),
    "a slow interface": _with(path={"before": [{"kind": "link", "rate": "8 Mbit/s", "buffer": "20 KB"}]}),
    "a link back": _with(path={"reverse": {"rate": "150 kbit/s", "buffer": "2 KB"}}),
    "jitter back": _with(path={"reverse": {"jitter": "3 ms"}}),
    "loss back": _with(seed=2, path={"reverse": {"loss": "5 %"}}),
    "merged data": _with(path={"before": [MERGED], "loss": "1 %", "unit": "burst"}),
    "requests": _with(flows=[{"controller": "cubic", "requests": {"size": "50 KB"}}]),
    "bursts": _with(flows=[{"controller": "cubic", "bursts": {"size": "50 KB", "every": "60 ms"}}]),
    "video": _with(flows=[{"controller": "cubic", "video": VIDEO}]),
    "transfers": _with(flows=[{"controller": "cubic", "transfers": [{"size": "200 KB"}, {"size": "3 MB"}]}]),
    "media": _with(flows=[{"media": {"frame": "9 kB", "every": "33 ms"}}, {"controller": "cubic"}]),
    "a kept window": _with(hosts={"metrics": {"cwnd": 5}}),
    "socket buffers": _with(hosts={"tcp_rmem": [4096, 90_000, 900_000], "tcp_wmem": [4096, 90_000, 900_000]}),
}
# Settings that a run may not come to depend on: each has an effect in some situation, but not in all.
SOMETIMES = {
    ("<cellular>", "demand"),
    ("<cellular>", "review"),
    ("<duplicate>", "probability"),
    ("<reorder>", "delay"),
    ("hosts", "gso_max_segs"),
    ("hosts", "tcp_memory"),
    ("hosts", "tcp_wmem"),
    ("[]", "max_cwnd"),
    ("[]", "receiver"),
    ("<policer>", "burst"),
    ("<policer>", "rate"),
    ("<token_bucket>", "burst"),
    ("<delivery_trace>", "unit"),
    ("path", "unit"),
    ("[]", "ecn"),
    ("buffer",),
    ("queue",),
}
# Situations in which a path is often idle: only settings of flows are looked at there.
IDLE = {"requests", "bursts", "video", "transfers"}


def leaves() -> list[tuple[str, ...]]:
    """The place of every setting in the schema: keys, `[]` for an item of a list, and kinds of elements."""
    whole = schema()
    found: dict[tuple[str, ...], None] = {}

    def resolved(part: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in part:
            part = whole["$defs"][part["$ref"].rpartition("/")[2]]
        return part

    def walk(part: dict[str, Any], place: tuple[str, ...]) -> None:
        part = resolved(part)
        if "properties" in part:
            for key, inner in part["properties"].items():
                if key != "kind":
                    walk(inner, (*place, key))
            return
        options = [resolved(one) for one in part.get("anyOf", []) + part.get("oneOf", [])]
        tables = [one for one in options if "properties" in one or "items" in one]
        for one in tables:
            kind = one.get("properties", {}).get("kind", {}).get("const")
            walk(one, place if kind is None else (*place, f"<{kind}>"))
        items = resolved(part["items"]) if "items" in part else {}
        kinds = [resolved(one) for one in items.get("oneOf", [])]
        if any("properties" in one for one in [items, *kinds]):
            walk(items, (*place, "[]"))
        elif not tables:
            found[place] = None

    walk(whole, ())
    return list(found)


def with_setting(
    document: dict[str, Any], place: tuple[str, ...], value: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The document with the tables that the setting is in, without it and with it."""
    made = copy.deepcopy(document)
    at: Any = made
    for index, key in enumerate(place[:-1]):
        after = place[index + 1]
        if key == "[]":
            if not after.startswith("<"):
                if not at:
                    at.append(dict(ITEMS[place[index - 2]]))
                at = at[0]
        elif key.startswith("<"):
            kind = key[1:-1]
            needs = {**ELEMENTS[kind], **(OF_ACKS.get(kind, {}) if "reverse" in place else {})}
            at.append({"kind": kind, **copy.deepcopy(needs)})
            at = at[-1]
        else:
            at = at.setdefault(key, [] if after == "[]" else {})
    without = copy.deepcopy(made)
    at[place[-1]] = value
    return without, made


def values(place: tuple[str, ...]) -> list[Any]:
    if "reverse" in place and place[-1] in OF_ACKS_VALUES:
        return OF_ACKS_VALUES[place[-1]]
    named = [key for key in place if key != "[]" and not key.startswith("<")]
    ends = [".".join(named[-count:]) for count in (2, 1)]
    return next(VALUES[end] for end in ends if end in VALUES)


def fields(place: tuple[str, ...]) -> str:
    """The place as errors and notes begin with it: `path.after`."""
    return ".".join(place[: place.index("[]")] if "[]" in place else place)


class Runs:
    """What settings do. A scenario runs once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.known: dict[str, list[Any]] = {}

    def effect(self, document: dict[str, Any], place: tuple[str, ...], value: Any) -> str:
        """`error`, `note`, `result` for another result, or `none`."""
        without, made = with_setting(document, place, value)
        try:
            scenario = from_document(made, base_dir=self.folder)
        except ScenarioError:
            return "error"
        # Of an element that does nothing, the note may be the same whatever its settings are.
        if any(fields(place) in note and "no effect" in note for note in scenario.notes):
            return "note"
        try:
            before = from_document(without, base_dir=self.folder)
        except ScenarioError:
            return "result"
        return "none" if self.of(without, before) == self.of(made, scenario) else "result"

    def of(self, document: dict[str, Any], scenario: Scenario) -> list[Any]:
        """What the runs give: their names, measures and series."""
        key = json.dumps(document, sort_keys=True)
        if key not in self.known:
            found: list[Any] = [scenario.name]
            for one in scenario.alternatives:
                summary, *series = _native.simulate(one.spec_json, scenario.seed)
                measures = json.loads(summary)
                # Records have the scenario itself, too: tables behind the data.
                del measures["provenance"]
                tables = [part.split(b"fullpipe.provenance") for part in series]
                found += [one.label, measures, *(data for data, _ in tables)]
            self.known[key] = found
        return self.known[key]


Effects = dict[tuple[tuple[str, ...], str], dict[str, str]]


def find_effects(folder: Path) -> None:
    """Writes what each value of each setting does in each situation."""
    (folder / "fast.trace").write_text("".join(f"{ms}\n" for ms in range(1, 20) if ms % 4))
    (folder / "slow.trace").write_text("9\n17\n30\n")
    (folder / "acks.trace").write_text("30\n60\n")
    runs = Runs(folder)
    found: list[tuple[tuple[str, ...], str, dict[str, str]]] = []
    for place in leaves():
        for value in values(place):
            by_situation = {
                name: runs.effect(document, place, value)
                for name, document in SITUATIONS.items()
                if with_setting(document, place, value)[0] != with_setting(document, place, value)[1]
            }
            found.append((place, str(value), by_situation))
    (folder / "effects.json").write_text(json.dumps(found))


@pytest.fixture(scope="module")
def effects(tmp_path_factory: pytest.TempPathFactory) -> Effects:
    folder = filled_once(tmp_path_factory, "effects", find_effects)
    found = json.loads((folder / "effects.json").read_text())
    return {(tuple(place), value): by for place, value, by in found}


def test_setting_has_effect_or_is_reported(effects: Effects) -> None:
    silent = {
        (".".join(place), value): [
            name
            for name, effect in found.items()
            if effect == "none" and (place[0] == "flows" or name not in IDLE)
        ]
        for (place, value), found in effects.items()
        if not any(place[-len(end) :] == end for end in SOMETIMES)
    }
    assert {where: names for where, names in silent.items() if names} == {}


def test_occasional_setting_has_effect_somewhere(effects: Effects) -> None:
    for end in SOMETIMES:
        found = [by.values() for (place, _), by in effects.items() if place[-len(end) :] == end]
        assert any("result" in by for by in found), end


def test_schema_enumeration_reaches_all_values() -> None:
    found = leaves()
    for place in (
        "path.unit",
        "hosts.metrics.locked",
        "flows.[].video.chunk",
        "path.reverse.changes.[].loss",
    ):
        assert tuple(place.split(".")) in found
    assert ("path", "after", "[]", "<gilbert_elliott>", "unit") in found
