"""`fullpipe probe`."""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fullpipe.cli.options import AsJson, check_folder, console, folder_for, plain, say
from fullpipe.cli.options import path as path_of
from fullpipe.cli.other_results import PROBE, refuse_others

if TYPE_CHECKING:
    from fullpipe.probe.answer import Answer
    from fullpipe.probe.control import Limits

_SERVE = "serve"
# As in `fullpipe.probe.control`, which takes a while to import.
_PORT = 8715
_TOKEN = "FULLPIPE_PROBE_TOKEN"
# How long the server waits for its client.
_WAIT_S = 600.0
_BUDGET, _SERVE_BUDGET = "30 s", "120 s"
# Shorter tokens can be guessed.
_LEAST_TOKEN = 16
_UNITS = {"": 1.0, "b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9}


def probe(
    host: Annotated[
        str,
        typer.Argument(
            metavar="HOST",
            help="Address of the machine that runs `fullpipe probe serve`; on that machine, the word serve.",
        ),
    ],
    token: Annotated[
        str | None,
        typer.Option(
            help="The token that serve printed.",
            envvar=_TOKEN,
            show_default=f"${_TOKEN}; with serve, a random one",
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of TCP and UDP; with serve, 0 is any free one.")
    ] = _PORT,
    bind: Annotated[
        str, typer.Option(help="With serve: address to listen on. By default only this machine can connect.")
    ] = "127.0.0.1",
    short: Annotated[
        bool, typer.Option("--short", help="Only rate, base RTT and buffer, in some seconds.")
    ] = False,
    budget: Annotated[
        str | None,
        typer.Option(
            help="Longest time of the measurement. serve waits no longer than this for a client, and then "
            "measures no longer than this. The smaller budget of both ends applies. From '45 s' on, the "
            "queue discipline of the way back is measured, too.",
            show_default="30 s; 120 s with serve",
        ),
    ] = None,
    max_bytes: Annotated[str, typer.Option(help="The most bytes that this end sends.")] = "200 MB",
    max_rate: Annotated[str, typer.Option(help="The highest rate at which this end sends.")] = "1 Gbit/s",
    controller: Annotated[
        list[str] | None,
        typer.Option(
            "--cc",
            help="Kernel's controller of the TCP flows that run last over the path. The same flows are "
            "simulated on the measured path, to show how good the measurement is. May be repeated.",
            show_default="cubic",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for path.toml, report and the packets' times.",
            show_default="out/probe-...",
            parser=path_of,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure the path to another machine that runs Fullpipe, and write it as a scenario.

    First run `fullpipe probe serve --bind ADDRESS` on the other machine. It prints the command for this one,
    and serves one client, once.
    Both ends obey their own --budget, --max-bytes and --max-rate. For some seconds, the measurement takes
    the whole rate of the path. The path is in path.toml, which `run`, `shell --path`, `compare --path`,
    `map --path`, `advise --from` and `lab --path` read.
    """
    from fullpipe.probe.control import Limits

    limits = Limits(
        _bytes(max_bytes), _rate(max_rate), _seconds(budget or (_SERVE_BUDGET if host == _SERVE else _BUDGET))
    )
    if host == _SERVE:
        _serve(bind, port, token, limits)
        return
    if not token:
        from fullpipe.errors import unusable

        raise unusable("--token", "is missing", "type the line that `fullpipe probe serve` printed")
    folder = folder_for(out, f"probe-{plain(host)}", wanted=True)
    assert folder is not None
    check_folder(folder.path)
    refuse_others(folder.path, PROBE, lambda: "probe")
    measured = _measure(host, port, token, limits, short, controller or ["cubic"])
    from fullpipe.probe import page
    from fullpipe.probe.answer import Answer

    written = folder.create()
    measured.write(written)
    answer = Answer.of(host, measured, written)
    answer.write(written)
    report = page.write(answer, written)
    if as_json:
        print(answer.to_json())
    else:
        _show(answer)
    say(f"Report: {report}")


def _serve(bind: str, port: int, token: str | None, limits: "Limits") -> None:
    from fullpipe.errors import mistake
    from fullpipe.probe.control import new_token
    from fullpipe.probe.server import Ended, Server

    if token is not None and len(token) < _LEAST_TOKEN:
        raise mistake("token", token, f"at least {_LEAST_TOKEN} characters", "leave it out for a random one")
    token = token or new_token()
    server = Server(bind, port, token, limits, say)
    where = bind if bind not in ("0.0.0.0", "::") else os.uname().nodename
    print(f"fullpipe probe {where} --port {server.port} --token {token}", flush=True)
    say("fullpipe: type that line at the other end; Ctrl-C ends this one")
    try:
        server.serve(_WAIT_S)
    except Ended as error:
        from fullpipe.report import streams

        raise typer.Exit(streams.complain(str(error))) from None


def _measure(host: str, port: int, token: str, limits: "Limits", short: bool, controllers: list[str]) -> Any:
    from fullpipe.errors import stated
    from fullpipe.probe import stages
    from fullpipe.probe.client import Client
    from fullpipe.probe.control import Refused

    try:
        client = Client(host, port, token, limits)
        try:
            stages.measure(
                client,
                stages.Plan(short=short, controllers=tuple(controllers)),
                lambda line: say(f"fullpipe: {line}"),
            )
        finally:
            client.close()
    except (Refused, OSError) as error:
        fix = "start `fullpipe probe serve` again there, and type the line that it prints"
        raise stated("host", host, f'HOST: "{host}": {error}; {fix}', "a measurement", fix) from None
    return client.found


def _show(answer: "Answer") -> None:
    from rich.text import Text

    from fullpipe.probe.answer import compared
    from fullpipe.report.fitting import Fitting

    out = console()
    out.print(Text(answer.sentence, style="bold"), soft_wrap=True)
    shown = Fitting("Measured")
    shown.add_text("To it")
    shown.add_text("Back")
    for row in answer.rows:
        shown.add_row(row.name, row.forward or "–", row.back or "–")
    out.print(shown)
    for title, lines in (
        ("Not measurable", answer.not_measurable),
        ("Assumed", answer.assumed),
        ("Note", answer.notes),
    ):
        for line in lines:
            out.print(Text(f"{title}: {line}."), soft_wrap=True)
    for one in answer.checked:
        verdict = f"the model misses: {one.misses}" if one.misses else "the model fits"
        line = (
            f"TCP {one.flow.controller} {one.flow.direction}, measured / simulated: "
            f"goodput {compared(one.goodput_mbps, 2)} Mbit/s, RTT {compared(one.rtt_ms, 1)} ms, "
            f"retransmissions {compared(one.retransmissions, 0)}; {verdict}."
        )
        out.print(Text(line), soft_wrap=True)


def _number(name: str, given: str, units: dict[str, float], example: str) -> float:
    from fullpipe.errors import mistake

    found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([a-zA-Z/]*)\s*", given)
    if found is None or (unit := found[2].lower()) not in units or not float(found[1]):
        raise mistake(name, given, f"a number above 0 with a unit, e.g. '{example}'", f"write '{example}'")
    return float(found[1]) * units[unit]


def _bytes(given: str) -> int:
    return int(min(_number("max_bytes", given, _UNITS, "200 MB"), 1e12))


def _rate(given: str) -> float:
    units = {
        f"{prefix}{unit}": factor
        for prefix, factor in (("", 1.0), ("k", 1e3), ("m", 1e6), ("g", 1e9))
        for unit in ("bit/s", "bit", "bps")
    }
    return min(_number("max_rate", given, units, "100 Mbit/s"), 100e9)


def _seconds(given: str) -> float:
    units = {"": 1.0, "s": 1.0, "ms": 1e-3, "min": 60.0}
    return min(_number("budget", given, units, "30 s"), 3600.0)
