"""Checks what a world that is not built in answers, so that no comparison uses garbage."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import polars as pl

import fullpipe._native as _native
from fullpipe import plugins
from fullpipe.measures.measures import estimates
from fullpipe.measures.run import FLOW_COLUMNS, LINK_COLUMNS, Run
from fullpipe.runs.worlds.job import Job
from fullpipe.text import shown

# What every flow's summary has, each a number.
_OF_FLOW = ("goodput_bps", "segments_sent")
_PARTS = ("flows", "links", "total_goodput_bps", "fct_ms", "fairness")
# What is a number from 0 wherever a summary has it, or None if it does not exist.
_NUMBERS = {
    *_OF_FLOW,
    *(
        "retransmits",
        "delivered_bytes",
        "start_ns",
        "end_ns",
        "timeouts",
        "undos",
        "loss_ratio",
        "completion_ms",
        "written_bytes",
        "written_ns",
        "write_ms",
        "write_bps",
        "rebuffer_ms",
        "missed_frames",
    ),
    *("rtt_ms", "fct_ms", "queue_delay_ms", "transfers_ms", "mean", "p50", "p95", "min", "max"),
    *("total_goodput_bps", "jain_index", "share", "utilisation", "drop_ratio"),
    *("early_packets", "marked_packets"),
}
# What is a table, a list or a text wherever a summary has it, or None.
_KINDS: dict[str, type] = {
    **dict.fromkeys(
        ("rtt_ms", "queue_delay_ms", "fct_ms", "seen", "metrics", "frames", "lateness", "processor"), dict
    ),
    **dict.fromkeys(("transfers_ms", "untrustworthy", "unsupported", "sysctls"), list),
    **dict.fromkeys(("label", "name", "controller", "world", "kernel", "host", "version", "spec_json"), str),
}
# What such a list has: whether something is one, and what it is called.
_ELEMENTS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "links": (lambda one: isinstance(one, dict), "tables"),
    **dict.fromkeys(("untrustworthy", "unsupported"), (lambda one: isinstance(one, str), "sentences")),
    "sysctls": (lambda one: isinstance(one, list | tuple) and len(one) == 2, "pairs of name and value"),
}
# Texts that are the scenario's own.
_GIVEN = ("label", "spec_json")
# Columns of tables in which the series of several runs are.
_OF_TABLES = ("world", "alternative", "seed")


def checked(world: str, job: Job, run: object) -> Run:
    """The run; raises the `WorldError` that names the world and the field that is wrong."""
    if not isinstance(run, Run):
        raise _wrong(world, "run()", run, "a fullpipe.measures.run.Run")
    for name, given, expected in (
        ("alternative", run.label, job.alternative.label),
        ("world", run.world, world),
        ("seed", run.seed, job.seed),
    ):
        if type(given) is not type(expected) or given != expected:
            raise _wrong(world, name, given, repr(expected))
    for name, series in (("flow_parquet", run.flow_parquet), ("link_parquet", run.link_parquet)):
        if not isinstance(series, bytes):
            raise _wrong(world, name, series, "a Parquet file, as bytes")
    try:
        _check_summary(world, job, run.summary)
        run = replace(run, summary=_shown(run.summary))
    except RecursionError:
        raise _wrong(world, "summary", "...", "fewer levels of tables and lists") from None
    try:
        estimates([run.summary])
    except Exception as error:
        raise _wrong(world, "summary", plugins.described(error), "all that measures need") from None
    _check_series(world, "flow_parquet", run.flow_series, FLOW_COLUMNS)
    _check_series(world, "link_parquet", run.link_series, LINK_COLUMNS)
    return run


def _check_series(
    world: str, name: str, read: Callable[[], pl.DataFrame], columns: Mapping[str, Any]
) -> None:
    try:
        found = read().schema
    except BaseException as error:
        # Polars has both: exceptions, and panics of its native half.
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise _wrong(world, name, shown(plugins.message(error)), "a Parquet file that can be read") from None
    for column, kind in columns.items():
        if found.get(column) != kind:
            raise _wrong(world, f"{name}[{column!r}]", found.get(column), f"a column of {kind}")
    for column in _OF_TABLES:
        if column in found:
            raise _wrong(world, f"{name}[{column!r}]", found[column], "no such column")


def _shown(value: Any, key: object = None) -> Any:
    """The same with texts that a terminal can show."""
    if isinstance(value, dict):
        return {name: _shown(inner, name) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(inner, key) for inner in value]
    return shown(value) if isinstance(value, str) and key not in _GIVEN else value


def _check_summary(world: str, job: Job, summary: object) -> None:
    if not isinstance(summary, dict):
        raise _wrong(world, "summary", summary, "a dict")
    for name in ("provenance", *_PARTS):
        if name not in summary:
            raise _wrong(world, f"summary[{name!r}]", None, "a value; it is missing")
    kinds: dict[str, type] = {"provenance": dict, "flows": list, "links": list, "fairness": dict}
    for name, kind in kinds.items():
        if not isinstance(summary[name], kind):
            raise _wrong(world, f"summary[{name!r}]", summary[name], f"a {kind.__name__}")
    flows, fairness = summary["flows"], summary["fairness"]
    expected = [flow["label"] for flow in job.alternative.spec["flows"]]
    for place, listed, what in (
        ("summary['flows']", flows, "a summary"),
        ("summary['fairness']['shares']", fairness.get("shares"), "the share"),
    ):
        given = _labels(listed)
        if given != expected:
            raise _wrong(world, place, given, f"{what} of each flow, in the scenario's order: {expected}")
    _check_kinds(world, summary, "summary")
    for place, value, known in _leaves({name: summary[name] for name in _PARTS}, "summary"):
        if known and value is not None and not (_is_finite(value) and value >= 0):
            raise _wrong(world, place, value, "a finite number from 0")
        if isinstance(value, float) and not _is_finite(value):
            raise _wrong(world, place, value, "a finite number")
    for number, flow in enumerate(flows):
        for name in _OF_FLOW:
            if not _is_finite(flow.get(name)):
                place = f"summary['flows'][{number}][{name!r}]"
                raise _wrong(world, place, flow.get(name), "a finite number from 0")
    if not _is_finite(summary["total_goodput_bps"]):
        given = summary["total_goodput_bps"]
        raise _wrong(world, "summary['total_goodput_bps']", given, "a finite number from 0")


def _check_kinds(world: str, value: Any, place: str) -> None:
    """Whether what is known is a table, a list or a text wherever it is."""
    if isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            _check_kinds(world, inner, f"{place}[{number}]")
    if not isinstance(value, dict):
        return
    for key, inner in value.items():
        inside = f"{place}[{key!r}]"
        kind = _KINDS.get(key)
        if kind is not None and inner is not None and not isinstance(inner, kind):
            raise _wrong(world, inside, inner, f"a {kind.__name__}")
        fits, what = _ELEMENTS.get(key, (None, ""))
        if fits is not None and isinstance(inner, list) and not all(map(fits, inner)):
            raise _wrong(world, inside, inner, f"a list of {what}")
        _check_kinds(world, inner, inside)


def _labels(listed: Any) -> Any:
    """The labels of what is listed for each flow; something else where it has none."""
    if not isinstance(listed, list):
        return listed
    return [one.get("label") if isinstance(one, dict) else one for one in listed]


def _leaves(value: Any, place: str, *, known: bool = False) -> Iterator[tuple[str, Any, bool]]:
    """The values in it, each with its place, and whether it must be a number."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{place}[{key!r}]", known=key in _NUMBERS)
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _leaves(inner, f"{place}[{number}]", known=known)
    else:
        yield place, value, known


def _is_finite(value: object) -> bool:
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def _wrong(world: str, field: str, given: object, expected: str) -> _native.WorldError:
    try:
        shown = repr(given)
    except Exception:
        shown = f"a {type(given).__name__}"
    shown = shown if len(shown) <= 200 else f"{shown[:200]}..."
    return _native.WorldError(
        f"the world {world} answered with {field} = {shown}; expected {expected}; correct the world"
    )
