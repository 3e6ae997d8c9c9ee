"""The report as blocks, and these as Markdown and as HTML.

DIR/report.md, report.html      the same report; the page has figures that react to the pointer
DIR/figures/SECTION.svg         the first measure of a row, where it has several scenes
DIR/scenarios/SCENE.toml        each scene with the candidate and the first seed's path, to be run alone
DIR/data.parquet                every value
DIR/evaluation.json             verdicts for programs
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from fullpipe.report import page
from fullpipe.report.figures import theme
from fullpipe.runs.worlds import registry
from fullpipe.text import capitalised, cell, counted, joined
from fullpipe_studies import charts
from fullpipe_studies.checks import number
from fullpipe_studies.evaluate import criteria
from fullpipe_studies.evaluate.criteria import UNCHECKED
from fullpipe_studies.evaluate.run import Result, Row
from fullpipe_studies.evaluate.scene import FLOOR_PACKETS, SPREAD
from fullpipe_studies.evaluate.verdicts import BESIDE, FEWEST, STANDARDS, Cell, Verdict
from fullpipe_studies.later import alt

RULES = (
    "RFC 9743 is no checklist and has no thresholds: the community weighs. So nothing here passes or "
    "fails, and every threshold is Fullpipe’s.",
    f"Each scene runs with the candidate, {joined((*STANDARDS, BESIDE))} in the same place, on the "
    f"same seeds. A seed varies rate and round-trip time by ± {100 * SPREAD:.0f} %, starts, and the "
    f"moments of changes. Buffers in BDP hold at least {FLOOR_PACKETS} packets.",
    f"Worse (better): worse (better) than both {joined(STANDARDS)}. Of the paired differences to each, "
    "the 95 % interval (Student’s t) excludes zero, and the mean exceeds 10 % of the standard’s value "
    "and the measure’s own least difference, e.g. 5 ms. As: anything else, also with fewer than "
    f"{FEWEST} seeds. If the values have two modes, the worse one is judged, too. A row has the worst "
    "verdict of its cells.",
    "Flag: only by the rule that the row states. A flag or a verdict of section 7 is about that "
    "environment, where an algorithm may progress although it does badly.",
    f"{BESIDE} is widely deployed and shown for comparison; it decides nothing. Of many comparisons, a "
    "few differ by chance.",
    "Shares of drops and marks are those after the start-up, of what was delivered or dropped in that time.",
)
LIMITS = (
    "The references are Fullpipe’s own CUBIC, Reno and BBRv1. This report does not compare them with a "
    "kernel; `fullpipe agree` does, and docs/explanation/fidelity.md has results.",
    "One bottleneck, and no flows that cross only a part of the path; data go both ways only in “beyond b”.",
)
_SUMMARY = ("§", "Level", "Criterion", "Verdict", "Because")
_QUOTED = (Verdict.FLAG, Verdict.WORSE)


@dataclass(frozen=True)
class Title:
    """A heading; the first level is the report's."""

    text: str
    level: int = 2
    id: str = ""


@dataclass(frozen=True)
class Table:
    """A table of text."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    links: Collection[str] = ()  # Parts of the page that rows are named after.


@dataclass(frozen=True)
class Figure:
    """A figure and its caption."""

    id: str
    spec: dict[str, Any]
    svg: str
    caption: str


Block = Title | Table | Figure | str | tuple[str, ...]


def blocks(result: Result, head: Sequence[tuple[str, str]], figures: Sequence[Figure]) -> list[Block]:
    """The report. A text is a paragraph, and a tuple of texts a list."""
    plan = result.plan
    drawn = {one.id: one for one in figures}
    ran = [row for row in result.rows if row.cells]
    found: list[Block] = [
        Title(f"{plan.candidate} by the criteria of RFC 9743", 1),
        Table(("", ""), head),
        *_warnings(result),
        Title("Summary"),
        Table(_SUMMARY, [_summary(row) for row in result.rows], [row.criterion.id for row in ran]),
        tuple(_counts(result.rows)),
        Title("Where it is worse"),
        "A draft for the abstract that section 3.2 asks for, made from the cells that are worse or flagged.",
        *_worse(ran),
        *_outdone(ran),
        Title("Details"),
    ]
    shown: dict[str, str] = {}
    for row in ran:
        found += _details(result, row, shown, drawn)
    found += [
        Title("For the author"),
        "What no run can answer. The lab’s part is named; the rest is the author’s.",
        tuple(_form(result, row) for row in result.rows if row.verdict is Verdict.FORM),
        Title("What was not run, and why"),
        "Each is a limit of Fullpipe or of this run, not of the controller.",
        tuple(_not_run(result)),
        Title("Rules"),
        (*RULES, *LIMITS, UNCHECKED),
    ]
    return found


def _warnings(result: Result) -> list[Block]:
    same = result.plan.candidate in STANDARDS
    own = "The candidate is one of the standards, so that it cannot be better or worse than both."
    short = "The quick form has fewer scenes and seeds; its verdicts are about these only."
    return [*([own] if same else []), *([short] if result.plan.quick else [])]


def _summary(row: Row) -> tuple[str, ...]:
    one = row.criterion
    return (one.section, one.level, one.title, word(row.verdict), because(row))


def word(verdict: Verdict) -> str:
    """A verdict as text."""
    return "as the standards" if verdict is Verdict.AS else verdict.value


def because(row: Row) -> str:
    """Why a row has its verdict: the first cell that decides it, and how many others do."""
    if row.deciding is None:
        return next(iter(row.left_out), "") or row.criterion.lacks or "see “For the author”"
    cells, verdict = counted(len(row.cells), "comparison"), row.verdict
    if verdict is Verdict.AS:
        return f"no difference in {cells}"
    better = row.count(Verdict.BETTER)
    beside = f", better in {better}" if better and verdict in _QUOTED else ""
    return f"{_sentence(row.deciding)}; {row.count(verdict)} of {cells}{beside}"


def _sentence(of: Cell) -> str:
    """A cell in words: what, ours, and the others'."""
    if of.reason:
        return f"{of.scene}: {of.reason}"
    values = {name: one.mean for name in of.values if (one := of.estimate(name)) is not None}
    others = ", ".join(f"{name} {number(value)}" for name, value in list(values.items())[1:])
    unit = f" {of.measure.unit}" if of.measure.unit else ""
    return f"{of.scene}: {of.measure.name} {number(next(iter(values.values())))}{unit} ({others})"


def _counts(rows: Sequence[Row]) -> list[str]:
    """How many rows have which verdict, for MUST and SHOULD apart."""
    facts = []
    for level in ("MUST", "SHOULD"):
        there = [row for row in rows if row.criterion.level.startswith(level)]
        counts = Counter(word(row.verdict) for row in there)
        order = [word(one) for one in Verdict if word(one) in counts]
        facts.append(
            f"{counted(len(there), f'{level} row')}: {joined([f'{counts[one]} {one}' for one in order])}."
        )
    return facts


def _worse(rows: Sequence[Row]) -> list[Block]:
    """The cells that are worse or flagged, each once: in general, and in special environments."""
    found: dict[tuple[str, str, Verdict], tuple[str, str]] = {}
    for row in rows:
        section = row.criterion.section
        for one in row.cells:
            if one.verdict in _QUOTED:
                text = f"{one.verdict.value}: {_sentence(one)} ({section})"
                found.setdefault((one.scene, one.measure.name, one.verdict), (section, text))
    special = [text for section, text in found.values() if section[0] not in "56"]
    general = [text for section, text in found.values() if section[0] in "56"]
    parts = (("In general (sections 5 and 6):", general), ("In special environments (section 7):", special))
    nowhere = () if found else ("Nowhere in what was run.",)
    return [*nowhere, *(block for text, lines in parts if lines for block in (text, tuple(lines)))]


def _outdone(rows: Sequence[Row]) -> list[Block]:
    """The cells where only the widely deployed controller is better."""
    found: dict[tuple[str, str], str] = {}
    for row in rows:
        for one in row.cells:
            if one.outdone and one.verdict not in _QUOTED:
                found.setdefault((one.scene, one.measure.name), f"{_sentence(one)} ({row.criterion.section})")
    if not found:
        return []
    about = f"No verdict follows, because {BESIDE} is no standard."
    return [Title(f"Where only {BESIDE} is better"), about, tuple(found.values())]


def _details(result: Result, row: Row, shown: dict[str, str], drawn: dict[str, Figure]) -> list[Block]:
    one, controllers = row.criterion, result.plan.controllers
    names = f"{[scene.name for scene in one.scenes]} {[measure.name for measure in one.measures]}"
    found: list[Block] = [
        Title(f"{one.section} {one.title} ({one.level}): {word(row.verdict)}", 3, one.id),
        one.asks,
    ]
    if names in shown:
        return [*found, f"Its scenes and measures are those of {shown[names]}."]
    shown[names] = one.section
    headings = ("Scene", "Measure", *controllers, "Verdict")
    rows = [
        (c.scene, _measure(c), *(value(c, name) for name in controllers), word(c.verdict)) for c in row.cells
    ]
    found.append(Table(headings, rows))
    if one.id in drawn:
        found.append(drawn[one.id])
    rules = {f"{of.name}: {of.flagged}" for of in one.measures if of.flagged}
    found += [f"Flag: {rule}." for rule in sorted(rules)]
    return [*found, f"Limit: {one.lacks}."] if one.lacks else found


def _measure(of: Cell) -> str:
    arrow = "higher is better" if of.measure.more else "lower is better"
    return f"{of.measure.name}{f', {of.measure.unit}' if of.measure.unit else ''} ({arrow})"


def value(of: Cell, controller: str) -> str:
    """A controller's values: mean and interval; both modes; and quantiles of what is spread far."""
    values = list(of.values.get(controller, {}).values())
    if not values:
        return "–"
    estimate = of.estimate(controller)
    assert estimate is not None
    if of.modes is not None and controller == next(iter(of.values)):
        parts = (of.modes.lower, of.modes.upper)
        return (
            f"two modes: {joined([f'{number(sum(part) / len(part))} ({len(part)} runs)' for part in parts])}"
        )
    half = "" if estimate.half_width is None else f" ± {number(estimate.half_width, 2)}"
    column = pl.Series(values)
    low, high = (column.quantile(part, "linear") or 0.0 for part in (0.1, 0.9))
    spread = f" (10 to 90 %: {number(low)} to {number(high)})" if high - low > abs(estimate.mean) / 2 else ""
    return f"{number(estimate.mean)}{half}{spread}"


def _form(result: Result, row: Row) -> str:
    one, plan = row.criterion, result.plan
    knows = {
        "3.1": f"it ran in the {registry.named(plan.world).place} of Fullpipe, and in no network",
        "3.2": "“Where it is worse” is a draft of the environments in which it is not recommended",
        "4": "7.1 shows what it does in queues with and without ECN",
        "5.3.1": "all packets have 1500 bytes, but for 7.4",
        "5.3.2": "6.4, 7.1 and 7.6 have aggregated ACKs, ECN, policers and duplicates; no proxy splits",
        "8": "7.6 has rows as evidence",
    }.get(one.section, "")
    fact = f" The lab: {knows}." if knows else ""
    return f"{one.section} {one.title} ({one.level}): {one.asks}{fact} Answer: …"


def _not_run(result: Result) -> list[str]:
    found = [
        f"{row.criterion.section} {row.criterion.title}: {row.criterion.lacks}."
        for row in result.rows
        if row.criterion.lacks and row.verdict is not Verdict.FORM
    ]
    left: dict[str, dict[str, None]] = {}
    for row in result.rows:
        for reason, scenes in row.left_out.items():
            left.setdefault(reason, {}).update(dict.fromkeys(scenes))
    found += [f"{counted(len(scenes), 'scene')}: {reason}." for reason, scenes in left.items()]
    found += [f"Runs without a result: {note}." for note in result.notes]
    return [*found, *result.caveats]


# Figures.


def figure_of(row: Row, controllers: Sequence[str]) -> dict[str, Any] | None:
    """A row's first measure as Vega-Lite: a point for each controller and scene; None for a lone scene."""
    measure = row.criterion.measures[0] if row.criterion.measures else None
    cells = [one for one in row.cells if one.measure is measure]
    if measure is None or len(cells) < 2:
        return None
    rows = [
        {"scene": one.scene, "controller": name, "mean": of.mean, "least": of.least, "most": of.most}
        for one in cells
        for name in controllers
        if (of := one.estimate(name)) is not None
    ]
    frame = pl.DataFrame(rows)
    title = f"{measure.name}{f', {measure.unit}' if measure.unit else ''} (bars: least to most)"
    scenes = [one.scene for one in cells]
    base = alt.Chart(charts.values(frame)).encode(
        y=alt.Y("scene:N", sort=scenes, title=None, axis=alt.Axis(labelLimit=260)),
        yOffset=alt.YOffset("controller:N", sort=list(controllers)),
        color=charts.controllers(frame),
        tooltip=["scene:N", "controller:N", "mean:Q"],
    )
    bars = base.mark_rule().encode(x=alt.X("least:Q", title=title), x2=alt.X2("most:Q"))
    dots = base.mark_point(filled=True, size=40, opacity=1).encode(x="mean:Q")
    heading = f"{row.criterion.section} {row.criterion.title}"
    chart = alt.layer(bars, dots).properties(width=charts.WIDTH, height=alt.Step(11), title=heading)
    return charts.spec(chart)


# Markdown and HTML.


def markdown(parts: Iterable[Block]) -> str:
    """The report in Markdown."""
    found = []
    for one in parts:
        match one:
            case Title():
                found.append(f"{'#' * one.level} {cell(one.text)}")
            case Table():
                lines = ["| " + " | ".join(map(cell, line)) + " |" for line in (one.headings, *one.rows)]
                found.append("\n".join([lines[0], "|" + "---|" * len(one.headings), *lines[1:]]))
            case Figure():
                found.append(f"![{cell(one.caption)}](figures/{one.id}.svg)")
            case str():
                found.append(cell(one))
            case tuple():
                found.append("\n".join(f"- {cell(line)}" for line in one))
    return "\n\n".join(found) + "\n"


def html(parts: Sequence[Block]) -> str:
    """The report as a page."""
    figures = [one for one in parts if isinstance(one, Figure)]
    title = next(one.text for one in parts if isinstance(one, Title))
    body = [_html(one, figures) for one in parts]
    return page.page(f"Fullpipe: {title}", body, [one.spec for one in figures])


def _html(one: Block, figures: Sequence[Figure]) -> str:
    match one:
        case Title():
            id_ = f' id="{one.id}"' if one.id else ""
            return f"<h{one.level}{id_}>{page.text(one.text)}</h{one.level}>"
        case Table():
            headings = [page.Heading(name) for name in one.headings]
            return page.table(
                headings, [[_name(line[0], one), *map(page.text, line[1:])] for line in one.rows]
            )
        case Figure():
            return page.figure(figures.index(one), one.id, one.svg, one.caption)
        case str():
            return f"<p>{page.text(one)}</p>"
        case tuple():
            return "<ul>" + "".join(f"<li>{page.text(line)}</li>" for line in one) + "</ul>"


def _name(of: str, table: Table) -> str:
    """A row's name in HTML, with a link where the page has a part with it."""
    id_ = criteria.id_of(of)
    return f'<a href="#{id_}">{page.text(of)}</a>' if id_ in table.links else page.text(of)


def slug(name: str) -> str:
    """A scene's name as that of a file."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")


def heading(world: str) -> str:
    """A world's name in the head of a report."""
    return capitalised(theme.world_title(world))
