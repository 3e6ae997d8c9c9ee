"""`fullpipe compare`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fullpipe.cli.options import (
    REPETITIONS_HELP,
    SEEDS_HELP,
    WORLDS,
    AsJson,
    Attempts,
    Ecn,
    LogLimit,
    PathFile,
    Pcap,
    Png,
    Qlog,
    Snaplen,
    Stacks,
    check_link,
    complete_controllers,
    console,
    draw_soon,
    folder_for,
    note_unused,
    path_options,
    path_with_file,
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
from fullpipe.cli.programs import client_option, programs, sender_option, server_option
from fullpipe.errors import unusable
from fullpipe.runs.worlds import registry
from fullpipe.runs.worlds.logs import LIMIT, SNAPLEN

if TYPE_CHECKING:
    from fullpipe.report.results import Results
    from fullpipe.scenario.controllers import Chosen
    from fullpipe.scenario.programs import Program


@path_options(
    defaults={"rate": "", "rtt": ""},
    more={
        "rate": " Needed, unless --deliveries or --path is given.",
        "rtt": " Needed, unless --path is given.",
    },
)
def compare(
    path: dict[str, Any],
    controllers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CC...",
            help="Controllers, e.g. bbr1 cubic bbr1:probe_gain=1.5, or noq:bbr3 with --world quic, where one "
            "without a stack's name runs inside noq. Needed without --program.",
            autocompletion=complete_controllers,
            show_default=False,
        ),
    ] = None,
    program: Annotated[
        list[str] | None,
        client_option(
            'Command of a client, e.g. "iperf3 -c {server} -t 5"; needs --server. May be repeated.'
        ),
    ] = None,
    server: Annotated[list[str] | None, server_option(" One for each --program.")] = None,
    sender: Annotated[list[str] | None, sender_option(" One for all, or for each --program.")] = None,
    file: PathFile = None,
    ecn: Ecn = False,
    duration: Annotated[str, typer.Option(help="Duration of each run.")] = "20 s",
    flows: Annotated[int, typer.Option(help="Flows of the same controller in each run.")] = 1,
    seeds: Annotated[int | None, typer.Option(help=SEEDS_HELP, show_default="5")] = None,
    repetitions: Annotated[int | None, typer.Option(help=REPETITIONS_HELP, show_default="3")] = None,
    attempts: Attempts = 3,
    world: Annotated[
        str | None,
        typer.Option(
            help=f"{WORLDS}.",
            autocompletion=lambda: [*registry.names(), registry.ALL],
            show_default=f"{registry.DEFAULT}; kernel with --program",
        ),
    ] = None,
    stack: Stacks = None,
    out: Annotated[Path | None, results_folder("out/compare-...")] = None,
    qlog: Qlog = None,
    pcap: Pcap = None,
    snaplen: Snaplen = SNAPLEN,
    log_limit: LogLimit = LIMIT,
    png: Png = False,
    as_json: AsJson = False,
) -> None:
    """Compare controllers, each alone on the path; print a table and write a report."""
    use_stacks(stack)
    from fullpipe import api
    from fullpipe.conformance.programs.case import name_of
    from fullpipe.scenario import scenario

    given = programs(program or [], server or [], sender or [])
    compared: list[Chosen | Program] = [*(controllers or []), *given]
    if not compared:
        raise unusable("CC", "is missing", "name a controller, e.g. bbr1, or give --program and --server")
    path = path_with_file(file, path, back=True)
    check_link(path)
    if "rtt" not in path:
        raise unusable("--rtt", "is missing", "add --rtt '40 ms', or --path with a scenario file")
    world = world or ("kernel" if program else registry.DEFAULT)
    names = [*(controllers or []), *(name_of(one.client) for one in given)]
    folder = folder_for(out, f"compare-{plain('-'.join(names))}", wanted=not as_json)
    path = path | {"duration": duration, "flows": flows, "ecn": ecn}
    if folder is not None:
        refuse_others(folder.path, SCENARIO, lambda: scenario.comparison(compared, **path).named)
    draw_soon(folder, world)
    with watching() as watch:
        results = api.compare(
            compared,
            **path,
            seeds=seeds,
            repetitions=repetitions,
            attempts=attempts,
            qlog=qlog,
            pcap=pcap,
            snaplen=snaplen,
            log_limit=log_limit,
            world=world,
            watch=watch,
            begin=show_work,
            begin_logs=show_log_size,
        )
    note_unused(world, seeds=seeds is not None, repetitions=repetitions is not None)
    if as_json:
        print_json(results, folder, png=png)
        return
    _show_comparison(results)
    show_logs(results)
    write(results, folder, png=png)


def _show_comparison(results: "Results") -> None:
    from fullpipe.report import tables

    console().print(tables.comparison(results))
    print_notes(tables.comparison_notes(results))
    print_agreement(results)
