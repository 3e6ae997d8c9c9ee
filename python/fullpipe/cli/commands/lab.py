"""`fullpipe lab`."""

import os
import sys
from typing import Annotated

import typer

from fullpipe.cli.options import say

# As in `fullpipe.cli.lab_server`, which takes a while to import.
_HOST, _PORT = "127.0.0.1", 8714


def lab(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 is any free one.")
    ] = _PORT,
    host: Annotated[
        str, typer.Option(help="Address to listen on. By default only this machine can connect.")
    ] = _HOST,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Whether to open the page in a browser.")
    ] = True,
) -> None:
    """Open the lab: live simulations, comparisons and decision maps in your browser.

    Everything is computed in the page; this command only hands out its files. Ctrl-C ends it.
    """
    from fullpipe.cli.lab_server import Server

    with Server(host, port) as server:
        if not server.is_private:
            say(f"fullpipe: everybody who can reach {host} can open the lab")
        try:
            print(f"The lab: {server.url} (Ctrl-C ends it)", flush=True)
            if browser and _has_display():
                import webbrowser

                webbrowser.open(server.url)
            server.serve_forever()
        except KeyboardInterrupt:
            # The way to end it.
            print(flush=True)


def _has_display() -> bool:
    """Whether a browser would have a window. One for terminals would take this terminal."""
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
