"""The command line. Results go to stdout; progress, notes and errors to stderr.

Exit codes: 0 done, 1 ours and the kernel's do not agree (`agree`, `replay`) or the emulator is wrong (`kernel
check`), 2 a mistake in what was asked, 130 interrupted.
Heavy modules are imported by the command that needs them, so that `--help` answers at once.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from fullpipe.agreement import TOLERANCES
from fullpipe.studies.command import app as study

if TYPE_CHECKING:
    from rich.console import Console

    from fullpipe.results import Results
    from fullpipe.watching import Watching

MISTAKE = 2
DISAGREE = 1

# Wide enough for every table where nobody's window limits it.
_PIPE_WIDTH = 160


class _Commands(TyperGroup):
    """The commands, with every expected error as one sentence on stderr and an exit code."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Runs a command and, in standalone mode, leaves with its exit code."""

        def command() -> object:
            name = prog_name or "fullpipe"
            return super(_Commands, self).main(args, name, complete_var, False, windows_expand_args, **extra)

        code = _guarded(command)
        if standalone_mode:
            sys.exit(code)
        return code


def _guarded(command: Callable[[], object]) -> int:
    """The command's exit code; errors that a user can mend become a sentence."""
    try:
        code = command()
        return code if isinstance(code, int) else 0
    except typer.TyperException as error:
        message = error.format_message().strip().rstrip(".")
        return _complain(f"{message}; see `fullpipe --help`" if message else "see `fullpipe --help`")
    except typer.Abort:
        raise KeyboardInterrupt from None
    except Exception as error:
        from fullpipe import _native
        from fullpipe.errors import SweepError

        if isinstance(error, _native.ScenarioError | _native.WorldError | _native.TraceError | SweepError):
            return _complain(str(error))
        raise


def _complain(sentence: str) -> int:
    _say(f"fullpipe: {sentence}")
    return MISTAKE


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


app = typer.Typer(
    cls=_Commands,
    name="fullpipe",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Congestion control on one path: simulated, and over this machine's own Linux TCP.",
    context_settings={"help_option_names": ["-h", "--help"]},
)

Rate = Annotated[str, typer.Option(help="Rate of the bottleneck, e.g. '100 Mbit/s' or 100mbit.")]
Rtt = Annotated[str, typer.Option(help="Round-trip time of the empty path, e.g. '40 ms'.")]
Buffer = Annotated[str, typer.Option(help="Queue of the bottleneck, e.g. '1 bdp' or '100 KB'.")]
Loss = Annotated[str | None, typer.Option(help="Random loss, e.g. '0.1 %'.", show_default="none")]
World = Annotated[str, typer.Option(help="sim, kernel or all.")]
Seeds = Annotated[int, typer.Option(help="How many seeds the simulator runs.")]
Repetitions = Annotated[int, typer.Option(help="How often the kernel world repeats a run, in wall time.")]
Scenario = Annotated[
    Path, typer.Argument(metavar="SCENARIO.toml", help="A scenario file; see `fullpipe schema`.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else on stdout.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        from fullpipe import _native

        print(f"fullpipe {_native.version()}")
        raise typer.Exit()


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def compare(
    controllers: Annotated[
        list[str], typer.Argument(metavar="CC...", help="Controllers, e.g. bbr1 cubic bbr1:probe_gain=1.5.")
    ],
    rate: Rate,
    rtt: Rtt,
    buffer: Buffer = "1 bdp",
    loss: Loss = None,
    duration: Annotated[str, typer.Option(help="How long each run takes.")] = "20 s",
    flows: Annotated[int, typer.Option(help="Flows of the same controller in each run.")] = 1,
    seeds: Seeds = 5,
    repetitions: Repetitions = 3,
    world: World = "sim",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for report, figures and runs; with --json nothing is written without it.",
            show_default="out/compare-...",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare controllers, each alone on the path; print a table and write a report."""
    from fullpipe import api

    folder = _folder(out, f"compare-{_plain('-'.join(controllers))}", wanted=not as_json)
    with _watching() as watch:
        results = api.compare(
            controllers,
            rate=rate,
            rtt=rtt,
            buffer=buffer,
            loss=loss,
            duration=duration,
            flows=flows,
            seeds=seeds,
            repetitions=repetitions,
            world=world,
            watch=watch,
        )
    if as_json:
        for note in results.notes:
            _say(f"fullpipe: {note}")
        _write(results, folder)
        print(results.to_json())
        return
    _show_comparison(results)
    _write(results, folder)


@app.command()
def run(
    scenario: Scenario,
    world: World = "sim",
    seed: Annotated[
        int | None, typer.Option(help="Seed of every random stream.", show_default="the scenario's")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for report, figures and runs.", show_default="out/NAME-...")
    ] = None,
) -> None:
    """Run a scenario once and print what its flows and queues did."""
    from fullpipe import api, tables

    loaded = api.load(scenario)
    folder = _folder(out, _plain(loaded.name), wanted=True)
    with _watching() as watch:
        results = api.run(loaded, world=world, seed=seed, watch=watch)
    console = _console()
    console.print(tables.flows(results), tables.links(results), sep="\n")
    _print_notes(tables.run_notes(results))
    _write(results, folder)


@app.command(
    help="Run a scenario, or a grid of them, in the simulator and over the kernel; say how far they are "
    f"apart. Exit code 1: too far.\n\nTolerances of a scenario: {TOLERANCES}. The simulator's mean within "
    "the range of the kernel's own repetitions counts as agreement. Seeds count upwards from the scenario's "
    "own.\n\nA grid prints the differences cell by cell and holds them against its targets. Given the same "
    "folder again, it goes on where it stopped."
)
def agree(
    scenario: Annotated[
        Path | None,
        typer.Argument(
            metavar="SCENARIO.toml", help="A scenario file; see `fullpipe schema`.", show_default="none"
        ),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(help="How many seeds the simulator runs.", show_default="5; a grid 10")
    ] = None,
    repetitions: Annotated[
        int | None, typer.Option(help="How often the kernel world repeats a run.", show_default="3")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for report, figures and runs.", show_default="none; a grid out/grid-NAME"),
    ] = None,
    grid: Annotated[
        str | None,
        typer.Option(help="A grid instead: a file, or one of scenarios/grids.", show_default="none"),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Only the grid's quick cells, shorter.")] = False,
    only: Annotated[
        str | None,
        typer.Option(metavar="PATTERN", help="Only cells so named, e.g. 'bbr1*'.", show_default="all"),
    ] = None,
    attempts: Annotated[
        int | None,
        typer.Option(help="How often an untrustworthy kernel run of a grid is tried.", show_default="3"),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option("--write-table", help="Document to put the grid's table into.", show_default="none"),
    ] = None,
    plan_only: Annotated[
        bool, typer.Option("--list", help="Print the grid's cells and how long they take; run nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Prints what `fullpipe.agree` finds, or a grid."""
    from fullpipe import api, tables
    from fullpipe.errors import mistake, unfit

    if (scenario is None) == (grid is None):
        given = "neither" if grid is None else "both"
        raise mistake("agree", given, "a scenario or a grid", "name one file, or one --grid")
    if grid is not None:
        from fullpipe.grid import command

        if table is not None and only is not None:
            # A part of the grid would stand where the whole is expected.
            raise unfit("--write-table", "cannot be used with --only", "leave out one of the two")
        plan = command.plan(
            grid, quick=quick, only=only, seeds=seeds, repetitions=repetitions, attempts=attempts
        )
        if plan_only:
            command.listing(plan, _console(), as_json=as_json)
            return
        place = _folder(out or Path("out") / f"grid-{_plain(plan.grid.name)}", "", wanted=True)
        assert place is not None
        errors = _console(stderr=True)
        met = command.agree(
            plan, place, console=_console(), errors=errors, say=_say, table=table, as_json=as_json
        )
        if not met:
            raise typer.Exit(DISAGREE)
        return
    for option, asked in {
        "--quick": quick,
        "--only": only is not None,
        "--attempts": attempts is not None,
        "--write-table": table is not None,
        "--list": plan_only,
        "--json": as_json,
    }.items():
        if asked:
            raise unfit(option, "needs a grid", "name one with --grid")
    assert scenario is not None
    loaded = api.load(scenario)
    folder = _folder(out, _plain(loaded.name), wanted=False)
    with _watching() as watch:
        found = api.agree(
            loaded,
            seeds=api.SEEDS if seeds is None else seeds,
            repetitions=api.REPETITIONS if repetitions is None else repetitions,
            watch=watch,
        )
    _console().print(tables.checks(found.checks))
    _print_notes(tables.run_notes(found.results))
    print(found.verdict)
    _write(found.results, folder)
    if not found.agrees:
        raise typer.Exit(DISAGREE)


@app.command(context_settings={"allow_interspersed_args": False})
def shell(
    rtt: Rtt,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="-- COMMAND...", help="What to run behind the path.", show_default="your shell"
        ),
    ] = None,
    rate: Annotated[
        str | None, typer.Option(help="Rate of the bottleneck; or a --trace.", show_default="none")
    ] = None,
    buffer: Annotated[str | None, typer.Option(help="Queue of the bottleneck.", show_default="1 bdp")] = None,
    loss: Loss = None,
    trace: Annotated[
        str | None, typer.Option(help="Mahimahi delivery trace to follow.", show_default="none")
    ] = None,
    server: Annotated[
        str | None, typer.Option(metavar="COMMAND", help="What to run at the far end.", show_default="none")
    ] = None,
) -> None:
    """Run a command, or a shell, behind an emulated path. Shells nest."""
    import shlex

    from fullpipe import scenario
    from fullpipe.errors import mistake

    path = scenario.path_document(rate=rate, rtt=rtt, buffer=buffer, loss=loss, trace=trace)
    if rate is not None:
        # Packets to the command meet the same link as packets from it, as on an access line.
        path["path"]["reverse"] = {"rate": rate, "buffer": buffer or "1 bdp"}
    # A scenario needs a flow; this one never runs. What runs behind the path chooses its own algorithm.
    document = {"name": "shell", **path, "flows": [{"controller": "reno"}]}
    spec = scenario.from_document(document, base_dir=Path.cwd()).alternatives[0].spec_json
    try:
        far_end = shlex.split(server) if server is not None else None
    except ValueError as error:
        raise mistake("server", server, f"a command line ({error})", "close the quotation") from None
    request = json.dumps({"spec": spec, "command": command or [], "server": far_end})
    sys.stdout.flush()
    # The shell enters namespaces, so this process becomes a fresh one.
    os.execv(sys.executable, [sys.executable, "-m", "fullpipe.worlds._shell_child", request])


kernel = typer.Typer(no_args_is_help=True, help="What only this machine's own TCP can tell.")
app.add_typer(kernel, name="kernel")
app.add_typer(study, name="study")


@kernel.command()
def record(
    algorithm: Annotated[str, typer.Option("--cc", help="What to record: bbr or cubic.")],
    out: Annotated[Path, typer.Option(metavar="TRACE", help="The file to write.")],
    scenario: Annotated[
        Path | None,
        typer.Argument(
            metavar="SCENARIO.toml",
            help="A scenario file, instead of the options for the path.",
            show_default="none",
        ),
    ] = None,
    rate: Annotated[str | None, typer.Option(help="Rate of the bottleneck.", show_default="none")] = None,
    rtt: Annotated[str | None, typer.Option(help="Round-trip time.", show_default="none")] = None,
    buffer: Annotated[str | None, typer.Option(help="Queue of the bottleneck.", show_default="1 bdp")] = None,
    loss: Loss = None,
    duration: Annotated[str | None, typer.Option(help="How long to record.", show_default="10 s")] = None,
    flows: Annotated[
        int | None, typer.Option(help="How many flows of the algorithm.", show_default="1")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of the path's random elements.", show_default="the scenario's")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Record what the kernel's BBR or CUBIC is told and decides, call by call. Needs root, clang and libbpf.

    In a scenario, the flows that use the algorithm are recorded, the others run beside them.
    """
    from fullpipe import api, tables, traces
    from fullpipe.errors import mistake

    algorithm = traces.known_algorithm(algorithm)
    if scenario is None:
        loaded = traces.plain_scenario(
            algorithm, rate=rate, rtt=rtt, buffer=buffer, loss=loss, duration=duration, flows=flows
        )
    else:
        plain = {"rate": rate, "rtt": rtt, "buffer": buffer, "loss": loss, "duration": duration}
        for name, given in {**plain, "flows": flows}.items():
            if given is not None:
                raise mistake(name, given, "no path beside a scenario", f"leave out --{name} or the scenario")
        loaded = api.load(scenario)
    _check_file(out)
    with _watching() as watch:
        recording = traces.record(
            loaded, algorithm, seed=seed, progress=lambda done: watch("kernel", done, 1)
        )
    recording.write(out)
    if as_json:
        print(json.dumps({**recording.summary, "trace": str(out), "bytes": len(recording.trace)}))
        return
    _console().print(tables.recording(recording))
    print(tables.recording_total(recording, out))


@kernel.command()
def check(
    quick: Annotated[
        bool, typer.Option("--quick", help="Up to 500 Mbit/s and briefly, under half a minute.")
    ] = False,
    as_json: AsJson = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print the table in Markdown.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder for figure, measures and every packet.", show_default="none")
    ] = None,
) -> None:
    """Is the emulator true on this machine? Measures it from both ends, against what is asked, without TCP.

    Sends numbered and stamped packets at a fixed rate over the paths that runs use, and compares delay, rate,
    queue, drops, random losses and order. `fullpipe doctor` then says how far the kernel world can be
    trusted; a quick check leaves it what a full one of this machine found. Exit code 1: the emulator is
    untrue at some rate, or can be trusted at none.
    """
    from fullpipe import kernel_check, tables, trust
    from fullpipe.errors import unfit

    if as_json and as_markdown:
        raise unfit("--json", "cannot be used with --markdown", "leave out one of the two")
    folder = _folder(out, "check", wanted=False)
    began, load = time.monotonic(), trust.Load()
    with _watching() as watch:
        verdicts = kernel_check.run(
            kernel_check.plan(quick), lambda done, total: watch("kernel", done, total)
        )
    found = trust.Trust.of(verdicts, quick=quick, took_s=time.monotonic() - began, load=load)
    fuller = found.keep()
    if as_json:
        rates = [one.to_json() for one in verdicts]
        print(
            json.dumps({**found.to_json(), "tolerances": kernel_check.TOLERANCES, "rates": rates}, indent=2)
        )
    elif as_markdown:
        print(tables.emulator_markdown(verdicts))
    else:
        _console().print(tables.emulator(verdicts))
    if not as_json:
        _print_notes([*tables.emulator_notes(verdicts), found.statement, f"Measured: {found.conditions}."])
    if folder is not None:
        from fullpipe.figures import emulator

        emulator.write(verdicts, found, folder)
        _say(f"Figure and packets: {folder}")
    if fuller is not None:
        _say(f"`fullpipe doctor` keeps to the full check of {fuller.when}")
    if not found.true_bps or any(one.word == kernel_check.UNTRUE for one in verdicts):
        raise typer.Exit(DISAGREE)


@app.command()
def replay(
    files: Annotated[list[Path], typer.Argument(metavar="TRACE...", help="What `kernel record` wrote.")],
    coverage: Annotated[
        bool, typer.Option("--coverage", help="Show which branches of the controller the calls reached.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Replay recorded calls against the controllers here. Exit code 1: some call was decided otherwise."""
    from fullpipe import _native, tables, traces

    reports = []
    unreadable = False
    for file in files:
        try:
            reports.append(traces.replay(file))
        except _native.TraceError as error:
            _complain(str(error))
            unreadable = True
    if as_json:
        print(json.dumps(reports, indent=2))
    elif reports:
        console = _console()
        console.print(tables.replays(reports))
        for report in reports:
            _print_notes(tables.disagreements(report))
            if report["difference"] is not None:
                console.print(tables.difference(report))
        if coverage:
            for table in tables.coverage(reports):
                console.print(table)
        print(tables.replays_total(reports))
    if unreadable:
        raise typer.Exit(MISTAKE)
    if not all(report["agrees"] for report in reports):
        raise typer.Exit(DISAGREE)


trace = typer.Typer(no_args_is_help=True, help="Traces: deliveries that a link follows, flows that arrive.")
app.add_typer(trace, name="trace")


@trace.command()
def generate(
    mean: Annotated[str, typer.Option(help="Mean rate, e.g. '10 Mbit/s' or 10mbit.")],
    out: Annotated[Path, typer.Option(metavar="TRACE", help="The file to write.")],
    duration: Annotated[str, typer.Option(help="How long the trace is before it repeats.")] = "60 s",
    seed: Annotated[int, typer.Option(min=0, help="Which of all such traces.")] = 1,
) -> None:
    """Make up the delivery trace of a plausible cellular link, for `trace` in a scenario's path.

    The rate wanders by a factor of two within seconds, with an outage now and then. Mahimahi reads it too.
    """
    from fullpipe import cellular

    _check_file(out)
    opportunities = cellular.generate(mean=mean, duration=duration, seed=seed)
    out.write_text(cellular.text(opportunities), encoding="ascii")
    seconds = opportunities[-1] / 1000
    megabits = len(opportunities) * cellular.OPPORTUNITY_BITS / seconds / 1e6
    print(f"{out}: {len(opportunities)} opportunities in {seconds:g} s, {megabits:.3g} Mbit/s on average")


@trace.command()
def flows(
    out: Annotated[Path, typer.Option(metavar="PARQUET", help="The file to write.")],
    capture: Annotated[
        Path | None,
        typer.Argument(metavar="CAPTURE.pcap", help="pcap or pcapng, headers suffice.", show_default="none"),
    ] = None,
    synthetic: Annotated[
        bool, typer.Option("--synthetic", help="Make flows up like those of a MAWI trace (ccwg25).")
    ] = False,
    count: Annotated[
        int | None, typer.Option("--flows", min=1, help="How many to make up.", show_default="890000")
    ] = None,
    duration: Annotated[
        float | None,
        typer.Option(min=0.001, help="Seconds in which those start.", show_default="as many as ccwg25 has"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Which of all such lists.")] = 1,
) -> None:
    """List the TCP flows of a packet capture: when each began, what it sent, where it paused for over 100 ms.

    For `fullpipe study run ccwg25.short`, which takes the file that FULLPIPE_FLOWS names.
    """
    from fullpipe.arrivals import flow_list
    from fullpipe.arrivals import synthetic as made_up
    from fullpipe.errors import mistake, unfit

    if (capture is None) != synthetic:
        given = "neither" if capture is None else "both"
        raise mistake("flows", given, "a capture or --synthetic", "name a file, or give --synthetic")
    for option, asked in {"--flows": count, "--duration": duration}.items():
        if asked is not None and not synthetic:
            raise unfit(option, "needs --synthetic", "leave it out")
    _check_file(out)
    if capture is not None:
        frame, lasts_s = flow_list.of_capture(capture)
        if (note := flow_list.disorder(frame)) is not None:
            _say(f"fullpipe: {note}")
    else:
        number = count or made_up.FLOWS
        lasts_s = duration or made_up.seconds(number)
        frame = made_up.draw(flows=number, seconds=lasts_s, seed=seed)
    flow_list.write(frame, out)
    print(f"{out}: {flow_list.summary(frame, lasts_s)}")


@app.command()
def controllers(as_json: AsJson = False) -> None:
    """List the congestion controllers and their parameters."""
    from fullpipe import api, tables

    if as_json:
        print(json.dumps(api.controllers(), indent=2))
        return
    _console().print(tables.controllers(api.controllers()))


@app.command()
def schema() -> None:
    """Print the JSON Schema of a scenario."""
    from fullpipe import api

    print(json.dumps(api.schema(), indent=2))


@app.command()
def doctor(as_json: AsJson = False) -> None:
    """Say what this machine can do, what is missing, and how to mend it."""
    from dataclasses import asdict

    from fullpipe import doctor as examination
    from fullpipe import tables

    found = examination.checks()
    if as_json:
        print(json.dumps([asdict(one) for one in found], indent=2))
        return
    _console().print(tables.diagnosis(found))


def _show_comparison(results: "Results") -> None:
    from fullpipe import tables

    _console().print(tables.comparison(results))
    _print_notes(tables.comparison_notes(results))


def _print_notes(notes: Sequence[str]) -> None:
    for note in notes:
        print(note)


def _write(results: "Results", folder: Path | None) -> None:
    """Writes the results and says where."""
    if folder is None:
        return
    import contextlib

    errors = _console(stderr=True)
    showing = errors.status("Drawing the report") if errors.is_terminal else contextlib.nullcontext()
    with showing:
        results.write(folder)
    _say(f"Report: {folder / 'report.html'}")


def _folder(given: Path | None, stem: str, *, wanted: bool) -> Path | None:
    """Where to write; made now, so that a folder that cannot be made is found out before the runs."""
    if given is None and not wanted:
        return None
    folder = given or Path("out") / f"{stem}-{time.strftime('%Y%m%d-%H%M%S')}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK):
            raise PermissionError(13, "Permission denied")
    except OSError as error:
        from fullpipe.errors import mistake

        raise mistake(
            "out", str(folder), f"a folder to write into ({error.strerror})", "name another with --out"
        ) from None
    return folder


def _check_file(path: Path) -> None:
    """That a file can be written there; found out before it is made."""
    from fullpipe.errors import mistake

    reason = ""
    if path.is_dir():
        reason = "it is a folder"
    elif not path.parent.is_dir():
        reason = "its folder does not exist"
    elif not os.access(path.parent, os.W_OK):
        reason = "its folder cannot be written to"
    if reason:
        raise mistake("out", str(path), f"a file to write ({reason})", "name another with --out")


def _plain(name: str) -> str:
    """The name with only what any file system takes."""
    return "".join(letter if letter.isalnum() or letter in "._-" else "_" for letter in name)[:60]


def _console(stderr: bool = False) -> "Console":
    from rich.console import Console

    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console.width = _PIPE_WIDTH
    return console


def _watching() -> "Watching":
    from fullpipe.watching import Watching

    return Watching(_console(stderr=True))
