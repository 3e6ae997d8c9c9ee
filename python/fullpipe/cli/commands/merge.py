"""`fullpipe merge`, and the option `--shard` of the commands whose folders it brings together."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fullpipe.cli.options import check_folder, console, path, say
from fullpipe.text import counted

if TYPE_CHECKING:
    from fullpipe.runs.engines import Engine
    from fullpipe.runs.engines.task import Task

FAILED = 1
ShardOption = Annotated[
    str | None,
    typer.Option(
        "--shard",
        metavar="I/N",
        help="Do only runs I, I+N, I+2N and so on of all runs, and no report. See `fullpipe merge`.",
        show_default="all runs",
    ),
]


def merge(
    shards: Annotated[
        list[Path],
        typer.Argument(metavar="FOLDER...", help="The folder that each shard wrote.", parser=path),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the runs of all shards.", parser=path)],
) -> None:
    """Combine the parts of a command that several machines ran with --shard.

    First, each machine runs the command with its --shard, from 1/N to N/N. Then `fullpipe merge` copies the
    runs of their folders into one, --out. Finally, run the same command again with that --out and without
    --shard: it finds every run there, runs none, and writes the report.

    It refuses to merge if a shard or a run is missing, if the folders are of different commands, or if two
    folders have the same run of a deterministic world with different results.
    """
    from fullpipe import files
    from fullpipe.runs import shards as parts

    check_folder(out)
    with files.runs_kept(out):
        merged = parts.merge(shards, out)
    of = counted(merged.shards, "shard")
    print(f"{counted(merged.runs, 'run')} of {of} are in {out}; {merged.new} are new")
    if merged.measured_twice:
        print(
            f"{counted(merged.measured_twice, 'run')} of several shards differ in wall time; the first counts"
        )
    if merged.failed:
        print(f"{counted(merged.failed, 'run')} failed and will be tried again")
    say(f"fullpipe: for the report, give the same command without --shard, with --out {out}")


def carry_out_shard(
    given: str, tasks: "Sequence[Task]", folder: Path, engine: "Engine | None", attempts: int | None = None
) -> int:
    """Runs a shard of a command's runs, without a report. Returns how many failed."""
    from fullpipe import files
    from fullpipe.cli.sweep_progress import Watched
    from fullpipe.runs import shards as parts
    from fullpipe.runs.engines.local import Local
    from fullpipe.runs.sweep import ATTEMPTS

    chosen = parts.shard(given)
    files.make_folder(folder)
    try:
        with files.runs_kept(folder), Watched(console(stderr=True), say, f"shard {chosen}") as watch:
            outcome = parts.carry_out(
                chosen, tasks, folder, engine or Local(), attempts=attempts or ATTEMPTS, watch=watch
            )
    except KeyboardInterrupt:
        say(f"fullpipe: finished runs are kept in {folder}; the same command resumes")
        raise
    for failed in outcome.failed:
        say(f"fullpipe: {failed.task.name} failed: {failed.reason}")
    print(f"Shard {chosen}: {counted(len(outcome.stored), 'run')} in {folder}")
    say(f"fullpipe: `fullpipe merge` merges the folders of all {counted(chosen.of, 'shard')}")
    return len(outcome.failed)
