"""What Prometheus knows: an answer of its API, or an exporter's page.

Answers are those of `/api/v1/query` and `/api/v1/query_range` (`resultType` `vector` or `matrix`), one or
several in a file; pages are in the text format that Prometheus and OpenMetrics scrape. A metric's name says
what it is, by its end; other metrics are a note:

| name ends with | quantity | of its samples |
|---|---|---|
| `delivery_rate_*`, `bandwidth_*`, `download_*`, `upload_*`, `path_rate_*` | the rate | the highest |
| `rtt_+`, `ping_latency_+`, and `probe_icmp_duration_+` with `phase="rtt"` | the RTT | the lowest |
| `jitter_+`, `jitter_latency_+` | jitter | the median |
| `loss_ratio`, `loss_percent` | random loss | the median |
| `queue_limit_bytes`, `buffer_bytes` | the buffer | the lowest |
| the whole name `tcp_rtt`, of prometheus_ss_exporter, in milliseconds | the RTT | the lowest |

`*` is `bits_per_second` or `bytes_per_second`; `+` is `seconds`, `milliseconds` or `microseconds`.

Series with the same value of the first of these labels that they have are one path: `path`, `peer`,
`destination`, `dst`, `remote`, `target`, `flow`, `network`, `instance`. Those that have none are one path,
too. A path weighs as many as it has series of the quantity that has most.
"""

import io
import math
import re
import statistics
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fullpipe.advisor.question import written
from fullpipe.advisor.sources.source import MOST_PATHS, Path, Paths, documents, too_many
from fullpipe.errors import mistake
from fullpipe.text import counted, joined, shown

_LABELS = ("path", "peer", "destination", "dst", "remote", "target", "flow", "network", "instance")
_TIMES = {"seconds": 1e3, "milliseconds": 1.0, "microseconds": 1e-3}
_RATES = {"bits_per_second": 1.0, "bytes_per_second": 8.0}
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*,?')
_ESCAPE = re.compile(r'\\[n"\\]')
_ESCAPES = {"\\n": "\n", '\\"': '"', "\\\\": "\\"}
_FLOW = re.compile(r"\(SRC#[^)]*\)\(DST#([^|)]*)\|[^)]*\)")
# Longer lines are not of an exporter.
_LONGEST, _MOST_DIGITS = 16_384, 40
# So many names of metrics that are not used are listed, and so much of each.
_MOST_LISTED, _MOST_NAME = 5, 40
_EXPECTED = "an answer of Prometheus' /api/v1/query or /api/v1/query_range"


@dataclass(frozen=True)
class _Quantity:
    """A field of a question that samples give."""

    name: str
    pick: Callable[[list[float]], float]


_RATE = _Quantity("rate", max)
_RTT = _Quantity("rtt", min)
_JITTER = _Quantity("jitter", statistics.median)
_LOSS = _Quantity("loss", statistics.median)
_BUFFER = _Quantity("buffer", min)


def _endings() -> Iterator[tuple[str, _Quantity, float]]:
    """The ends of names, what they are, and the factor to the unit of `Numbers`."""
    for unit, factor in _RATES.items():
        for name in ("delivery_rate", "bandwidth", "download", "upload", "path_rate"):
            yield f"{name}_{unit}", _RATE, factor
    for unit, to_ms in _TIMES.items():
        for name in ("rtt", "ping_latency", "probe_icmp_duration"):
            yield f"{name}_{unit}", _RTT, to_ms
        for name in ("jitter", "jitter_latency"):
            yield f"{name}_{unit}", _JITTER, to_ms
    yield "loss_ratio", _LOSS, 1.0
    yield "loss_percent", _LOSS, 0.01
    yield "queue_limit_bytes", _BUFFER, 1.0
    yield "buffer_bytes", _BUFFER, 1.0


_ENDINGS = tuple(_endings())


@dataclass
class _Found:
    """What the series of one path say."""

    # One of each series that has a number.
    values: dict[_Quantity, list[float]] = field(default_factory=dict)
    broken: int = 0  # Samples that are not numbers from 0.


def is_one(text: str) -> bool:
    """Whether it looks like an answer of the API or an exporter's page."""
    head = text[:65_536].lstrip()
    if head.startswith("{"):
        return '"status"' in head and ('"resultType"' in head or '"errorType"' in head)
    lines = [line for line in head.splitlines()[:200] if line.strip()][:20]
    typed = any(line.startswith(("# TYPE ", "# HELP ")) for line in lines)
    samples = [line for line in lines if not line.startswith("#")]
    return typed or (bool(samples) and all(_known_sample(line) for line in samples[:1]))


def _known_sample(line: str) -> bool:
    found = _sample(line)
    return found is not None and _known(found[0], {"phase": "rtt"}) is not None


def read(text: str, file: str) -> Paths:
    """The paths of an answer or a page. Raises `ScenarioError` for what is neither."""
    paths: dict[str, _Found] = {}
    used: set[str] = set()
    # Names of metrics, in their order. A series without one has an empty name.
    unknown: dict[str, None] = {}
    series = _of_answers(text, file) if text.lstrip()[:1] == "{" else _of_page(text)
    for name, labels, values in series:
        known = _known(name, labels)
        if known is None:
            # A metric with several phases has some that are not used.
            if len(unknown) < 4 * _MOST_LISTED:
                unknown[name] = None
            continue
        used.add(name)
        quantity, factor = known
        good = [value * factor for one in values if (value := _number(one)) is not None]
        found = paths.setdefault(_place(labels), _Found())
        if len(paths) > MOST_PATHS:
            raise too_many(file)
        found.broken += len(values) - len(good)
        picked = found.values.setdefault(quantity, [])
        if good:
            picked.append(quantity.pick(good))
    left_out = [name for name in unknown if name not in used]
    some = [_path(name, found) for name, found in paths.items() if any(found.values.values())]
    if not some:
        names = "metrics whose names say a rate or a round-trip time, e.g. path_rtt_seconds"
        fix = "docs/how-to/advisor.md lists them"
        if left_out == [""]:
            names += "; its series have no names, which functions such as min_over_time drop"
            fix = "query the metrics themselves, or add `__name__` with label_replace"
        elif left_out:
            names += f"; there is {_listed(left_out)}"
        elif paths:
            names += "; their samples are not numbers from 0"
        raise mistake("from", file, names, fix)
    notes = [f"metrics not used: {_listed(left_out)}"] if left_out else []
    if len(some) < len(paths):
        notes.append(f"{counted(len(paths) - len(some), 'path')} without a sample that is a number from 0")
    return Paths(some, notes)


def _listed(names: list[str]) -> str:
    """The first few of these metrics."""
    first = [shown(name, _MOST_NAME) or "series without a name" for name in names[:_MOST_LISTED]]
    return joined([*first, "others"] if len(names) > _MOST_LISTED else first)


def _path(name: str, found: _Found) -> Path:
    says, caveats = {}, {}
    for quantity, values in found.values.items():
        if not values:
            caveats[quantity.name] = "its samples are not numbers from 0"
        elif (value := quantity.pick(values)) > 0:
            says[quantity.name] = written(quantity.name, value)
        elif quantity not in (_LOSS, _JITTER):
            caveats[quantity.name] = "it is 0 in the source"
    left_out = (f"samples that are not numbers from 0: {found.broken}",) if found.broken else ()
    loss = "its loss counts as random: leave the metric out if a full queue caused it"
    weight = float(max(map(len, found.values.values())))
    return Path(name, says, weight, (), left_out, caveats, {loss: ("loss",)})


def _known(name: str, labels: Mapping[str, str]) -> tuple[_Quantity, float] | None:
    """What a metric is, and the factor to the unit of `Numbers`."""
    if name == "tcp_rtt":
        return _RTT, 1.0
    for ending, quantity, factor in _ENDINGS:
        if name.endswith(ending) and (len(name) == len(ending) or name[-len(ending) - 1] in "_:"):
            if "icmp_duration" in ending and labels.get("phase") != "rtt":
                return None
            return quantity, factor
    return None


def _place(labels: Mapping[str, str]) -> str:
    """The path that a series is of."""
    name = next((labels[one] for one in _LABELS if labels.get(one)), "all")
    flow = _FLOW.fullmatch(name)
    return flow[1] if flow else name


def _of_answers(text: str, file: str) -> Iterator[tuple[str, dict[str, str], list[Any]]]:
    for document in documents(text, file, _EXPECTED):
        if not isinstance(document, dict):
            raise mistake("from", file, _EXPECTED, "save the answer as it is")
        if document.get("status") != "success":
            message = document.get("error")
            why = f"; it says {message[:80]!r}" if isinstance(message, str) else ""
            raise mistake("from", file, f"an answer with status success{why}", "correct the query")
        data = document.get("data")
        kind = data.get("resultType") if isinstance(data, dict) else None
        if not isinstance(data, dict) or kind not in ("vector", "matrix"):
            raise mistake(
                "from", file, f"resultType vector or matrix; not {str(kind)[:40]!r}", "query series"
            )
        results = data.get("result")
        if not isinstance(results, list):
            raise mistake("from", file, "a list of series in data.result", "save the answer as it is")
        for one in results:
            yield _series(one, str(kind), file)


def _series(one: Any, kind: str, file: str) -> tuple[str, dict[str, str], list[Any]]:
    metric = one.get("metric") if isinstance(one, dict) else None
    samples = one.get("value" if kind == "vector" else "values") if isinstance(one, dict) else None
    if kind == "vector":
        samples = [samples]
    pairs = isinstance(samples, list) and all(isinstance(two, list) and len(two) == 2 for two in samples)
    if not isinstance(metric, dict) or not pairs or not isinstance(samples, list):
        what = f"series with `metric` and `{'value' if kind == 'vector' else 'values'}`"
        raise mistake("from", file, what, "save the answer as it is")
    labels = {name: value for name, value in metric.items() if isinstance(value, str)}
    return labels.pop("__name__", ""), labels, [value for _, value in samples]


def _of_page(text: str) -> Iterator[tuple[str, dict[str, str], list[Any]]]:
    for line in io.StringIO(text):
        found = _sample(line)
        if found is not None:
            name, labels, value = found
            yield name, labels, [value]


def _sample(line: str) -> tuple[str, dict[str, str], str] | None:
    """The name, labels and value of a sample; a time may follow, and an exemplar. None for other lines."""
    name = _NAME.match(line) if len(line) <= _LONGEST else None
    if name is None:
        return None
    rest, labels = line[name.end() :].lstrip(), {}
    if rest.startswith("{"):
        at = 1
        while found := _LABEL.match(rest, at):
            labels[found[1]] = _ESCAPE.sub(lambda one: _ESCAPES[one[0]], found[2])
            at = found.end()
        if rest[at : at + 1] != "}":
            return None
        rest = rest[at + 1 :]
    value = rest.split(maxsplit=1)
    return (name[0], labels, value[0]) if value else None


def _number(given: Any) -> float | None:
    """A sample's value if it is a number from zero."""
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        return None
    if isinstance(given, str) and len(given) > _MOST_DIGITS:
        return None
    try:
        value = float(given)
    except (ValueError, OverflowError):
        return None
    return value if math.isfinite(value) and 0 <= value < 1e18 else None
