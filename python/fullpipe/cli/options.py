"""What the commands share: options, where to write, how to print. Results go to stdout, notes to stderr."""

import inspect
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fullpipe.advisor import goals
from fullpipe.evidence import LARGER
from fullpipe.report.streams import MISTAKE as MISTAKE
from fullpipe.report.streams import complain as complain
from fullpipe.report.streams import say as say
from fullpipe.runs.worlds import registry
from fullpipe.scenario.path import OPTIONS, Option
from fullpipe.text import counted, joined, minutes

if TYPE_CHECKING:
    from fullpipe.cli.progress import Watching
    from fullpipe.report.results import Results
    from fullpipe.report.screen import Screen
    from fullpipe.runs.engines import Engine

DISAGREE = 1

# From this estimate on, a command says beforehand how long its runs take.
WORTH_TELLING_S = 10.0


def path(given: str) -> Path:
    """An option or an argument that is a path. `~` is the home folder, even if no shell expanded it."""
    return Path(path_text(given))


def path_text(given: str) -> str:
    """The same as text, for values that may be a name instead of a path."""
    if not given.strip():
        raise typer.BadParameter(f'"{given}" is no path; give a path, or leave the option out')
    expanded = os.path.expanduser(given)  # noqa: PTH111
    if expanded.startswith("~"):
        raise typer.BadParameter(f'"{given}" names no home folder of a user; write "./{given}" for that name')
    return expanded


def complete_queues(incomplete: str) -> list[str]:
    """Names of queue disciplines for a shell's completion."""
    import json

    import fullpipe._native as _native

    names = [str(one["name"]) for one in json.loads(_native.queues())]
    return [name for name in names if name.startswith(incomplete)]


def use_stacks(given: list[str] | None) -> None:
    """Lets this process start the adapters that are named."""
    if given:
        from fullpipe.runs.worlds import stacks

        stacks.give([stacks.of_text(one) for one in given])


# A world in virtual time.
VirtualWorld = Annotated[
    str | None,
    typer.Option(
        help="sim, or quic: in a QUIC stack. With quic, a controller without a stack's name runs inside noq.",
        show_default="sim; quic for a controller inside a QUIC stack",
        autocompletion=lambda: ["sim", "quic"],
    ),
]

Stacks = Annotated[
    list[str] | None,
    typer.Option(
        "--stack",
        metavar="NAME=COMMAND",
        help="Add a stack: COMMAND starts its adapter (docs/how-to/stacks.md), and NAME:CONTROLLER is a "
        "controller in it. May be repeated.",
        show_default=False,
    ),
]


def path_options(
    *,
    ways: Sequence[str] = ("",),
    ranges: bool = False,
    required: Sequence[str] = (),
    defaults: Mapping[str, str] = MappingProxyType({}),
    more: Mapping[str, str] = MappingProxyType({}),
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command the options of a path, which it takes as `path`: the values of those that were given.

    `ways` are prefixes of options: "" for both ways, "up-" and "down-" for one. With `ranges`, the help says
    which may be a range. `defaults` are shown, and are up to the command; "" shows none.
    `more` are sentences that follow the help of an option for both ways.
    """

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        declared = inspect.signature(command).parameters
        options = {
            f"{way}{one.name}".replace("-", "_"): _path_option(
                one, way, ways, ranges, defaults, "" if way else more.get(one.name, "")
            )
            for way in ways
            for one in OPTIONS
            if one.ways == "both" or way == ""
        }
        made = {
            name: inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=annotation,
                default=inspect.Parameter.empty if name in required else value,
            )
            for name, (annotation, value) in options.items()
        }
        parameters: dict[str, inspect.Parameter] = {}
        for name, parameter in declared.items():
            parameters |= made if name == "path" else {name: parameter.replace(kind=parameter.KEYWORD_ONLY)}

        def called(**given: Any) -> None:
            message = {name: value for name in made if (value := given.pop(name)) not in (None, False)}
            command(**given, path=message)

        called.__name__, called.__doc__ = command.__name__, command.__doc__
        called.__module__ = command.__module__
        called.__annotations__ = {name: one.annotation for name, one in parameters.items()}
        vars(called)["__signature__"] = inspect.Signature(list(parameters.values()))
        return called

    return decorated


def check_link(path: Mapping[str, Any]) -> None:
    """Raises `ScenarioError` if a path has neither a rate nor a delivery trace."""
    from fullpipe.errors import unusable

    if "rate" not in path and "deliveries" not in path:
        raise unusable("--rate", "is missing", "add --rate '100 Mbit/s', or --deliveries with a file")


_PANELS = {
    "": "Both directions",
    "up-": "Up: from the command to the far end",
    "down-": "Down: to the command",
}


def _shown_default(one: Option, way: str, defaults: Mapping[str, str]) -> str | bool:
    """What the help says of a path's option that is not given; False is nothing."""
    if one.shape == "flag":
        return False
    if way:
        return f"that of --{one.option}"
    return defaults.get(one.name, one.default or "none") or False


def _path_option(
    one: Option, way: str, ways: Sequence[str], ranges: bool, defaults: Mapping[str, str], more: str
) -> tuple[Any, Any]:
    """The annotation and the default of an option of a path."""
    flag, file = one.shape == "flag", one.shape == "file"
    example = f", e.g. '{one.example}'" if one.example and not flag and one.shape != "queue" else ""
    asked = (
        f" A range, e.g. '{one.range}', means that the value is unknown; paths from all of the range are "
        "simulated for one answer."
        if ranges and one.range
        else ""
    )
    option = typer.Option(
        f"--{way}{one.option}",
        help=f"{one.summary}{example}.{more}{asked}",
        metavar="FILE" if file else None,
        parser=path_text if file else None,
        show_default=_shown_default(one, way, defaults),
        autocompletion=complete_queues if one.shape == "queue" else None,
        rich_help_panel=_PANELS[way] if len(ways) > 1 else None,
    )
    return (Annotated[bool, option], False) if flag else (Annotated[str | None, option], None)


def path_file(more: str = "") -> Any:
    """The option of commands that take the path of a scenario."""
    text = "Use the path of a scenario, e.g. one that `fullpipe probe` wrote." + more
    return typer.Option("--path", metavar="SCENARIO.toml", help=text, show_default="none", parser=path)


PathFile = Annotated[Path | None, path_file(" Options override it.")]


def path_with_file(file: Path | None, given: dict[str, Any], *, back: bool) -> dict[str, Any]:
    """The keys of a path: those of a file, if one is given, with options in place.

    `back`: the command has a way back, too; otherwise, one in the file is a note.
    """
    if file is None:
        return given
    from fullpipe.scenario import of_file

    own, reverse, notes = of_file.read(file, "file")
    if reverse is not None and not back:
        notes.append(f"{file.name} has a way back, which this command assumes to limit nothing")
    for note in notes:
        say(f"fullpipe: {note}")
    found = of_file.beside(given, own)
    return found if reverse is None or not back else {**found, "reverse": reverse}


Ecn = Annotated[
    bool,
    typer.Option("--ecn", help="Negotiate ECN (always on for controllers that need it)."),
]
Pacing = Annotated[
    bool,
    typer.Option(
        "--pacing/--no-pacing",
        help="--pacing: all flows are paced, as under fq. --no-pacing: only flows of BBR and the like.",
    ),
]
# In the help of an option: the names of the worlds, when the help is printed.
WORLDS = "{worlds}"
World = Annotated[
    str,
    typer.Option(help=f"{WORLDS}.", autocompletion=lambda: [*registry.names(), registry.ALL]),
]
Worlds = Annotated[
    str,
    typer.Option(metavar="OURS,THEIRS", help="The two worlds; the second is the reference."),
]
SEEDS_HELP = "In deterministic worlds, such as sim and quic: runs of each case, each with its own seed."
REPETITIONS_HELP = "Repetitions in worlds that take real time, such as kernel and qdisc."
ATTEMPTS_HELP = "How often at most a run in real time is tried until the emulator keeps up."
Seeds = Annotated[int, typer.Option(help=SEEDS_HELP)]
Repetitions = Annotated[int, typer.Option(help=REPETITIONS_HELP)]
Attempts = Annotated[int, typer.Option(help=ATTEMPTS_HELP)]
Scenario = Annotated[
    Path,
    typer.Argument(
        metavar="SCENARIO.toml",
        help="A scenario file (see `fullpipe schema`), or a name in scenarios/, e.g. policer.",
        parser=path,
    ),
]
Qlog = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Folder for a qlog of each run's packets.", show_default="none", parser=path
    ),
]
Pcap = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Folder for a pcapng file of each run.", show_default="none", parser=path
    ),
]
Png = Annotated[bool, typer.Option("--png", help="Write each figure as PNG, too.")]
Snaplen = Annotated[int, typer.Option(metavar="BYTES", help="Bytes of each packet that pcapng keeps.")]
LogLimit = Annotated[
    str,
    typer.Option(
        metavar="SIZE",
        help="Maximum size of all qlog and pcap files, e.g. '1 GB'; if more is estimated, nothing runs.",
    ),
]
ReplaceLarger = Annotated[
    bool,
    typer.Option(LARGER, help="With --record: overwrite a stored result even if it has more runs."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else on stdout.")]


def results_folder(default: str, *, json: bool = True) -> Any:
    """The option for a command's results; `default` is shown. `json`: the command has --json, too."""
    text = "Folder for report, figures and runs." + (
        " With --json, no folder is written unless --out is given." if json else ""
    )
    return typer.Option(help=text, show_default=default, parser=path)


def complete_controllers(incomplete: str) -> list[str]:
    """Names of controllers for a shell's completion."""
    import json

    import fullpipe._native as _native
    from fullpipe.runs.worlds import quic_program  # Without the worlds themselves: this is to be quick.

    known = [*json.loads(_native.controllers()), *quic_program.controllers()]
    names = [str(one["name"]) for one in known]
    return [name for name in names if name.startswith(incomplete)]


# What `advise` and `map` ask alike.
Competitors = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CC[:N]",
        help="Flows that share the path, e.g. cubic:3. May be repeated.",
        show_default="none",
        autocompletion=complete_controllers,
    ),
]
Candidates = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CC",
        help="Controllers to choose from. May be repeated.",
        show_default="those of this kernel",
        autocompletion=complete_controllers,
    ),
]
FLOW_SIZE_HELP = (
    "Size of the candidate's flows, which follow one after the other, e.g. '1 MB'; competitors stay long "
    "flows. --for throughput then means the completion time of the candidate's flows."
)
Goal = Annotated[
    str | None,
    typer.Option(
        "--for",
        help=f"What counts: {goals.NAMES}.",
        show_default=f"{goals.DEFAULT}; {goals.DEFAULT_SIZED} with --flow-size",
    ),
]


def engine_of(name: str, address: str | None, worlds: "Sequence[str]") -> "Engine | None":
    """The engine that was asked for; None for the local one."""
    from fullpipe.errors import mistake

    if name == "local":
        if address is not None:
            raise mistake("ray-address", address, "an engine that uses it", "add --engine ray")
        return None
    if name != "ray":
        raise mistake("engine", name, "local or ray", "name one of the two")
    for world in map(registry.named, worlds):
        if not world.on_clusters:
            fix = f"run the {world.place} with --engine local"
            raise mistake("engine", name, "a world that runs on clusters", fix)
    from fullpipe.runs.engines.ray import Ray

    return Ray(address)


def show_work(runs: int, seconds: float) -> None:
    """Says before the runs how long they take, if nobody would wait for that without a word."""
    if seconds >= WORTH_TELLING_S:
        say(f"fullpipe: {counted(runs, 'run')} to do, about {minutes(seconds)}")


def show_paths(paths: int, seconds: float, at_most: bool) -> None:
    """Says before the runs how many paths there are, and how long they take."""
    if seconds >= WORTH_TELLING_S:
        about = "at most" if at_most else "about"
        say(f"fullpipe: {counted(paths, 'path')} to answer, {about} {minutes(seconds)}")


def note_unused(world: str, *, seeds: bool, repetitions: bool) -> None:
    """Says of a given number of runs that no chosen world uses it."""
    counted_in = {one.deterministic for one in registry.chosen(world)}
    for option, given, deterministic in (("--seeds", seeds, True), ("--repetitions", repetitions, False)):
        if given and deterministic not in counted_in:
            others = [
                one.name
                for one in map(registry.named, registry.known())
                if one.deterministic is deterministic
            ]
            say(f"fullpipe: {option} has no effect with --world {world}; it counts runs of {joined(others)}")


def print_agreement(results: "Results") -> None:
    """Prints how far the worlds are apart, if two ran."""
    if results.agreement is not None:
        print(results.agreement.verdict)


def show_log_size(size: float) -> None:
    """Prints before the runs how large their logs become."""
    from fullpipe.runs.worlds.log_size import words

    say(f"fullpipe: the logs will have about {words(size)} (estimated)")


def show_logs(results: "Results") -> None:
    """Says where the logs are."""
    for run in results.runs:
        for one in run.logs:
            say(f"Log: {one}")


def print_json(results: "Results", folder: "Folder | None", *, png: bool = False) -> None:
    """Prints the results as JSON, and writes them if a folder is given."""
    for note in results.notes:
        say(f"fullpipe: {note}")
    print(results.to_json())
    show_logs(results)
    write(results, folder, png=png)


def print_notes(notes: Sequence[str]) -> None:
    """Prints notes about the table above."""
    for note in notes:
        print(note)


@dataclass(frozen=True)
class Folder:
    """A folder to write into. It is created when there are results; a rejected command creates none."""

    path: Path
    new: bool  # Whether it must be new: then a number is added to a name that is taken.

    def create(self) -> Path:
        """Creates it if it is missing, and returns its path."""
        from fullpipe import files

        if self.new:
            return files.new_folder(self.path)
        files.make_folder(self.path)
        return self.path


def write(results: "Results", folder: Folder | None, *, png: bool = False) -> None:
    """Writes the results, with `png` figures also as PNG, and prints where."""
    if folder is None:
        if png:
            say("fullpipe: --png has no effect without --out, because nothing is written")
        return
    import contextlib

    errors = console(stderr=True)
    showing = errors.status("Drawing the report") if errors.is_terminal else contextlib.nullcontext()
    with showing:
        written = results.write(folder.create(), png=png)
    say(f"Report: {written / 'report.html'}")


def draw_soon(folder: Folder | None, world: str) -> None:
    """Prepares to draw results during their runs, unless these are of a world that measures real time."""
    if folder is not None and world == registry.DEFAULT:
        from fullpipe.report.figures.svg import warm_up

        warm_up()


def folder_for(given: Path | None, stem: str, *, wanted: bool) -> Folder | None:
    """The folder to write into: the one given, else a new one in `out` if one is `wanted`.

    Creates nothing. A folder that cannot be written into is an error now, not after the runs.
    """
    if given is None and not wanted:
        return None
    path = given or Path("out") / f"{stem}-{time.strftime('%Y%m%d-%H%M%S')}"
    check_folder(path)
    return Folder(path, new=given is None)


def check_folder(path: Path) -> None:
    """Raises `ScenarioError` if a folder cannot be written into, or has somebody's files. Creates nothing."""
    from fullpipe import files
    from fullpipe.errors import mistake

    if (reason := files.obstacle(path)) is not None:
        raise mistake("out", str(path), f"a folder to write into ({reason})", "name another folder")
    if (name := files.stranger(path)) is not None:
        expected = f"a new or empty folder, or one with earlier results (it has {name}, and none of these)"
        raise mistake("out", str(path), expected, "name another folder")


def check_file(path: Path, field: str = "out") -> None:
    """Raises `ScenarioError` if a file cannot be written. Creates nothing."""
    from fullpipe import files
    from fullpipe.errors import mistake

    if (reason := files.file_obstacle(path)) is not None:
        raise mistake(field, str(path), f"a file to write ({reason})", "name another file")


def plain(name: str) -> str:
    """The name with only characters that any file system takes, and short enough for a file name."""
    from fullpipe import files

    return files.shortened(name)


def console(stderr: bool = False) -> "Screen":
    """Where tables are printed."""
    from fullpipe.report.screen import Screen

    return Screen(stderr=stderr)


def watching() -> "Watching":
    """Shows progress on stderr while its block runs."""
    from fullpipe.cli.progress import Watching

    return Watching(console(stderr=True))
