"""Files of the wrong kind: what each is, and which command or key takes it. Content decides, not names."""

from collections.abc import Collection
from pathlib import Path

import fullpipe._native as _native
from fullpipe.errors import mistake

# Kinds that no command reads, but another program makes a readable file of.
CONVERTIBLE = frozenset(
    {"Gzip", "Zstd", "Xz", "Bzip2", "Lz4", "EventTrace", "NetMon", "Snoop", "Erf", "OtherCapture"}
    | {"PrintedPackets"}
)


def check(field: str, path: str | Path, wanted: Collection[str], expected: str) -> None:
    """Raises a `ScenarioError` if the file is of a known kind that is not one of `wanted`.

    Kinds are "Recording", "FlowList", "Series", "OtherParquet", "Capture", "Deliveries", "Scenario", "Grid",
    "Zip" and those of `CONVERTIBLE`. A file that is missing or of no known kind passes; its
    reader reports what is wrong with it.
    """
    found = _native.file_kind(str(path))
    if found is not None and found[0] not in wanted:
        _, name, fix = found
        raise mistake(field, str(path), f"{expected}; it is {name}", fix)
