"""`fullpipe run`."""

from pathlib import Path
from typing import Annotated

import typer

from fullpipe.cli.options import (
    AsJson,
    Attempts,
    Ecn,
    LogLimit,
    Pcap,
    Png,
    Qlog,
    Repetitions,
    Scenario,
    Seeds,
    Snaplen,
    Stacks,
    World,
    complete_queues,
    console,
    draw_soon,
    folder_for,
    note_unused,
    plain,
    print_agreement,
    print_json,
    print_notes,
    results_folder,
    show_log_size,
    show_logs,
    show_work,
    use_stacks,
    watching,
    write,
)
from fullpipe.cli.other_results import SCENARIO, refuse_others
from fullpipe.runs.worlds import registry
from fullpipe.runs.worlds.logs import LIMIT, SNAPLEN


def run(
    scenario: Scenario,
    queue: Annotated[
        str | None,
        typer.Option(
            help="Discipline of the bottleneck's queue; see `fullpipe queues`.",
            show_default="the scenario's",
            autocompletion=complete_queues,
        ),
    ] = None,
    ecn: Ecn = False,
    world: World = registry.DEFAULT,
    seed: Annotated[
        int | None,
        typer.Option(help="First seed; further seeds count upwards.", show_default="the scenario's"),
    ] = None,
    seeds: Seeds = 1,
    repetitions: Repetitions = 1,
    attempts: Attempts = 3,
    out: Annotated[Path | None, results_folder("out/NAME-...")] = None,
    code: Annotated[
        bool, typer.Option("--code", help="Let the scenario run the Python files of its controllers.")
    ] = False,
    allow_programs: Annotated[
        bool,
        typer.Option(
            "--allow-programs", help="Let the scenario start programs: flows whose traffic a command sends."
        ),
    ] = False,
    stack: Stacks = None,
    qlog: Qlog = None,
    pcap: Pcap = None,
    snaplen: Snaplen = SNAPLEN,
    log_limit: LogLimit = LIMIT,
    png: Png = False,
    as_json: AsJson = False,
) -> None:
    """Run a scenario and print a table of its flows and queues; with several seeds, means and intervals."""
    use_stacks(stack)
    from fullpipe import api
    from fullpipe.report import tables
    from fullpipe.scenario.scenario import from_file

    loaded = from_file(scenario, code=code, programs=allow_programs, queue=queue, ecn=ecn)
    folder = folder_for(out, plain(loaded.document.get("name") or scenario.stem), wanted=not as_json)
    if folder is not None:
        refuse_others(folder.path, SCENARIO, lambda: loaded.named)
    draw_soon(folder, world)
    with watching() as watch:
        results = api.run(
            loaded,
            world=world,
            seed=seed,
            seeds=seeds,
            repetitions=repetitions,
            attempts=attempts,
            qlog=qlog,
            pcap=pcap,
            snaplen=snaplen,
            log_limit=log_limit,
            watch=watch,
            begin=show_work,
            begin_logs=show_log_size,
        )
    note_unused(world, seeds=seeds != 1, repetitions=repetitions != 1)
    if as_json:
        print_json(results, folder, png=png)
        return
    screen = console()
    several = any(len(group.runs) > 1 for group in results.groups)
    if several:
        screen.print(tables.comparison(results), "")
    screen.print(tables.flows(results), tables.links(results), sep="\n")
    print_notes(tables.flow_notes(results))
    print_notes(tables.comparison_notes(results) if several else tables.run_notes(results))
    print_agreement(results)
    show_logs(results)
    write(results, folder, png=png)
