"""`fullpipe conform`."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fullpipe.cli.options import (
    DISAGREE,
    AsJson,
    LogLimit,
    Stacks,
    VirtualWorld,
    complete_controllers,
    console,
    folder_for,
    path,
    plain,
    results_folder,
    say,
    show_log_size,
    use_stacks,
    watching,
)
from fullpipe.cli.other_results import CONFORMITY, refuse_others
from fullpipe.cli.programs import PROGRAMS, client_option, programs, sender_option, server_option
from fullpipe.errors import mistake, unusable
from fullpipe.runs.worlds.logs import LIMIT
from fullpipe.text import counted, joined

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fullpipe.conformance.case import Case
    from fullpipe.conformance.programs.case import OutsideCase


def complete_cases(incomplete: str) -> list[str]:
    """Names of cases for a shell's completion."""
    from fullpipe.conformance import registry
    from fullpipe.conformance.loss import registry as loss
    from fullpipe.conformance.programs import registry as outside

    every = (*registry.every(), *loss.every(), *outside.every())
    return [case.name for case in every if case.name.startswith(incomplete)]


def conform(
    controller: Annotated[
        str | None,
        typer.Argument(
            metavar="CC",
            help="A controller: bbr3, bbr3:loss_thresh=0.1, noq:bbr3, or mine.py:MyController.",
            autocompletion=complete_controllers,
        ),
    ] = None,
    case: Annotated[
        list[str] | None,
        typer.Option(
            help="Only this case; may be repeated.", show_default="all", autocompletion=complete_cases
        ),
    ] = None,
    suite: Annotated[
        str,
        typer.Option(
            help="bbr3, or loss: the cases of CUBIC, Reno, HyStart++ and ECN.",
            autocompletion=lambda: ["bbr3", "loss"],
        ),
    ] = "bbr3",
    list_: Annotated[
        bool,
        typer.Option(
            "--list",
            help="List the cases of the suite and run none; with --json, with their criteria. With --like: "
            "the cases for a --program of that kind.",
        ),
    ] = False,
    program: Annotated[
        str | None,
        client_option('Instead of CC: command of a client, e.g. "iperf3 -c {server} -t 40"; needs --server.'),
    ] = None,
    server: Annotated[str | None, server_option()] = None,
    sender: Annotated[str | None, sender_option()] = None,
    like: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="The algorithm that the tested code implements. With --program: bbr3, cubic or reno; it "
            "chooses the cases; --suite is not for programs. With --suite loss, of FILE.py:CLASS or a "
            "controller behind --stack: cubic, reno, or `cubic,hystartpp`, which is CUBIC with HyStart++.",
            show_default="unknown: of a program, only the cases that hold for all three",
            rich_help_panel=PROGRAMS,
        ),
    ] = None,
    repetitions: Annotated[
        int | None,
        typer.Option(
            help="How often the program runs on each path; some cases share a path.",
            show_default="3",
            rich_help_panel=PROGRAMS,
        ),
    ] = None,
    at_once: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="How many runs at the same time.",
            show_default="1",
            rich_help_panel=PROGRAMS,
        ),
    ] = None,
    world: VirtualWorld = None,
    stack: Stacks = None,
    out: Annotated[Path | None, results_folder("out/conform-CC-...")] = None,
    qlog: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder for a qlog of each case's packets; each case then runs a second time.",
            show_default="none",
            parser=path,
        ),
    ] = None,
    log_limit: LogLimit = LIMIT,
    record: Annotated[
        bool,
        typer.Option("--record", help="In a checkout: put the results into results/conformance.jsonl."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Test a controller by cases made from BBRv3's draft, and for known bugs of implementations.

    Each case is a short run. Some cases judge only a flow's packets and run for every controller; a CUBIC
    that is correct may fail these. The other cases need a controller that shows the state of a BBR. With
    --suite loss, the cases are those of the RFCs on CUBIC, Reno, HyStart++ and ECN instead. Each case passes,
    fails, or is not applicable, with the measured value and the criterion. Exit code 1: an applicable case
    fails.

    With --program and --server, a program runs in the kernel world. Then only those cases apply that can be
    decided from its packets: from what is delivered, lost and queued. In both commands, {server} is the
    server's address, and {port} a free port, another one in each run. The program has to send for at least
    30 seconds.
    """
    use_stacks(stack)
    from fullpipe.conformance.programs.case import name_of
    from fullpipe.conformance.results import BBR3, SUITES
    from fullpipe.runs.worlds.kernel_trust import BUSY

    if suite not in SUITES:
        raise mistake("--suite", suite, f"one of {', '.join(SUITES)}", "choose one of these")
    if list_:
        _list(_listed(case or None, suite, like), as_json=as_json)
        return
    given = programs(*([] if one is None else [one] for one in (program, server, sender)))
    if controller is not None and given:
        raise unusable("--program", "cannot be given with a controller", "give one of the two")
    if suite != BBR3:
        _refuse_with_suite({"--program": bool(given), "--record": record})
    for option, value in (("--like", like), ("--repetitions", repetitions), ("--at-once", at_once)):
        if value is not None and not given and not (option == "--like" and suite != BBR3):
            raise unusable(option, "needs --program", "give --program and --server, or leave it out")
    if given and world is not None:
        raise unusable("--world", "is for controllers; programs run in the kernel world", "leave it out")
    if given and qlog is not None:
        raise unusable("--qlog", "has no logs of a program", "leave it out")
    if given and record:
        fix = "leave it out; bench/programs_conform.py records programs"
        raise unusable("--record", "is for controllers", fix)
    if controller is None and not given:
        raise typer.BadParameter("name a controller, or give --list or --program", param_hint="CC")
    name = controller or name_of(given[0].client)
    from fullpipe import evidence
    from fullpipe.conformance import packet_logs
    from fullpipe.conformance.conformance_report import ConformanceReport
    from fullpipe.conformance.runners import world_of
    from fullpipe.runs.worlds.logs import Logs

    if controller is not None and world is None:
        world = world_of(controller)
    if qlog is not None and world is not None:
        packet_logs.check(world)
    Logs.of(qlog, None)  # A folder that cannot be written into is an error now.
    lines = evidence.folder() / "conformance.jsonl" if record else None
    if lines is not None:
        evidence.read(lines)  # A file that cannot be used is an error now.
    folder = folder_for(out, f"conform-{plain(name)}", wanted=not as_json)
    if folder is not None:
        refuse_others(folder.path, CONFORMITY, lambda: name)
    from fullpipe.conformance.pages import Drawing
    from fullpipe.report.figures.svg import Renderer

    with Renderer() as renderer:
        drawing = Drawing(renderer)
        with watching() as watch:
            if controller is not None:
                from fullpipe.conformance.run import conform as play

                found = play(
                    controller,
                    case or None,
                    world=world,
                    like=like or "any",
                    suite=suite,
                    watch=watch,
                    judged=None if folder is None else drawing.begin,
                )
            else:
                from fullpipe.conformance.programs.run import REPETITIONS, conform_program

                (one,) = given
                found = conform_program(
                    one.client,
                    one.server,
                    sender=one.sender,
                    like=like or "any",
                    cases=case or None,
                    repetitions=REPETITIONS if repetitions is None else repetitions,
                    at_once=at_once,
                    watch=watch,
                )
        if lines is not None and isinstance(found, ConformanceReport):
            words = [word for one in case or () for word in ("--case", one)]
            words += [] if world == world_of(found.controller) else ["--world", found.world]
            command = shlex.join(["fullpipe", "conform", found.controller, *words, "--record"])
            evidence.replace(lines, found.lines(command))
            say(f"Recorded: {lines}; `make docs` puts it into the pages")
        if as_json:
            print(found.to_json())
        else:
            console().print(found)
        if found.program is not None and found.program["load_a_core"] > BUSY:
            say(
                "fullpipe: the machine was busy before the first run (load average "
                f"{found.program['load_a_core']:g} a core). A program that waits for a core sends late, so "
                "that failures may be the machine's; repeat this when it is idle."
            )
        if folder is not None:
            errors = console(stderr=True)
            with errors.status("Drawing the pages"):
                written = found.write(folder.create(), drawing)
            say(f"Pages: {written / 'index.html'}")
    if qlog is not None:
        logged, without = found.log(qlog, log_limit=log_limit, begin=show_log_size)
        message = f"; a log cannot repeat a buffer that changes: {joined(without)}" if without else ""
        if logged:
            say(f"Logs: {counted(len(logged), 'file')} in {qlog}{message}")
        else:
            say(f"Logs: none{message or '; the laws, and cases that are not applicable, have no packets'}")
    if not found.passed:
        raise typer.Exit(DISAGREE)


def _refuse_with_suite(given: "Mapping[str, bool]") -> None:
    """Options that are for the cases of BBRv3 only."""
    for option, is_given in given.items():
        if is_given:
            raise unusable(option, "is for the cases of BBRv3", f"leave {option} or --suite out")


def _listed(names: "Sequence[str] | None", suite: str, like: str | None) -> "Sequence[Case]":
    """The cases that `--list` lists."""
    from fullpipe.conformance import registry
    from fullpipe.conformance.loss import registry as loss
    from fullpipe.conformance.programs import registry as outside
    from fullpipe.conformance.results import LOSS

    if suite == LOSS:
        return loss.chosen(names)
    return registry.chosen(names) if like is None else _for_programs(outside.chosen(names), like)


def _for_programs(cases: "Sequence[OutsideCase]", like: str) -> "tuple[Case, ...]":
    """Those that apply to a program whose congestion control is like that."""
    from fullpipe.conformance.programs.case import LIKES

    if like not in LIKES:
        raise mistake("like", like, f"one of {', '.join(LIKES)}", "name one of these")
    return tuple(one for one in cases if one.speaks_of(like))


def _list(cases: "Sequence[Case]", *, as_json: bool) -> None:
    import json

    from fullpipe.conformance.loss.case import LossCase

    if as_json:
        reported = [
            {
                "name": one.name,
                "title": one.title,
                "source": one.source,
                "about": one.about,
                "phases": one.phases,
                **({"needs": list(one.needs), "bugs": one.bugs} if isinstance(one, LossCase) else {}),
                "seeds": list(one.seeds),
                "criteria": [f"{of.quantity}: {of.bounds}" for of in one.criteria],
            }
            for one in cases
        ]
        print(json.dumps(reported, indent=2))
        return
    for one in cases:
        print(f"{one.name:28} {one.title} ({one.source})")
