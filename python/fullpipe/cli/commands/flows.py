"""`fullpipe flows`."""

from pathlib import Path
from typing import Annotated

import typer

from fullpipe.cli.options import check_file, path, say


def flows(
    out: Annotated[Path, typer.Option(metavar="PARQUET", help="The file to write.", parser=path)],
    capture: Annotated[
        Path | None,
        typer.Argument(
            metavar="CAPTURE.pcap",
            help="A pcap or pcapng file; headers are enough.",
            show_default="none",
            parser=path,
        ),
    ] = None,
    synthetic: Annotated[
        bool,
        typer.Option("--synthetic", help="Read no capture: generate flows like those of a MAWI capture."),
    ] = False,
    count: Annotated[
        int | None,
        typer.Option("--flows", min=1, help="With --synthetic: how many flows.", show_default="890000"),
    ] = None,
    duration: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            help="With --synthetic: seconds over which the flows start.",
            show_default="long enough that flows start as often as in MAWI",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the generated flows.")] = 1,
) -> None:
    """Write a list of the TCP flows of a capture: start, bytes, and pauses of more than 100 ms.

    A study replays such a list: `FULLPIPE_FLOWS=LIST.parquet fullpipe study run ccwg25.short`.
    """
    from fullpipe.errors import stated, unusable
    from fullpipe.scenario.flow_lists import flow_list
    from fullpipe.scenario.flow_lists import synthetic as made_up

    if (capture is None) != synthetic:
        given, fix = (
            ("neither", "give a capture or --synthetic")
            if capture is None
            else ("both", "give either a capture or --synthetic, not both")
        )
        raise stated("flows", given, f"flows: {fix}", "a capture or --synthetic", fix)
    for option, asked in {"--flows": count, "--duration": duration}.items():
        if asked is not None and not synthetic:
            raise unusable(option, "needs --synthetic", "leave it out")
    check_file(out)
    notes: tuple[str, ...] = ()
    if capture is not None and out.exists() and out.samefile(capture):
        raise unusable("--out", "is the capture itself", "name another file")
    if capture is not None:
        captured = flow_list.of_capture(capture)
        frame, lasts_s, notes = captured.flows, captured.lasts_s, captured.notes
        for note in notes:
            say(f"fullpipe: {capture}: {note}")
    else:
        number = count or made_up.FLOWS
        lasts_s = duration or made_up.seconds(number)
        frame = made_up.draw(flows=number, seconds=lasts_s, seed=seed)
    flow_list.write(frame, out, notes)
    print(f"{out}: {flow_list.summary(frame, lasts_s)}")
