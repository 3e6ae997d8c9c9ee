"""`fullpipe lab`."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from fullpipe.cli.options import path_file, say

# As in `fullpipe.cli.lab_server`, which takes a while to import.
_HOST, _PORT = "127.0.0.1", 8714
# Browsers take addresses of this length.
_MOST_TEXT = 16_000


def lab(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 is any free one.")
    ] = _PORT,
    host: Annotated[
        str, typer.Option(help="Address to listen on. By default only this machine can connect.")
    ] = _HOST,
    file: Annotated[Path | None, path_file()] = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Whether to open the page in a browser.")
    ] = True,
) -> None:
    """Open the lab: live simulations, comparisons and decision maps in your browser.

    Everything is computed in the page; this command only hands out its files. Ctrl-C ends it.
    """
    from fullpipe.cli.lab_server import Server

    link = "" if file is None else _link(file)
    with Server(host, port) as server:
        if not server.is_private:
            say(f"fullpipe: everybody who can reach {host} can open the lab")
        try:
            print(f"The lab: {server.url}{link} (Ctrl-C ends it)", flush=True)
            if browser and _has_display():
                import webbrowser

                webbrowser.open(f"{server.url}{link}")
            server.serve_forever()
        except KeyboardInterrupt:
            # The way to end it.
            print(flush=True)


def _link(file: Path) -> str:
    """The part of the page's address that opens a scenario in it (lab/src/state/place.ts)."""
    from urllib.parse import urlencode

    from fullpipe import reading
    from fullpipe.errors import mistake
    from fullpipe.scenario import of_file

    own, _, _ = of_file.read(file, "file")
    if "deliveries" in own:
        raise mistake("file", str(file), "a path without a delivery trace", "the page can read no file")
    try:
        text = reading.text(file, _MOST_TEXT)
    except reading.Unreadable as error:
        raise mistake("file", str(file), error.expected, error.fix) from None
    return f"#/compare?{urlencode({'toml': text})}"


def _has_display() -> bool:
    """Whether a browser would have a window. One for terminals would take this terminal."""
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
