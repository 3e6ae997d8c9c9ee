"""A packet capture: how large the flows are. The path's rate and round-trip time, the user has to say."""

from pathlib import Path as File

import polars as pl

from fullpipe.advisor.sources import Path
from fullpipe.ask.arrivals import flow_list


def read(path: File) -> list[Path]:
    """One path, with the size of which flows of at least that size have half the bytes."""
    frame, lasts_s = flow_list.of_capture(path)
    sizes = sorted(frame.group_by("flow").agg(pl.col("bytes").sum())["bytes"].to_list())
    half, seen = sum(sizes) / 2, 0
    median = sizes[-1]
    for size in sizes:
        seen += size
        if seen >= half:
            median = size
            break
    note = f"{len(sizes)} flows in {lasts_s:.1f} s; half of the bytes are in flows of at least {median} bytes"
    return [Path(path.name, {"flow_size": f"{median} B"}, 1.0, (note,))]
