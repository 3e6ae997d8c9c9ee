"""`fullpipe kernel`: record and check this machine's TCP, and load our controllers into it."""

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from fullpipe.cli.commands import kernel_advice, kernel_load
from fullpipe.cli.options import (
    DISAGREE,
    AsJson,
    check_file,
    console,
    folder_for,
    path_options,
    print_notes,
    say,
    watching,
)
from fullpipe.cli.options import path as path_of
from fullpipe.cli.other_results import CHECK, refuse_others

app = typer.Typer(
    no_args_is_help=True,
    help="Load our controllers into this kernel; record decisions of its own ones; check the emulator.",
)


@app.command()
@path_options(
    defaults={"rate": "", "rtt": ""},
    more={
        "rate": " Needed, unless --deliveries or SCENARIO.toml is given.",
        "rtt": " Needed, unless SCENARIO.toml is given.",
    },
)
def record(
    algorithm: Annotated[
        str, typer.Option("--cc", help="Which of the kernel's controllers: bbr (BBRv1) or cubic.")
    ],
    out: Annotated[Path, typer.Option(metavar="RECORDING", help="The file to write.", parser=path_of)],
    path: dict[str, Any],
    scenario: Annotated[
        Path | None,
        typer.Argument(
            metavar="SCENARIO.toml",
            help="A scenario file, instead of the options for the path.",
            show_default="none",
            parser=path_of,
        ),
    ] = None,
    duration: Annotated[str | None, typer.Option(help="How long to record.", show_default="10 s")] = None,
    flows: Annotated[
        int | None, typer.Option(help="How many flows use the algorithm.", show_default="1")
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Seed of the path's random elements.", show_default="the scenario's, or 1"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Record the inputs and decisions of the kernel's BBR or CUBIC, call by call.

    Needs root, clang and libbpf. In a scenario, only the flows that use the algorithm are recorded.
    """
    from fullpipe import api
    from fullpipe.conformance import recording_tables, recordings
    from fullpipe.errors import mistake, unusable

    algorithm = recordings.known_algorithm(algorithm)
    if scenario is None:
        loaded = recordings.plain_scenario(algorithm, path, duration=duration, flows=flows)
    else:
        for name, given in {**path, "duration": duration, "flows": flows}.items():
            if given is not None:
                raise mistake(
                    name,
                    given,
                    "no path beside a scenario",
                    f"leave out --{name.replace('_', '-')} or the scenario",
                )
        loaded = api.load(scenario)
    check_file(out)
    if scenario is not None and out.exists() and out.samefile(scenario):
        raise unusable("--out", "is the scenario itself", "name another file")
    with watching() as watch:
        recording = recordings.record(
            loaded, algorithm, seed=seed, progress=lambda done: watch("kernel", done, 1)
        )
    if not as_json:
        console().print(recording_tables.recording(recording))
    recording.write(out)
    if as_json:
        missed = recording.summary["missed_calls"]
        warnings = [recording_tables.missed_calls(missed)] if missed else []
        written = {"recording": str(out), "bytes": len(recording.file), "warnings": warnings}
        print(json.dumps({**recording.summary, **written}))
    else:
        print(recording_tables.recording_total(recording, out))


@app.command()
def check(
    quick: Annotated[
        bool, typer.Option("--quick", help="Check up to 500 Mbit/s, in less than half a minute.")
    ] = False,
    as_json: AsJson = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print the table in Markdown.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for figure, measures and every packet.", show_default="none", parser=path_of
        ),
    ] = None,
) -> None:
    """Measure how accurate the path's emulator is on this machine.

    Sends numbered packets with time stamps through the emulator, at one constant rate after the other.
    Compares delay, rate, queue, drops, random losses and order with what the emulator was told to do.
    `fullpipe doctor` then reports up to which rate the kernel world can be trusted; where a full check is
    stored, a quick one does not overwrite it. Exit code 1: the emulator is inaccurate at one rate or more.
    """
    from fullpipe.errors import unusable
    from fullpipe.report import tables
    from fullpipe.runs.worlds import kernel_check, kernel_trust

    if as_json and as_markdown:
        raise unusable("--json", "cannot be used with --markdown", "leave out one of the two")
    folder = folder_for(out, "check", wanted=False)
    if folder is not None:
        refuse_others(folder.path, CHECK, lambda: "check")
    began, load = time.monotonic(), kernel_trust.Load()
    with watching() as watch:
        verdicts = kernel_check.run(
            kernel_check.plan(quick), lambda done, total: watch("kernel", done, total)
        )
    found = kernel_trust.Trust.of(verdicts, quick=quick, took_s=time.monotonic() - began, load=load)
    fuller = found.keep()
    if as_json:
        rates = [one.to_json() for one in verdicts]
        print(
            json.dumps({**found.to_json(), "tolerances": kernel_check.TOLERANCES, "rates": rates}, indent=2)
        )
    elif as_markdown:
        print(tables.emulator_markdown(verdicts))
    else:
        console().print(tables.emulator(verdicts))
    if not as_json:
        print_notes([*tables.emulator_notes(verdicts), found.statement, f"Measured: {found.conditions}."])
    if folder is not None:
        from fullpipe.report.figures import emulator

        written = folder.create()
        emulator.write(verdicts, found, written)
        say(f"Figure and packets: {written}")
    if fuller is not None:
        say(f"`fullpipe doctor` still reports the full check of {fuller.when}")
    if not found.true_bps or any(one.word == kernel_check.INACCURATE for one in verdicts):
        raise typer.Exit(DISAGREE)


app.command()(kernel_advice.advice)
app.command()(kernel_load.load)
app.command()(kernel_load.unload)
app.command()(kernel_load.status)
app.command()(kernel_load.prove)
