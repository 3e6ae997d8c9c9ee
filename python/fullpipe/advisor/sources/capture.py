"""A packet capture: how large the flows are. The path's rate and round-trip time, the user has to say."""

from pathlib import Path as File

import polars as pl

from fullpipe._native import RecordingError
from fullpipe.advisor.sources.source import Path
from fullpipe.errors import stated
from fullpipe.scenario.flow_lists import flow_list


def read(path: File) -> list[Path]:
    """One path, with the size of which flows of at least that size have half the bytes.

    Raises:
        ScenarioError: It cannot be read, or no flow in it sent payload.
    """
    try:
        captured = flow_list.of_capture(path)
    except RecordingError as error:
        raise stated("from", str(path), str(error), "a packet capture", "give another file") from None
    sizes = sorted(captured.flows.group_by("flow").agg(pl.col("bytes").sum())["bytes"].to_list())
    half, seen = sum(sizes) / 2, 0
    median = sizes[-1]
    for size in sizes:
        seen += size
        if seen >= half:
            median = size
            break
    lasts = f"{captured.lasts_s:.1f} s"
    note = f"{len(sizes)} flows in {lasts}; half of the bytes are in flows of at least {median} bytes"
    return [Path(path.name, {"flow_size": f"{median} B"}, 1.0, (note, *captured.notes))]
