"""A paper's report: for every claim its text, our figure, our numbers beside the paper's, and the verdict."""

from collections.abc import Mapping, Sequence
from typing import Any

from fullpipe.report.figures import theme
from fullpipe.report.page import Heading, figure, page, table, text
from fullpipe.report.provenance import time_text
from fullpipe.runs.worlds import registry
from fullpipe.text import capitalised, counted
from fullpipe_studies import tables
from fullpipe_studies.catalogue import Study
from fullpipe_studies.checks import FEWEST, Outcome
from fullpipe_studies.claim import DECIDED, meanings

_NOTE = (
    f"{DECIDED} ± is a 95 % confidence interval of the mean (Student’s t) over n seeds or repetitions of one "
    "scenario, or over n paths that were drawn at random; of ratios it is one of their geometric mean, and "
    "is in brackets. A mean over unlike scenarios (chosen paths, buffers, rates) has none: the range is that "
    "of the seeds. Each check states its criterion; the claim’s file has its code."
)


def html(study: Study, results: Sequence[Mapping[str, Any]], svgs: Mapping[str, str]) -> str:
    """The whole page."""
    drawn = [one for one in results if one["spec"] is not None]
    numbers = {one["name"]: number for number, one in enumerate(drawn)}
    sections = [_claim(one, svgs.get(one["name"]), numbers.get(one["name"])) for one in results]
    body = [_header(study), _summary(study, results), _short_form(results)]
    body += [_words(results), *sections]
    return page(f"Fullpipe: {study.paper.title}", body, [one["spec"] for one in drawn])


def _words(results: Sequence[Mapping[str, Any]]) -> str:
    """What the words of this page's verdicts mean, and how checks are decided."""
    used = {one["verdict"] for result in results for one in result["findings"]}
    facts = " ".join(f"{capitalised(word)}: {meaning}" for word, meaning in meanings(used))
    return f'<p class="quiet">{text(f"{facts} {_NOTE}".strip())}</p>'


def _header(study: Study) -> str:
    parts = {
        "Question": study.about.question,
        "Method": study.about.method,
        "Prediction": study.about.prediction,
    }
    facts = "".join(f"<p><b>{name}:</b> {text(part)}</p>" for name, part in parts.items())
    cite = f'<p class="quiet">{text(study.paper.cite)}</p>'
    return f"<header><h1>{text(study.paper.title)}</h1>{cite}{facts}</header>"


def _summary(study: Study, results: Sequence[Mapping[str, Any]]) -> str:
    found = {one["world"] for result in results for one in result["findings"]}
    known = registry.known()
    # The pair that is compared by default is always there, also if nothing ran.
    worlds = list(dict.fromkeys([*registry.PAIR, *(one for one in known if one in found), *sorted(found)]))
    rows = [
        [
            f'<a href="#{one["name"]}">{text(one["name"])}</a>',
            text(one["title"]),
            *(text(_verdict(one, world)) for world in worlds),
        ]
        for one in results
    ]
    headings = map(theme.world_heading, worlds)
    return table([Heading(name) for name in ("Claim", "Title", *headings)], rows)


def _short_form(results: Sequence[Mapping[str, Any]]) -> str:
    """That verdicts may change, if claims were run in a short form."""
    short = [one["name"] for one in results if one["size"] != "full"]
    if not short:
        return ""
    which = "" if len(short) == len(results) else f" Claims in quick form: {', '.join(short)}."
    return f'<p class="note">{text(f"{tables.SHORT_FORM}{which}")}</p>'


def _verdict(result: Mapping[str, Any], world: str) -> str:
    found = [one["verdict"] for one in result["findings"] if one["world"] == world]
    return str(found[0]) if found else "not run" if world in result["worlds"] else "–"


def _claim(result: Mapping[str, Any], svg: str | None, number: int | None) -> str:
    parts = [
        f'<section id="{result["name"]}"><h2>{text(result["title"])} '
        f"<small>{text(result['id'])}, {text(result['source'])}</small></h2>",
        f"<p>The paper: “{text(result['says'])}”</p>",
        f'<p class="quiet"><b>Question:</b> {text(result["question"])} '
        f"<b>Method:</b> {text(result['method'])} "
        f"<b>Prediction:</b> {text(result['prediction'])}</p>",
    ]
    parts += [
        f'<p class="verdict"><b>{text(theme.world_heading(one["world"]))}: '
        f"{text(one['verdict'])}.</b> {text(one['reason'])}</p>"
        for one in result["findings"]
    ]
    if svg is not None and number is not None:
        parts.append(figure(number, result["name"], svg, result["look_at"]))
    if any(one["checks"] for one in result["findings"]):
        parts.append(_checks(result["findings"]))
    parts += [_setups(one) for one in result["findings"] if one["setups"]]
    if notes := [*result.get("because", []), *result["notes"]]:
        listed = "".join(f"<li>{text(note)}</li>" for note in notes)
        parts.append(f'<div class="note"><ul>{listed}</ul></div>')
    parts.append(f'<p class="quiet">{_provenance(result)}</p></section>')
    return "".join(parts)


def _checks(findings: Sequence[Mapping[str, Any]]) -> str:
    """Paper, criterion and every world's value side by side, one row for each check."""
    by_world = {one["world"]: {check["what"]: check for check in one["checks"]} for one in findings}
    whats = list(dict.fromkeys(what for checks in by_world.values() for what in checks))
    rows = []
    for what in whats:
        checked = {world: checks[what] for world, checks in by_world.items() if what in checks}
        first = next(iter(checked.values()))
        kind = f"{'shape' if first['shape'] else 'number'}{', own' if first['own'] else ''}"
        criterion = f"{_each(checked, 'criterion')}<small> ({kind})</small>"
        ours = (_value(checks.get(what)) for checks in by_world.values())
        rows.append([text(what), _each(checked, "paper"), criterion, *ours])
    worlds = [theme.world_heading(world) for world in by_world]
    return table([Heading(name) for name in ("Check", "Paper", "Criterion", *worlds)], rows)


def _setups(finding: Mapping[str, Any]) -> str:
    """The judged quantities in every set-up of the test bed, side by side."""
    by_name = {one["name"]: {check["what"]: check for check in one["checks"]} for one in finding["setups"]}
    judged = [one["name"] for one in finding["setups"] if one["judged"]]
    whats = list(dict.fromkeys(what for checks in by_name.values() for what in checks))
    rows = [
        [
            text(what),
            *(_value(checks.get(what), why=False) for checks in by_name.values()),
        ]
        for what in whats
    ]
    about = (
        f"How much depends on what is not known of the test bed, {theme.world_title(finding['world'])}. "
        f"The verdict is about “{', '.join(judged)}”; it depends on what the paper omits if another set-up "
        "has the opposite one. The others have fewer seeds (n), so a difference may also be that of the "
        f"seeds. With n below {FEWEST}, a check is undecided."
    )
    headings = [Heading(name) for name in ("Check", *by_name)]
    return f"<p>{text(about)}</p>{table(headings, rows)}"


def _each(checks: Mapping[str, Mapping[str, Any]], name: str) -> str:
    """A check's text for every world: once if it is the same. It differs e.g. if a rate was scaled."""
    facts = {world: str(check[name]) for world, check in checks.items()}
    if len(set(facts.values())) == 1:
        return text(next(iter(facts.values())))
    return "<br>".join(text(f"{theme.world_title(world)}: {one}") for world, one in facts.items())


def _value(check: Mapping[str, Any] | None, *, why: bool = True) -> str:
    """A check's value, outcome and count, and why it is undecided."""
    if check is None:
        return "–"
    facts = text(check["said"])
    count = f"<small> n = {check['count']}</small>" if check["count"] else ""
    match check["outcome"]:
        case Outcome.MISSED.value:
            facts = f"<b>{facts}, missed</b>"
        case Outcome.UNDECIDED.value:
            reason = f" <small>({text(check['why'])})</small>" if why else ""
            facts = f"{facts}, <b>undecided</b>{reason}"
    return f"{facts}{count}"


def _provenance(result: Mapping[str, Any]) -> str:
    """How the claim's runs were made, and the command that repeats them."""
    short = "" if result["size"] == "full" else f", in {result['size']} form"
    done = ", ".join(filter(None, (_count(result, one["world"]) for one in result["findings"])))
    machine = "".join(f", {text(one)}" for one in result.get("machines", []))
    command = result.get("command", f"fullpipe study run {result['id']}")
    return (
        f"Provenance: {done or 'no runs'}{short}{machine}; Fullpipe {text(result['version'])}, "
        f"{text(time_text(result['at']))}; <code>{text(command)}</code>"
    )


def _count(result: Mapping[str, Any], name: str) -> str:
    """How often each scenario ran in a world."""
    if (world := registry.find(name)) is None:
        return ""
    times = result["seeds" if world.deterministic else "repetitions"]
    return f"{counted(times, world.noun)} in the {world.place}"
