"""`fullpipe deliveries`."""

from pathlib import Path
from typing import Annotated

import typer

from fullpipe.cli.options import check_file, path


def deliveries(
    mean: Annotated[str, typer.Option(help="Mean rate, e.g. '10 Mbit/s' or 10mbit.")],
    out: Annotated[Path, typer.Option(metavar="DELIVERIES", help="The file to write.", parser=path)],
    duration: Annotated[str, typer.Option(help="Length before it repeats.")] = "60 s",
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random rate.")] = 1,
) -> None:
    """Write a trace of a link whose rate varies, like a cellular one: the times at which it can send.

    Such a file, a delivery trace in the format of Mahimahi, is for --deliveries or a scenario's
    `path.deliveries`. The rate varies by a factor of two within seconds, with rare outages.
    """
    from fullpipe import files
    from fullpipe.scenario import cellular

    check_file(out)
    opportunities = cellular.generate(mean=mean, duration=duration, seed=seed)
    files.write_named(out, cellular.text(opportunities).encode("ascii"))
    seconds = opportunities[-1] / 1000
    megabits = len(opportunities) * cellular.OPPORTUNITY_BITS / seconds / 1e6
    print(f"{out}: {len(opportunities)} opportunities in {seconds:g} s, {megabits:.3g} Mbit/s on average")
