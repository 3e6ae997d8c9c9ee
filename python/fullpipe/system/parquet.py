"""Parquet files that a user names, read without trusting them.

One flipped bit in a Parquet file can end the process in polars' own reader. The native half reads it instead:
there, damage is an error.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from fullpipe import _native

if TYPE_CHECKING:
    import polars as pl


def read(path: str | Path) -> "pl.DataFrame":
    """The file as a table. Raises `RecordingError` if it is no Parquet file, or damaged."""
    import polars as pl

    return pl.read_ipc_stream(_native.read_parquet(str(path)))
