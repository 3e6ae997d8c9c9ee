"""Implements `fullpipe study`. Each command imports the heavy modules that it needs."""

import json
import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from fullpipe.cli.commands.merge import ShardOption, carry_out_shard
from fullpipe.cli.options import (
    ATTEMPTS_HELP,
    SEEDS_HELP,
    Repetitions,
    ReplaceLarger,
    World,
    check_folder,
    complain,
    console,
    engine_of,
    path,
    say,
)
from fullpipe.cli.other_results import STUDY, refuse_others
from fullpipe.runs.worlds import registry
from fullpipe.text import joined

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fullpipe.runs.engines import Engine
    from fullpipe.runs.engines.task import Task
    from fullpipe.runs.store import Store
    from fullpipe.runs.sweep import Outcome
    from fullpipe_studies.catalogue import Built, Listed, Study
    from fullpipe_studies.claim import Size
    from fullpipe_studies.run import Plan, Result

# A claim's result, as in claims.json.
Facts: TypeAlias = "dict[str, Any]"

app = typer.Typer(no_args_is_help=True, help="Reproduce the papers' figures and tables.")

FAILED = 1
_WIDTH = 160
Out = Annotated[
    Path | None,
    typer.Option(
        help="Folder for the results; several papers get a subfolder each.",
        show_default="out/study-PAPER; with --quick out/study-PAPER-quick",
        parser=path,
    ),
]
# Of commands that read results.
OutOfRuns = Annotated[
    Path | None,
    typer.Option(
        help="Folder that `study run` wrote, or one with such a folder for each paper; it is only read.",
        show_default="out/study-PAPER",
        parser=path,
    ),
]
Quick = Annotated[bool, typer.Option("--quick", help="With smaller grids and fewer seeds: minutes in all.")]
OfQuick = Annotated[bool, typer.Option("--quick", help="Show durations and verdicts of runs with --quick.")]
Record = Annotated[
    bool, typer.Option("--record", help="In a checkout: put the results into results/claims.jsonl.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else on stdout.")]


@app.command("list")
def listing(out: OutOfRuns = None, quick: OfQuick = False, as_json: AsJson = False) -> None:
    """List papers and claims, how long they take here, and their last verdicts.

    A verdict marked "recorded" is not of a run here: it comes with Fullpipe (results/claims.jsonl).
    """
    from fullpipe_studies import catalogue, tables

    _check_there(out)
    everything = catalogue.everything()
    for reason in catalogue.load_installed().values():
        complain(reason)
    facts = _verdicts(everything, out, quick=quick)
    rows = [_row(one, catalogue.built(one.id), facts.get(one.id), quick=quick) for one in everything]
    if out is None:
        _add_recorded(rows)
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    tables.listing(rows)


@app.command()
def run(
    what: Annotated[
        list[str], typer.Argument(metavar="PAPER[.CLAIM]...", help="What to run; `all` runs every claim.")
    ],
    world: World = registry.DEFAULT,
    quick: Quick = False,
    seeds: Annotated[int | None, typer.Option(help=SEEDS_HELP, show_default="the claim's own")] = None,
    repetitions: Repetitions = 3,
    attempts: Annotated[int | None, typer.Option(help=ATTEMPTS_HELP, show_default="3")] = None,
    engine: Annotated[str, typer.Option(help="local, or ray for a cluster.")] = "local",
    ray_address: Annotated[
        str | None,
        typer.Option(
            help="A Ray cluster's address, e.g. ray://host:10001.", show_default="a new one on this machine"
        ),
    ] = None,
    shard: ShardOption = None,
    out: Out = None,
    record: Record = False,
    replace_larger: ReplaceLarger = False,
    as_json: AsJson = False,
) -> None:
    """Run claims; write data, figures, claims.json and one report per paper. Exit code 1: some run failed."""
    from fullpipe import evidence
    from fullpipe.errors import mistake, unusable
    from fullpipe.runs.sweep import ATTEMPTS
    from fullpipe_studies import catalogue, tables
    from fullpipe_studies.claim import Size

    attempts = ATTEMPTS if attempts is None else attempts
    chosen_worlds = registry.chosen(world)
    for one in chosen_worlds:
        if one.name in registry.optional(there=False):
            one.ready()  # It lacks its program, and says how to get it.
    asked = tuple(one.name for one in chosen_worlds)
    for name, given in {"seeds": seeds, "repetitions": repetitions, "attempts": attempts}.items():
        if given is not None and given < 1:
            raise mistake(name, given, "a whole number from 1", "e.g. 3")
    chosen = _installed(catalogue.find(what))
    if shard is not None and (record or as_json):
        option = "--record" if record else "--json"
        raise unusable(
            option, "cannot be used with --shard, which reports nothing", "give it after `fullpipe merge`"
        )
    if record:
        evidence.read(evidence.folder() / _FILE)  # A file that cannot be used is an error now.
    carrier = engine_of(engine, ray_address, asked)
    size = Size.QUICK if quick else Size.FULL
    papers = list(dict.fromkeys(one.paper for one in chosen))
    failed, rows = 0, []
    for paper in papers:
        plans = _plans([one for one in chosen if one.paper == paper], size, asked, seeds, repetitions)
        folder = _folder(out, paper, quick=quick, alone=len(papers) == 1)
        check_folder(folder)
        refuse_others(folder, STUDY, partial(str, paper))
        if shard is not None:
            tasks = [task for plan in plans for task in plan.tasks]
            failed += carry_out_shard(shard, tasks, folder, carrier, attempts)
            continue
        failed += _carry_out(plans, catalogue.study(paper), folder, carrier, attempts)
        names = {plan.claim.id for plan in plans}
        ran = [one for one in catalogue.everything() if one.id in names]
        facts = _verdicts(ran, folder)
        rows += [_row(one, catalogue.built(one.id), facts.get(one.id)) for one in ran]
        if record:
            _record(facts, asked, [(catalogue.study(paper), folder)], larger=replace_larger)
    if as_json:
        print(json.dumps(rows, indent=1))
    elif shard is None:
        tables.verdicts(rows)
    if failed:
        raise typer.Exit(FAILED)


@app.command()
def controls(
    what: Annotated[
        list[str], typer.Argument(metavar="PAPER[.CLAIM]...", help="What to check; `all` checks every claim.")
    ],
    full: Annotated[bool, typer.Option("--full", help="With whole grids and all seeds.")] = False,
    seeds: Annotated[
        int | None,
        typer.Option(help=SEEDS_HELP, show_default="the claim's own; without --full up to 6"),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the runs, which `study run` uses, too; several papers get a subfolder each.",
            show_default="out/study-PAPER-quick; with --full out/study-PAPER",
            parser=path,
        ),
    ] = None,
    record: Annotated[
        bool, typer.Option("--record", help="In a checkout: put the results into results/controls.jsonl.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run claims with wrong controllers in place of their own, which the claims' checks must reject.

    In the simulator; without --full in the quick form.
    """
    from fullpipe import evidence
    from fullpipe.errors import mistake
    from fullpipe_studies import catalogue, tables
    from fullpipe_studies import controls as wrong
    from fullpipe_studies.claim import Size

    if seeds is not None and seeds < 1:
        raise mistake("seeds", seeds, "a whole number from 1", "e.g. 3")
    chosen = _installed(catalogue.find(what))
    _check_runs(chosen, {"seeds": seeds})
    if record:
        evidence.read(evidence.folder() / wrong.FILE)  # A file that cannot be used is an error now.
    size = Size.FULL if full else Size.QUICK
    papers = list(dict.fromkeys(one.paper for one in chosen))
    failed, lines = 0, []
    for paper in papers:
        plans = [plan for one in chosen if one.paper == paper for plan in wrong.plans(one, size, seeds)]
        folder = _folder(out, paper, quick=not full, alone=len(papers) == 1)
        check_folder(folder)
        refuse_others(folder, STUDY, partial(str, paper))
        found, results = _examined(plans, f"{paper}, controls", folder)
        failed += found
        made = wrong.lines(results)
        lines += made
        if record and found:
            complain(f"{paper}: runs failed, so nothing is recorded")
        elif record:
            wrong.record(evidence.folder() / wrong.FILE, made)
    answers = [one.data() for one in wrong.controlled(lines)]
    if as_json:
        print(json.dumps(answers, indent=1))
    else:
        tables.controls(answers)
    if failed:
        raise typer.Exit(FAILED)


@app.command()
def claims(record: Record = False, replace_larger: ReplaceLarger = False, out: OutOfRuns = None) -> None:
    """Print the verdicts of the last runs in Markdown.

    `study list` also shows claims that have no verdict yet.
    """
    from fullpipe_studies import catalogue, document

    _check_there(out)
    facts = _verdicts(catalogue.everything(), out)
    if record:
        folders = [(study, _found(out, study.name)) for study in catalogue.papers()]
        _record(facts, None, folders, larger=replace_larger)
    else:
        print(document.markdown(document.rows(document.recorded(facts.values()))), end="")


_FILE = "claims.jsonl"


def _record(
    facts: "dict[str, Facts]",
    worlds: "Sequence[str] | None",
    folders: "Sequence[tuple[Study, Path]]",
    *,
    larger: bool,
) -> None:
    """Puts results into the evidence, and their figures into the gallery's folder.

    `worlds` are those that were run; None for all that the results have.
    """
    from fullpipe import evidence, files
    from fullpipe_studies import document, gallery

    path = evidence.folder() / _FILE
    lines = [
        line for line in document.recorded(facts.values()) if worlds is None or line["key"]["world"] in worlds
    ]
    before = {(row.claim, row.world): row.word for row in document.rows(evidence.read(path)) if row.line}
    evidence.replace(path, lines, size=None if larger else document.size)
    for row in document.rows(lines):
        was = before.get((row.claim, row.world), row.word)
        if row.line is not None and was != row.word:
            say(f"{row.claim}, {row.world}: {was} before, {row.word} now; note why in its paper's notes.toml")
    pages = path.parent.parent / "docs" / "reference"
    files.make_folder(pages)
    gallery.pictures(pages / "gallery.md", folders, set(facts), complain)
    say(f"Recorded: {path}; `make docs` puts it into the pages")


def _installed(chosen: "list[Built]") -> "list[Built]":
    """The claims whose modules are installed, with a note on each of the others.

    Raises:
        ScenarioError: None of them is.
    """
    from fullpipe.errors import stated

    able = [one for one in chosen if not one.claim.not_installed]
    for one in chosen:
        for module, fix in one.claim.not_installed.items():
            if not able:
                why = f"{one.id} needs the Python module {module}; install it: {fix}"
                raise stated("what", one.id, why, "a claim whose modules are installed", fix)
            complain(f"{one.id} is left out: it needs the Python module {module}; install it: {fix}")
    return able


def carry_out(
    tasks: "Sequence[Task]", store: "Store", title: str, engine: "Engine | None" = None, attempts: int = 3
) -> "Outcome":
    """Runs what a store does not have, with progress; an interrupted command says that it resumes."""
    from fullpipe import files
    from fullpipe.cli.sweep_progress import Watched
    from fullpipe_studies import run as running

    try:
        with files.runs_kept(store.folder), Watched(console(stderr=True), say, title) as watch:
            return running.carry_out(
                tasks, store, engine=engine, attempts=attempts, say=watch.say, watch=watch
            )
    except KeyboardInterrupt:
        say(f"fullpipe: finished runs are kept in {store.folder}; the same command resumes")
        raise


def _examined(plans: "list[Plan]", title: str, folder: Path) -> "tuple[int, list[Result]]":
    """Runs claims without writing files of results: how many runs failed, and what each gave."""
    from fullpipe.runs.store import Store
    from fullpipe_studies import run as running

    store = Store(folder)
    outcome = carry_out([task for plan in plans for task in plan.tasks], store, title)
    results = [running.examine(plan, store, outcome) for plan in plans]
    for result in results:
        for note in result.notes:
            say(f"fullpipe: {result.plan.claim.id}: {note}")
    return len(outcome.failed), results


def _carry_out(
    plans: "list[Plan]", study: object, folder: Path, engine: "Engine | None", attempts: int
) -> int:
    """Runs a paper's claims, writes them, and returns how many runs failed."""
    from fullpipe import files
    from fullpipe.runs.store import Store
    from fullpipe_studies import run as running
    from fullpipe_studies import write
    from fullpipe_studies.catalogue import Study

    assert isinstance(study, Study)
    store = Store(folder)
    errors = console(stderr=True)
    tasks = [task for plan in plans for task in plan.tasks]
    outcome = carry_out(tasks, store, study.name, engine, attempts)
    with files.runs_kept(folder):
        for plan in plans:
            with errors.status(f"Measuring {plan.claim.id}"):
                result = running.examine(plan, store, outcome)
                write.claim(result, folder)
            for note in result.notes:
                say(f"fullpipe: {plan.claim.id}: {note}")
        with errors.status("Writing the report"):
            report = write.paper(study, folder, complain)
    say(f"Report: {report}")
    return len(outcome.failed)


def _plans(
    chosen: "list[Built]", size: "Size", asked: "Sequence[str]", seeds: int | None, repetitions: int
) -> "list[Plan]":
    from fullpipe_studies import run as running

    _check_runs(chosen, {"seeds": seeds, "repetitions": repetitions})
    plans = [
        running.Plan(
            one,
            size,
            one.claim.runs_in(asked),
            seeds if seeds is not None else one.claim.seeds_of(size),
            repetitions,
        )
        for one in chosen
        if one.claim.runs_in(asked)
    ]
    if not plans:
        raise _elsewhere(chosen, asked[0])
    return plans


def _check_runs(chosen: "Sequence[Built]", given: "Mapping[str, int | None]") -> None:
    """Raises `ScenarioError` if so many seeds or repetitions of each scenario are too many runs."""
    from fullpipe.runs.limits import MOST_STORED_RUNS, check_runs

    cells = max((math.prod(map(len, one.claim.grid.factors.values())) for one in chosen), default=1)
    for name, count in given.items():
        check_runs(name, count or 1, cells, MOST_STORED_RUNS, "scenarios")


def _elsewhere(chosen: "list[Built]", world: str) -> ValueError:
    """The error for claims of which none runs in the world that was asked for."""
    from fullpipe.errors import stated

    worlds = list(dict.fromkeys(name for one in chosen for name in one.claim.worlds))
    which = f"{chosen[0].id} runs" if len(chosen) == 1 else f"the claims of {_papers_of(chosen)} run"
    found = {name: registry.find(name) for name in worlds}
    where = joined([f"the {one.place}" if one is not None else name for name, one in found.items()])
    given = joined([f"--world {name}" for name in worlds], "or")
    fix = f"leave out --world or give {given}" if registry.DEFAULT in worlds else f"give {given}"
    return stated("world", world, f"{which} in {where} only; {fix}", joined(worlds, "or"), fix)


def _papers_of(chosen: "list[Built]") -> str:
    return ", ".join(dict.fromkeys(one.paper for one in chosen))


def _folder(given: Path | None, paper: str, *, quick: bool, alone: bool) -> Path:
    """The folder of a paper's results. Quick runs have their own, because their verdicts differ."""
    if given is not None:
        return given if alone else given / paper
    return Path("out") / f"study-{paper}{'-quick' if quick else ''}"


def _found(given: Path | None, paper: str, *, quick: bool = False) -> Path:
    """Where to look for a paper's results. A given folder may be that of one paper or of several."""
    alone = _folder(given, paper, quick=quick, alone=True)
    return alone / paper if (alone / paper / "claims.json").is_file() else alone


def _check_there(folder: Path | None) -> None:
    """Raises `ScenarioError` if the folder to read was named and is not there."""
    from fullpipe.errors import mistake

    if folder is not None and not folder.is_dir():
        raise mistake("out", str(folder), "a folder that `fullpipe study run` wrote", "name one that exists")


def _verdicts(claims: "Sequence[Listed]", out: Path | None, *, quick: bool = False) -> "dict[str, Facts]":
    """The last results of claims, by claim."""
    from fullpipe_studies import write

    found: dict[str, Facts] = {}
    # A given folder may be that of every paper. It is read, and damage in it is reported, once.
    for folder in dict.fromkeys(_found(out, one.paper, quick=quick) for one in claims):
        found |= write.verdicts(folder, complain)
    return found


def _add_recorded(rows: "Sequence[dict[str, Any]]") -> None:
    """Puts the recorded verdicts where a claim has none here; outside of the repository there are none."""
    from fullpipe import evidence
    from fullpipe._native import ScenarioError
    from fullpipe_studies import document

    try:
        path = evidence.folder() / _FILE
    except ScenarioError:
        return
    try:
        lines = evidence.read(path)
    except ScenarioError as error:
        complain(str(error))
        return
    of_claim = {row["id"]: row["worlds"] for row in rows}
    for one in document.rows(lines):
        worlds = of_claim.get(one.claim, {})
        if one.line is not None and not worlds.get(one.world, {}).get("reason"):
            worlds.setdefault(one.world, {"expected_s": None}).update(
                {"verdict": one.word, "reason": one.reason, "recorded": True, "form": one.form}
            )


def _row(
    one: "Listed", built: "Built | None", facts: "Facts | None", *, quick: bool = False
) -> dict[str, object]:
    """A claim's worlds, expected times and last verdicts."""
    from fullpipe_studies import run as running
    from fullpipe_studies.claim import Size, Verdict

    findings = {finding["world"]: finding for finding in facts["findings"]} if facts else {}
    times: dict[str, float] = {}
    if built is not None:
        size = Size.QUICK if quick else Size.FULL
        for world in built.claim.worlds:
            plan = running.Plan(built, size, (world,), built.claim.seeds_of(size), running.REPETITIONS)
            if (takes_s := plan.expected_s(world)) is not None:
                times[world] = takes_s
    worlds = () if built is None else built.claim.worlds
    # Its own worlds, and others in which it ran nevertheless.
    shown = dict.fromkeys((*one.worlds, *findings))
    missing = {world: Verdict.NOT_RUN if world in worlds else Verdict.NOT_BUILT for world in shown}
    return {
        "id": one.id,
        "title": one.title,
        "worlds": {
            world: {
                "expected_s": times.get(world),
                "verdict": findings[world]["verdict"] if world in findings else missing[world].value,
                "reason": findings[world]["reason"] if world in findings else "",
                "recorded": False,
            }
            for world in shown
        },
        "size": facts["size"] if facts else None,
        "fewer": _fewer(built, facts),
        "cause": built.claim.cause if built is not None and _missed(findings.values()) else "",
    }


def _fewer(built: "Built | None", facts: "Facts | None") -> str:
    """How many seeds a result has, if fewer than the claim's own in that form."""
    from fullpipe_studies.claim import Size

    if built is None or facts is None:
        return ""
    own = built.claim.seeds_of(Size(facts["size"]))
    return f"{facts['seeds']} of {own} seeds" if facts["seeds"] < own else ""


def _missed(findings: "Iterable[Facts]") -> bool:
    """Whether a check of a claim failed in some world, or could not be decided."""
    return any(check["outcome"] != "met" for finding in findings for check in finding["checks"])
