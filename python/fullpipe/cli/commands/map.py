"""`fullpipe map`."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from fullpipe.cli.commands.merge import FAILED, ShardOption, carry_out_shard
from fullpipe.cli.options import (
    FLOW_SIZE_HELP,
    Candidates,
    Competitors,
    Ecn,
    Goal,
    Pacing,
    PathFile,
    check_folder,
    console,
    engine_of,
    path_options,
    path_with_file,
    results_folder,
    say,
)
from fullpipe.cli.other_results import MAP, refuse_others
from fullpipe.runs.worlds import registry
from fullpipe.scenario.path import OPTIONS
from fullpipe.text import joined

_AXES = joined([one.name for one in OPTIONS if one.range], "or")


@path_options(defaults={"rate": "100 Mbit/s", "rtt": "40 ms"})
def map_(
    x: Annotated[
        str,
        typer.Option(
            "--x", metavar="WHAT=LOW..HIGH", help=f"Horizontal axis: {_AXES}, e.g. rate=1mbit..1gbit."
        ),
    ],
    y: Annotated[
        str, typer.Option("--y", metavar="WHAT=LOW..HIGH", help="Vertical axis, e.g. rtt=5ms..300ms.")
    ],
    path: dict[str, Any],
    file: PathFile = None,
    ecn: Ecn = False,
    competitors: Competitors = None,
    flow_size: Annotated[str | None, typer.Option(help=FLOW_SIZE_HELP, show_default="long flows")] = None,
    pacing: Pacing = True,
    goal: Goal = None,
    candidates: Candidates = None,
    steps: Annotated[int, typer.Option(help="Values on each axis, evenly on a logarithmic scale.")] = 12,
    seeds: Annotated[
        int, typer.Option(help="Runs of each candidate at each point, each with its own seed.")
    ] = 3,
    tree: Annotated[
        bool,
        typer.Option(
            "--tree",
            help="Also write a decision tree, and test it on random paths between the map's points.",
        ),
    ] = False,
    engine: Annotated[str, typer.Option(help="local, or ray for a cluster.")] = "local",
    ray_address: Annotated[
        str | None,
        typer.Option(
            help="A Ray cluster's address, e.g. ray://host:10001.", show_default="a new one on this machine"
        ),
    ] = None,
    shard: ShardOption = None,
    out: Annotated[Path | None, results_folder("out/map", json=False)] = None,
) -> None:
    """Map which congestion control is best, over two quantities of the path."""
    from fullpipe import files
    from fullpipe.advisor import Question, map_page, question
    from fullpipe.advisor import map as maps
    from fullpipe.cli.sweep_progress import Watched
    from fullpipe.runs.store import Store

    axes = dict(maps.axis(name, given) for name, given in (("x", x), ("y", y)))
    across, upwards = (maps.axis(name, given)[0] for name, given in (("x", x), ("y", y)))
    path = path_with_file(file, path, back=False)
    assumed = {"rtt": "40 ms"} if "deliveries" in path else {"rate": "100 Mbit/s", "rtt": "40 ms"}
    asked = Question(
        **question.path_of({**assumed, **path}),
        ecn=ecn,
        competitors=question.competitors(competitors or []),
        flow_size=flow_size,
        pacing=pacing,
        candidates=tuple(candidates or ()),
    )
    plan = maps.ask(replace(asked, **axes), across, upwards, goal=goal, steps=steps, seeds=seeds, tree=tree)
    folder = out or Path("out") / "map"
    check_folder(folder)
    refuse_others(folder, MAP, lambda: "map")
    carrier = engine_of(engine, ray_address, [registry.DEFAULT])
    if shard is not None:
        if carry_out_shard(shard, plan.tasks(), folder, carrier):
            raise typer.Exit(FAILED)
        return
    files.make_folder(folder)
    try:
        with files.runs_kept(folder), Watched(console(stderr=True), say, "map") as watch:
            found = maps.draw(plan, Store(folder), carrier, watch=watch)
    except KeyboardInterrupt:
        say(f"fullpipe: finished runs are kept in {folder}; the same command resumes")
        raise
    with files.runs_kept(folder):
        written = map_page.write(found, folder)
    print(found)
    if found.tree is not None:
        print(f"\n{found.tree.rules()}\n{found.tree}")
    say(f"Map: {written}")
