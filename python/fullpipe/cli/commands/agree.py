"""`fullpipe agree`."""

from pathlib import Path
from typing import Annotated

import typer

from fullpipe.agreement.agreement import TOLERANCES
from fullpipe.agreement.grid import rules as grid_rules
from fullpipe.cli.commands.merge import FAILED, ShardOption, carry_out_shard
from fullpipe.cli.options import (
    ATTEMPTS_HELP,
    DISAGREE,
    REPETITIONS_HELP,
    SEEDS_HELP,
    AsJson,
    ReplaceLarger,
    Worlds,
    console,
    folder_for,
    path,
    path_text,
    plain,
    print_json,
    print_notes,
    say,
    show_work,
    watching,
    write,
)
from fullpipe.cli.other_results import GRID, SCENARIO, refuse_others
from fullpipe.runs.worlds import registry

_PAIR = ",".join(registry.PAIR)
_HELP = (
    "Run a scenario, or a grid of them, in two worlds; report how far they are apart. By default these are "
    "the simulator and the kernel.\n\n"
    f"A single scenario agrees within these tolerances: {TOLERANCES}. A measure also agrees if the first "
    "world's mean is within the range of the second world's runs. Seeds count upwards from the scenario's "
    "own. A run in which the emulator could not keep up is repeated, and left out if no attempt "
    "succeeds.\n\n"
    "A grid is a set of scenarios, its cells. Each cell's differences and verdict are printed. Interrupted "
    "grids resume in the same folder.\n\n"
    f"A cell has rules of its own. {grid_rules.VERDICTS}\n\n"
    "A grid's targets decide the exit code. For each measure, they limit the median and the 90th "
    "percentile of the difference over all cells. They also say how many cells must have the verdict "
    "Agrees.\n\n"
    "Exit codes: 0 the worlds agree, or a grid meets its targets; 1 they do not, or the result is "
    "inconclusive because no trusted run is left; 2 a mistake in the command."
)


def agree(
    scenario: Annotated[
        Path | None,
        typer.Argument(
            metavar="SCENARIO.toml",
            help="A scenario file; see `fullpipe schema`.",
            show_default="none",
            parser=path,
        ),
    ] = None,
    worlds: Worlds = _PAIR,
    seeds: Annotated[int | None, typer.Option(help=SEEDS_HELP, show_default="5; for a grid 10")] = None,
    repetitions: Annotated[int | None, typer.Option(help=REPETITIONS_HELP, show_default="3")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for report, figures and runs.",
            show_default="none (out/grid-NAME for a grid)",
            parser=path,
        ),
    ] = None,
    grid: Annotated[
        str | None,
        typer.Option(
            help="Run a grid instead: a file, or one of scenarios/grids.",
            show_default="none",
            parser=path_text,
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Run only the grid's quick cells, and shorter.")
    ] = False,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN", help="Run only cells with these names, e.g. 'bbr1*'.", show_default="all"
        ),
    ] = None,
    hosts: Annotated[
        str | None,
        typer.Option(
            metavar="ideal|linux",
            help="Of a grid, how the simulator models hosts: ideal, or with Linux's delays "
            "(docs/explanation/hosts.md).",
            show_default="as each cell has it",
        ),
    ] = None,
    attempts: Annotated[int | None, typer.Option(help=ATTEMPTS_HELP, show_default="3")] = None,
    shard: ShardOption = None,
    record: Annotated[
        bool,
        typer.Option(
            "--record", help="In a checkout: put the results of a grid into results/agreement.jsonl."
        ),
    ] = False,
    replace_larger: ReplaceLarger = False,
    plan_only: Annotated[
        bool, typer.Option("--list", help="Print the grid's cells and their duration; run nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Prints the result of `fullpipe.agree`, or of a grid."""
    from fullpipe import api
    from fullpipe.errors import stated, unusable
    from fullpipe.report import tables

    if (scenario is None) == (grid is None):
        given, fix = (
            ("neither", "give a scenario or --grid")
            if grid is None
            else ("both", "give either a scenario or --grid, not both")
        )
        raise stated("agree", given, f"agree: {fix}", "a scenario or a grid", fix)
    first, second = registry.pair([name.strip() for name in worlds.split(",")])
    pair = (first.name, second.name)
    if grid is not None:
        from fullpipe.cli.commands import agree_grid

        if record and only is not None:
            # The targets are those of the whole grid.
            raise unusable("--record", "cannot be used with --only", "leave out one of the two")
        plan = agree_grid.plan(
            grid,
            worlds=pair,
            quick=quick,
            only=only,
            seeds=seeds,
            repetitions=repetitions,
            attempts=attempts,
            hosts=hosts,
        )
        if hosts is not None and first.real_hosts and second.real_hosts:
            say(f"fullpipe: --hosts has no effect with --worlds {worlds}, which have real hosts")
        if plan_only:
            for option, asked in {"--out": out is not None, "--record": record}.items():
                if asked:
                    say(f"fullpipe: {option} has no effect with --list, which writes nothing")
            agree_grid.listing(plan, console(), as_json=as_json)
            return
        folder = folder_for(out or Path("out") / f"grid-{plain(plan.grid.name)}", "", wanted=True)
        assert folder is not None
        refuse_others(folder.path, GRID, lambda: plan.grid.name)
        if shard is not None:
            if record or as_json:
                option = "--record" if record else "--json"
                raise unusable(
                    option,
                    "cannot be used with --shard, which reports nothing",
                    "give it after `fullpipe merge`",
                )
            if carry_out_shard(shard, plan.tasks, folder.path, None, plan.attempts):
                raise typer.Exit(FAILED)
            return
        errors = console(stderr=True)
        met = agree_grid.agree(
            plan,
            folder.path,
            console=console(),
            errors=errors,
            say=say,
            record=record,
            larger=replace_larger,
            as_json=as_json,
        )
        if not met:
            raise typer.Exit(DISAGREE)
        return
    for option, asked in {
        "--quick": quick,
        "--only": only is not None,
        "--hosts": hosts is not None,
        "--shard": shard is not None,
        "--record": record,
        "--list": plan_only,
    }.items():
        if asked:
            raise unusable(option, "needs a grid", "name one with --grid")
    assert scenario is not None
    loaded = api.load(scenario)
    folder = folder_for(out, plain(loaded.document.get("name") or scenario.stem), wanted=False)
    if folder is not None:
        refuse_others(folder.path, SCENARIO, lambda: loaded.named)
    with watching() as watch:
        found = api.agree(
            loaded,
            worlds=pair,
            seeds=seeds,
            repetitions=repetitions,
            attempts=api.ATTEMPTS if attempts is None else attempts,
            watch=watch,
            begin=show_work,
        )
    if as_json:
        print_json(found.results, folder)
    else:
        if found.checks:
            console().print(tables.checks(found))
        print_notes(
            [*filter(None, [found.few]), tables.how_often(found.results), *tables.run_notes(found.results)]
        )
        print(found.verdict)
        write(found.results, folder)
    if not found.agrees:
        raise typer.Exit(DISAGREE)


agree.__doc__ = _HELP  # It is not a literal.
