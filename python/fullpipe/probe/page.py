"""The report of a measurement: the answer, and the packets that show it."""

from pathlib import Path
from typing import Any

import altair as alt

import fullpipe._native as _native
from fullpipe import files
from fullpipe.probe.analysis.estimate import BELOW, GENTLE, MILD, OVER
from fullpipe.probe.analysis.traces import Clocks, Trace, give_origin
from fullpipe.probe.answer import Answer, compared
from fullpipe.report import provenance as made
from fullpipe.report.figures import theme
from fullpipe.report.figures.svg import picture
from fullpipe.report.page import Heading, figure, page, provenance, table, text
from fullpipe.text import counted

_WIDTH, _HEIGHT = 560, 220
# More dots show nothing more.
_MOST_DOTS = 1500
_CAME, _LOST, _MARKED = "arrived", "lost", "marked"
_SPACE_S = 0.2


def _waits(traces: dict[str, Trace]) -> dict[str, Any]:
    """The wait of each packet, stage after stage, as Vega-Lite."""
    dots: list[dict[str, Any]] = []
    begun = 0.0
    for name, one in traces.items():
        step, last = max(1, len(one) // _MOST_DOTS), 0.0
        for at in range(len(one)):
            fate = _LOST if not one.ok(at) else _MARKED if one.marks[at] == 3 else _CAME
            last = last if fate == _LOST else max(0.0, one.wait(at) * 1e3)
            if at % step == 0 and one.flows[at] == 0:
                dots.append(
                    {"s": begun + one.sent[at] - one.sent[0], "ms": last, "fate": fate, "stage": name}
                )
        begun += one.sent[-1] - one.sent[0] + _SPACE_S
    scale = alt.Scale(domain=[_CAME, _MARKED, _LOST], range=[theme.QUIET, theme.SPARE[0], theme.SPARE[3]])
    chart = (
        alt.Chart(alt.InlineData(values=dots))
        .mark_circle(size=9, opacity=0.6)
        .encode(
            x=alt.X("s:Q", title="Time of the stages, s"),
            y=alt.Y("ms:Q", title="Wait, ms"),
            color=alt.Color("fate:N", title="Packet", scale=scale),
            tooltip=[alt.Tooltip("stage:N", title="Stage"), alt.Tooltip("ms:Q", title="Wait, ms")],
        )
        .properties(width=_WIDTH, height=_HEIGHT, title="What packets waited for, and what happened to them")
        .configure(**theme.config())
    )
    found: dict[str, Any] = chart.to_dict()
    return found


def _jitter(below: Trace) -> dict[str, Any]:
    """The distribution of the delay above the least, as Vega-Lite."""
    ordered = sorted(below.delays())
    step = max(1, len(ordered) // 400)
    dots = [
        {"ms": (one - ordered[0]) * 1e3, "share": 100 * (at + 1) / len(ordered)}
        for at, one in enumerate(ordered)
        if at % step == 0 or at > len(ordered) - 20
    ]
    chart = (
        alt.Chart(alt.InlineData(values=dots))
        .mark_line(color=theme.SPARE[0], interpolate="step-after")
        .encode(x=alt.X("ms:Q", title="Delay above the least, ms"), y=alt.Y("share:Q", title="Packets, %"))
        .properties(width=_WIDTH, height=_HEIGHT, title="Jitter below saturation, hosts included")
        .configure(**theme.config())
    )
    found: dict[str, Any] = chart.to_dict()
    return found


def _figures(answer: Answer) -> list[tuple[str, str, dict[str, Any]]]:
    if not answer.measured.echoes:
        return []
    clocks = Clocks(answer.measured.echoes)
    found = []
    for way, title in (("forward", "To the other end"), ("back", "From the other end")):
        streams = getattr(answer.measured, way)
        traces = {
            name: clocks.trace(streams[name], back=way == "back")
            for name in (GENTLE, MILD, OVER)
            if name in streams and len(streams[name])
        }
        if traces and give_origin(list(traces.values()), answer.measured.mtu) is not None:
            stages = ", ".join(traces)
            caption = f"{title}: the stages {stages}. A lost packet has the wait of the one before."
            found.append((f"{way}-waits", caption, _waits(traces)))
        if BELOW in streams and streams[BELOW].arrived_ns and len(streams[BELOW]) > 1:
            trace = clocks.trace(streams[BELOW], back=way == "back")
            if trace.delays():
                found.append((f"{way}-jitter", f"{title}: what the path and both hosts add.", _jitter(trace)))
    return found


def _listed(title: str, lines: list[str]) -> str:
    items = "".join(f"<li>{text(line)}</li>" for line in lines)
    return f"<h2>{title}</h2><ul>{items}</ul>" if lines else ""


def _validation(answer: Answer) -> str:
    if not answer.checked:
        return ""
    headings = [
        Heading("TCP flow"),
        Heading("Goodput", "Mbit/s"),
        Heading("RTT", "ms"),
        Heading("Retransmissions"),
        Heading("What misses"),
    ]
    rows = [
        [
            text(f"{one.flow.controller}, {one.flow.direction}"),
            text(compared(one.goodput_mbps, 2)),
            text(compared(one.rtt_ms, 1)),
            text(compared(one.retransmissions, 0)),
            text(one.misses or "nothing"),
        ]
        for one in answer.checked
    ]
    about = (
        "<p>Each flow ran over the path and, with several seeds, in the simulator on path.toml: "
        "measured / simulated mean (least to most). ! is outside.</p>"
    )
    return f"<h2>Validated by TCP</h2>{about}{table(headings, rows)}"


def write(answer: Answer, folder: Path) -> Path:
    """Writes report.html into a folder; returns it."""
    drawn = _figures(answer)
    figures = [
        figure(number, name, picture(spec), caption) for number, (name, caption, spec) in enumerate(drawn)
    ]
    rows = [[text(row.name), text(row.forward or "–"), text(row.back or "–")] for row in answer.rows]
    measured = answer.measured
    packets = sum(len(one) for way in (measured.forward, measured.back) for one in way.values())
    size = f"{measured.bytes / 1e6:.1f} MB"
    body = [
        f"<header><h1>The path to {text(answer.host)}</h1><p>{text(answer.sentence)}</p></header>",
        "<h2>Measured</h2><p>Intervals are to cover the truth in 95 % of measurements.</p>",
        table([Heading("Quantity"), Heading("To it"), Heading("Back")], rows),
        _listed("Not measurable", answer.not_measurable),
        _listed("Assumed", answer.assumed),
        _listed("Notes", answer.notes),
        _validation(answer),
        *figures,
        provenance(
            [
                ("Made", text(made.now())),
                ("Command", f"<code>{text(made.command() or 'from Python')}</code>"),
                (
                    "Sent and received",
                    text(f"{counted(packets, 'packet')}, {size}, {measured.seconds:.0f} s"),
                ),
                ("Version", text(f"Fullpipe {_native.version()}")),
            ]
        ),
    ]
    whole = page("Fullpipe: a measured path", body, [spec for _, _, spec in drawn])
    return files.write(folder, "report.html", whole.encode())
