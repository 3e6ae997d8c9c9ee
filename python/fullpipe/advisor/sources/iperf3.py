"""The results of `iperf3 -J`, or of `--json-stream`: what the tests measured of their paths.

A file may have several results, one after the other, with other text around them: `--logfile` appends, and a
server writes one for each test. The rate is what arrived. It is not the path's rate if something else limited
the sender: `-b` or `--fq-rate`, a window that was full, or too short a test.

The round-trip time is the least that a sender on Linux sampled (iperf3 3.1 or newer). Samples are smoothed,
and the test itself fills the queue: the empty path's round-trip time is at most that (iperf3's
src/iperf_api.c sets `stream_min_rtt` from `tcpi_rtt`).
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fullpipe.advisor.question import shown
from fullpipe.advisor.sources.source import MOST_PATHS, Path, Paths, check_size, too_many
from fullpipe.errors import mistake

_EXPECTED = "JSON as `iperf3 -J` writes it"
_AGAIN = "run iperf3 again"
# Where results are looked for, to tell whose file it is.
_HEAD = 65_536
# iperf3 begins each result, and each event of a stream, on a line of its own. `jq -s` makes a list of them.
_FIRST = re.compile(r"\s*[\[{]")
_BEHIND = re.compile(r"\s*\{")
_NEXT = re.compile(r"^\{", re.MULTILINE)
_RESULT = re.compile(r'"(?:connected|test_start)"|iperf')
_EVENT = re.compile(r'\A\s*\{\s*"event"\s*:\s*"(?:start|interval|end|error|server_output_\w+)"')
_TABLE = re.compile(r"^\[ *ID\] *Interval ", re.MULTILINE)
# More pieces that are no JSON are not those of an interrupted test.
_MOST_DAMAGED = 10
# A sender is limited by its target, or its window, from this part of it on.
_LIMITED = 0.75
# Fewer segments or round trips show how a connection starts, and below the last number that counts much.
_LEAST_SEGMENTS, _LEAST_ROUNDS, _FEW_ROUNDS = 100, 10, 50
# Without a round-trip time, a shorter test may be such a start.
_LEAST_S = 1.0
_MSS = 1448.0
# As many tests without a path are listed, and so much of a host's name and of iperf3's own errors.
_MOST_REFUSED, _MOST_HOST, _MOST_ERROR = 20, 60, 120
# Below this size of segments, headers of 52 bytes take a part of the rate that is worth a note.
_HEADERS, _SMALL_MSS = 52, 1000


@dataclass(frozen=True)
class _Way:
    """One direction of a test."""

    received: Mapping[str, Any]
    sent: Mapping[str, Any]
    # Of each connection, what its sender measured; empty where that is the other host.
    senders: tuple[Mapping[str, Any], ...]
    here: bool  # Whether the sender is the host that wrote the result.

    @property
    def rtt_us(self) -> float | None:
        """The least round-trip time that a sender sampled."""
        found = [value for one in self.senders if (value := _number(one.get("min_rtt"))) and value > 0]
        return min(found, default=None)


def is_one(text: str) -> bool:
    """Whether it has what iperf3 writes, as JSON or, to be refused, as a table."""
    head = text[: 4 * _HEAD]
    begin = _begin(head)
    if begin is None:
        return _TABLE.search(head) is not None
    head = head[begin.start() : begin.start() + _HEAD]
    return ('"start"' in head and _RESULT.search(head) is not None) or _EVENT.match(head) is not None


def read(text: str, file: str) -> Paths:
    """A path for each direction of each test over TCP. Raises `ScenarioError` if there is none."""
    if _begin(text) is None:
        raise mistake("from", file, f"{_EXPECTED}; it is a table", "run iperf3 with -J")
    check_size(text, file)
    notes: list[str] = []
    # Each with the number of its test in the file.
    paths: list[tuple[int, Path]] = []
    unusable: list[str] = []
    fixes: list[str] = []
    for number, result in enumerate(_results(text, file, notes), 1):
        refused = _refused(result)
        if refused is None:
            paths += ((number, path) for path in _paths(result))
        elif len(unusable) < _MOST_REFUSED:
            unusable.append(f"test {number}: {refused[0]}")
            fixes.append(refused[1])
        if len(paths) > MOST_PATHS:
            raise too_many(file)
    if not paths:
        if not unusable:
            raise mistake("from", file, f"{_EXPECTED}; there is no result in it", _AGAIN)
        raise mistake("from", file, f"a test of TCP; {unusable[0]}", fixes[0])
    return Paths(_named(paths), [*notes, *unusable])


def _begin(text: str) -> re.Match[str] | None:
    """Where JSON begins; None if there is none. A table begins with a bracket, too."""
    first = None if _TABLE.match(text) else _FIRST.match(text)
    return first or _NEXT.search(text)


def _results(text: str, file: str, notes: list[str]) -> Iterator[dict[str, Any]]:
    """The results of a text; the events of a stream are put together. Adds notes on what is none."""
    open_: dict[str, Any] | None = None
    last: Any = None
    for value in _documents(text, file, notes):
        if not isinstance(value, dict):
            continue
        event, data = value.get("event"), value.get("data")
        if event == "start" or "start" in value:
            if open_ is not None:
                yield open_
            open_ = None
        if event is None:
            # `--json-stream-full-output` writes the whole result behind its events.
            if "start" in value and (not value["start"] or value["start"] != last):
                yield value
            continue
        if event != "interval":
            open_ = {**(open_ or {}), str(event): data}
        if event == "end":
            last = (open_ or {}).get("start")
            yield open_ or {}
            open_ = None
    if open_ is not None:
        yield open_


def _documents(text: str, file: str, notes: list[str]) -> Iterator[Any]:
    """The JSON values of a text. What is around them is a note; raises `ScenarioError` if all are damaged."""
    decoder = json.JSONDecoder()
    at, whole, around = 0, 0, False
    damaged: list[int] = []
    begin = _begin(text)
    while begin is not None and len(damaged) < _MOST_DAMAGED:
        start = begin.end() - 1
        around = around or bool(text[at:start].strip())
        try:
            value, at = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            damaged.append(start)
            at = len(text)
            begin = _NEXT.search(text, start + 1)
            if begin is not None:
                at = begin.start()
            continue
        whole += 1
        yield from value if isinstance(value, list) else [value]
        begin = _BEHIND.match(text, at) or _NEXT.search(text, at)
    if damaged:
        place = f"line {text.count(chr(10), 0, damaged[0]) + 1}"
        if not whole:
            raise mistake("from", file, f"{_EXPECTED}; it is damaged or cut off ({place})", _AGAIN)
        notes.append(f"a result that is damaged or cut off ({place})")
    if around or text[at:].strip():
        notes.append("text around the results, which is no JSON")


def _refused(result: Mapping[str, Any]) -> tuple[str, str] | None:
    """Why a result has no path at all, and the fix; None if it has one."""
    end = result.get("end")
    protocol = _at(result, "start", "test_start", "protocol")
    streams = _list(_at(end, "streams"))
    if any(_at(one, "udp") is not None for one in streams):
        protocol = "UDP"
    if isinstance(protocol, str) and protocol != "TCP":
        why = f"it is over {protocol[:20]}, whose rate is the one that the sender was set to"
        return why, "run `iperf3 -J` over TCP, without -u"
    error = result.get("error")
    if _at(end, "sum_received") is None and isinstance(error, str):
        return f"it did not end; iperf3 reports {error[:_MOST_ERROR]!r}", f"correct that, and {_AGAIN}"
    if end is None:
        return "it has no end", f"{_AGAIN}, to its end"
    if _number(_at(end, "sum_received", "bits_per_second")) is None:
        return "it has no end.sum_received.bits_per_second", _AGAIN
    return None


def _paths(result: Mapping[str, Any]) -> Iterator[Path]:
    """The path of each direction."""
    ways = _ways(result)
    host = _text(_at(result, "title")) or _host(result)
    for label, way in ways.items():
        says, caveats = {}, {}
        rate = _number(way.received.get("bits_per_second")) or 0.0
        if (why := _no_rate(result, way, rate)) is None:
            says["rate"] = f"{rate:.0f} bit/s"
        else:
            caveats["rate"] = why
        rtt_us = way.rtt_us
        if rtt_us is not None:
            says["rtt"] = f"{rtt_us:.0f} us"
            caveats["rtt"] = (
                f"rtt {shown('rtt', rtt_us / 1e3, 3)} is iperf3's least smoothed sample during the test, "
                "which fills the queue: the empty path's is at most that; measure it with ping and give --rtt"
            )
        else:
            caveats["rtt"] = _no_rtt(result, way)
        notes = tuple(_notes(result, way))
        yield Path(f"{host}{label}", says, 1.0, notes, (), caveats, _doubts(result, way, rate))


def _no_rtt(result: Mapping[str, Any], way: _Way) -> str:
    """Why there is no round-trip time, which only a sender has."""
    if way.here:
        return "the result has no round-trip time of a sender on Linux"
    other = "the other host sent, and has the round-trip time"
    if _at(result, "start", "accepted_connection") is not None:
        return f"{other}: use the client's result"
    return f"{other}: add --get-server-output (and -J on the server), or run the test there"


def _ways(result: Mapping[str, Any]) -> dict[str, _Way]:
    """The directions of a test, by what is added to its name."""
    end = _at(result, "end")
    server = _at(result, "start", "accepted_connection") is not None
    reverse = bool(_at(result, "start", "test_start", "reverse"))
    found = {}
    ends = (("sum_received", "sum_sent"), ("sum_received_bidir_reverse", "sum_sent_bidir_reverse"))
    both = all(_at(end, name) is not None for name, _ in ends)
    for received, sent in ends[: 1 + both]:
        sent_sum = _dict(_at(end, sent))
        here = sent_sum.get("sender")
        if not isinstance(here, bool):
            # Older versions do not have it: a client sends, unless it has -R.
            here = server == reverse
        streams = [
            sender
            for one in _list(_at(end, "streams"))
            if (sender := _dict(_at(one, "sender"))).get("sender", here) is here
        ]
        if not here:
            # With --get-server-output, the result contains the other host's.
            others = _list(_at(result, "server_output_json", "end", "streams"))
            streams = [one for other in others if (one := _dict(_at(other, "sender"))).get("sender") is True]
        label = "" if not both else ", from here" if here else ", to here"
        found[label] = _Way(_dict(_at(end, received)), sent_sum, tuple(streams), here)
    return found


def _no_rate(result: Mapping[str, Any], way: _Way, rate: float) -> str | None:
    """Why what arrived does not show the path's rate; None if it does."""
    error = result.get("error")
    if isinstance(error, str):
        return f"the test did not end; iperf3 reports {error[:_MOST_ERROR]!r}"
    if rate <= 0:
        if _number(way.sent.get("bits_per_second")):
            return "the result of a sender has no count of what arrived; the other host's has it"
        return "nothing arrived"
    flows = _flows(result, way)
    if (target := _target(result)) and rate >= _LIMITED * target[1] * flows:
        each = "" if flows == 1 else f" each of {flows} connections"
        return f"{target[0]} limited{each or ' the sender'} to {shown('rate', target[1], 3)}"
    return _too_short(result, way, flows) or _window_full(result, way)


def _flows(result: Mapping[str, Any], way: _Way) -> int:
    number = _number(_at(result, "start", "test_start", "num_streams"))
    return int(number) if number and 1 <= number <= 1000 else max(1, len(way.senders))


def _target(result: Mapping[str, Any]) -> tuple[str, float] | None:
    """The option that limits each connection's rate, and that rate."""
    start = _dict(result.get("start"))
    test = _dict(start.get("test_start"))
    for option, names in (("-b", ("target_bitrate",)), ("--fq-rate", ("fq_rate", "fqrate"))):
        found = [value for one in (start, test) for name in names if (value := _number(one.get(name)))]
        if found and max(found) > 0:
            return option, max(found)
    return None


def _too_short(result: Mapping[str, Any], way: _Way, flows: int) -> str | None:
    received = _number(way.received.get("bytes"))
    mss = _mss(result)
    if received is not None and received < _LEAST_SEGMENTS * mss * flows:
        few = f"only {received / 1e3:.3g} KB arrived"
        return f"{few}, and fewer than {_LEAST_SEGMENTS} segments a connection show only how it starts"
    rounds, seconds = _rounds(way), _number(way.received.get("seconds"))
    if rounds is not None and rounds < _LEAST_ROUNDS:
        return f"the test lasted {rounds:.2g} round trips, which show only how a connection starts"
    if rounds is None and seconds is not None and seconds < _LEAST_S:
        return f"the test lasted {seconds:.2g} s, and without a round-trip time that may be only its start"
    return None


def _rounds(way: _Way) -> float | None:
    """How many round trips the test lasted."""
    seconds, rtt_us = _number(way.received.get("seconds")), way.rtt_us
    return None if seconds is None or rtt_us is None else seconds * 1e6 / rtt_us


def _window_full(result: Mapping[str, Any], way: _Way) -> str | None:
    """Whether all connections filled their windows, and no queue grew: then the path had room for more."""
    asked = _number(_at(result, "start", "sock_bufsize")) or 0.0
    if asked and way.rtt_us is None:
        window = shown("buffer", asked, 3)
        return f"-w limited the window to {window}; without a round-trip time, the effect is unknown"
    windows = []
    for one in way.senders:
        rate, rtt_us = _number(one.get("bits_per_second")), _number(one.get("mean_rtt"))
        limits = [value for value in (asked, _number(one.get("max_snd_wnd"))) if value]
        least_us = _number(one.get("min_rtt"))
        if not (rate and rtt_us and least_us and limits) or rtt_us > 2 * least_us:
            return None
        if rate * rtt_us / 8e6 < _LIMITED * min(limits):
            return None
        windows.append(min(limits))
    if not windows:
        return None
    by = "-w" if asked and asked <= min(windows) else "the receiver"
    return f"{by} limited the window to {shown('buffer', min(windows), 3)}, which was full"


def _notes(result: Mapping[str, Any], way: _Way) -> Iterator[str]:
    resent = _number(way.sent.get("retransmits"))
    if resent is not None:
        controller = _text(_at(result, "end", "sender_tcp_congestion"))
        by = f" by {controller[:20]}" if controller else ""
        yield f"{resent:.0f} segments were sent again{by}"


def _doubts(result: Mapping[str, Any], way: _Way, rate: float) -> dict[str, tuple[str, ...]]:
    """Notes about the rate; round trips are those that the file has."""
    flows, rounds, mss = _flows(result, way), _rounds(way), _mss(result)
    found: dict[str, tuple[str, ...]] = {}
    if rounds is not None and _LEAST_ROUNDS <= rounds < _FEW_ROUNDS:
        found[f"the test lasted only {rounds:.0f} round trips: the path may be faster"] = ("rate", "rtt")
    if (target := _target(result)) and 0 < rate < _LIMITED * target[1] * flows:
        asked = shown("rate", target[1], 3)
        found[f"{target[0]} {asked} was not reached, so that it did not limit the rate"] = ("rate",)
    if mss < _SMALL_MSS:
        part = 100 * _HEADERS / (mss + _HEADERS)
        found[f"segments of {mss:.0f} bytes: headers take {part:.0f} % of the path's rate"] = ("rate",)
    return found


def _mss(result: Mapping[str, Any]) -> float:
    start = _dict(result.get("start"))
    found = [value for name in ("tcp_mss", "tcp_mss_default") if (value := _number(start.get(name)))]
    return found[0] if found else _MSS


def _host(result: Mapping[str, Any]) -> str:
    places = (("connecting_to", "host"), ("accepted_connection", "host"))
    names = (_text(_at(result, "start", *place)) for place in places)
    return next((name for name in names if name), "iperf3")


def _named(paths: list[tuple[int, Path]]) -> list[Path]:
    """The paths, each with a name of its own: where several have one, with the number of the test."""
    several = Counter(path.name for _, path in paths)
    return [
        path if several[path.name] == 1 else replace(path, name=f"{path.name[:_MOST_HOST]}, test {number}")
        for number, path in paths
    ]


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # A whole number may be larger than any float.
    return float(value) if abs(value) < 1e18 and math.isfinite(value) else None
