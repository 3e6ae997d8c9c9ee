"""Parquet files that a user names, read without trusting them.

One flipped bit in a Parquet file can end the process in polars' own reader. The native half reads it instead:
there, damage is an error.
"""

from concurrent.futures import Future, wait
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import fullpipe._native as _native

if TYPE_CHECKING:
    import polars as pl

_TICK_S = 0.1


def read(path: str | Path) -> "pl.DataFrame":
    """The file as a table. Raises `RecordingError` if it is no Parquet file, or damaged.

    Ctrl-C ends the call soon: the native half reads on a thread of its own, and nobody waits for it then.
    """
    import polars as pl

    found: Future[bytes] = Future()

    def work() -> None:
        try:
            found.set_result(_native.read_parquet(str(path)))
        except BaseException as error:
            found.set_exception(error)

    Thread(target=work, name="fullpipe-parquet", daemon=True).start()
    # polars' own handler of the signal does not wake who waits, so this looks itself.
    while not wait([found], timeout=_TICK_S).done:
        pass
    return pl.read_ipc_stream(found.result())
