"""A paper's report: for every claim its words, our figure, our numbers beside the paper's, the verdict."""

from collections.abc import Mapping, Sequence
from typing import Any

from fullpipe.figures import theme
from fullpipe.page import figure, page, text
from fullpipe.studies.catalogue import Study

_NOTE = (
    "Reproduced: every check is met. Reproduced in shape: every check of direction, ordering or crossover "
    "is, a number is not. Waiting: the paper speaks of a controller that is not there yet; what stands "
    "beside it is checked. Each check states its criterion; the code that computes it is the claim’s file. "
    "± is a 95 % confidence interval of the mean (Student’s t) over n values: one a seed or a repetition, "
    "and where a check looks at several paths, flows or folds, one of each."
)


def html(study: Study, results: Sequence[Mapping[str, Any]], svgs: Mapping[str, str]) -> str:
    """The whole page."""
    drawn = [one for one in results if one["spec"] is not None]
    numbers = {one["name"]: number for number, one in enumerate(drawn)}
    sections = [_claim(one, svgs.get(one["name"]), numbers.get(one["name"])) for one in results]
    body = [_header(study), _summary(study, results), f'<p class="quiet">{text(_NOTE)}</p>', *sections]
    return page(f"Fullpipe: {study.paper.title}", body, [one["spec"] for one in drawn])


def _header(study: Study) -> str:
    parts = {
        "Question": study.about.question,
        "Method": study.about.method,
        "Prediction": study.about.prediction,
    }
    said = "".join(f"<p><b>{name}.</b> {text(part)}</p>" for name, part in parts.items())
    cite = f'<p class="quiet">{text(study.paper.cite)}</p>'
    return f"<header><h1>{text(study.paper.title)}</h1>{cite}{said}</header>"


def _summary(study: Study, results: Sequence[Mapping[str, Any]]) -> str:
    rows = "".join(
        f'<tr><th scope="row"><a href="#{one["name"]}">{text(one["name"])}</a></th>'
        f"<td class=world>{text(one['title'])}</td>"
        f"{''.join(f'<td class=world>{text(_verdict(one, world))}</td>' for world in theme.WORLD)}</tr>"
        for one in results
    )
    worlds = (theme.world_title(world).capitalize() for world in theme.WORLD)
    heads = "".join(f"<th class=world>{text(head)}</th>" for head in ("Claim", "", *worlds))
    return _table(heads, rows)


def _verdict(result: Mapping[str, Any], world: str) -> str:
    if world not in result["worlds"]:
        return "–"
    found = [one["verdict"] for one in result["findings"] if one["world"] == world]
    return str(found[0]) if found else "not run"


def _claim(result: Mapping[str, Any], svg: str | None, number: int | None) -> str:
    parts = [
        f'<section id="{result["name"]}"><h2>{text(result["title"])} '
        f"<small>{text(result['id'])}, {text(result['source'])}</small></h2>",
        f"<p>The paper: “{text(result['says'])}”</p>",
        f'<p class="quiet"><b>Question.</b> {text(result["question"])} '
        f"<b>Method.</b> {text(result['method'])} "
        f"<b>Prediction.</b> {text(result['prediction'])}</p>",
    ]
    parts += [
        f'<p class="answer"><b>{text(theme.world_title(one["world"]).capitalize())}: '
        f"{text(one['verdict'])}.</b> {text(one['reason'])}</p>"
        for one in result["findings"]
    ]
    if svg is not None and number is not None:
        parts.append(figure(number, result["name"], svg, result["look_at"]))
    if any(one["checks"] for one in result["findings"]):
        parts.append(_checks(result["findings"]))
    if notes := [*result.get("because", []), *result["notes"]]:
        listed = "".join(f"<li>{text(note)}</li>" for note in notes)
        parts.append(f'<div class="note"><ul>{listed}</ul></div>')
    parts.append(f'<p class="quiet">{text(_provenance(result))}</p></section>')
    return "".join(parts)


def _checks(findings: Sequence[Mapping[str, Any]]) -> str:
    """Paper, criterion and both worlds' values side by side, a check a row."""
    by_world = {one["world"]: {check["what"]: check for check in one["checks"]} for one in findings}
    whats = list(dict.fromkeys(what for checks in by_world.values() for what in checks))
    rows = []
    for what in whats:
        checked = {world: checks[what] for world, checks in by_world.items() if what in checks}
        kind = next(check["kind"] for check in checked.values())
        ours = "".join(_value(checks.get(what)) for checks in by_world.values())
        rows.append(
            f'<tr><th scope="row">{text(what)}</th><td class=world>{_each(checked, "paper")}</td>'
            f"<td class=world>{_each(checked, 'criterion')}<small> {kind}</small></td>{ours}</tr>"
        )
    worlds = [theme.world_title(world).capitalize() for world in by_world]
    heads = "".join(f"<th class=world>{text(head)}</th>" for head in ("Check", "Paper", "Criterion", *worlds))
    return _table(heads, "".join(rows))


def _each(checks: Mapping[str, Mapping[str, Any]], name: str) -> str:
    """What a check says in every world: once where it is the same, as where a rate was scaled it is not."""
    said = {world: str(check[name]) for world, check in checks.items()}
    if len(set(said.values())) == 1:
        return text(next(iter(said.values())))
    return "<br>".join(text(f"{theme.world_title(world)}: {one}") for world, one in said.items())


def _value(check: Mapping[str, Any] | None) -> str:
    if check is None:
        return "<td class=world>–</td>"
    said = text(check["said"])
    count = f"<small> n = {check['count']}</small>" if check["count"] > 1 else ""
    return f"<td class=world>{said if check['met'] else f'<b>{said}, missed</b>'}{count}</td>"


def _provenance(result: Mapping[str, Any]) -> str:
    short = "" if result["size"] == "full" else f", in {result['size']} form"
    counts = {
        "sim": f"{result['seeds']} seeds simulated",
        "kernel": f"{result['repetitions']} kernel repetitions",
    }
    done = ", ".join(counts[one["world"]] for one in result["findings"] if one["world"] in counts)
    return (
        f"{done or 'no runs'}{short}; "
        f"Fullpipe {result['version']}, {result['at']}; fullpipe study run {result['id']}"
    )


def _table(heads: str, rows: str) -> str:
    return (
        f'<div class="wide"><table class="summary"><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody>'
        "</table></div>"
    )
