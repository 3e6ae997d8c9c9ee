"""Builds the package: maturin, and before it the script of the reports, which the renderer bundles once.

Where the renderer is missing or fails, reports bundle the script themselves.
"""

import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import maturin
from maturin import *  # noqa: F403 (the other hooks of PEP 517 are maturin's own)

ASSETS = Path(__file__).parent / "fullpipe" / "show" / "assets"


def bundle(folder: Path = ASSETS) -> Path | None:
    """Writes the script for the installed renderer into a folder, unless it is there; None if that fails."""
    try:
        import vl_convert

        made = folder / f"vega-{metadata.version('vl-convert-python')}.js"
        if not made.exists():
            text = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
            for old in folder.glob("vega-*.js"):
                old.unlink()
            made.write_text(text, encoding="utf-8")
        return made
    # A panic of the renderer is no `Exception`.
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        print(f"The script of the reports is not bundled: {error}", file=sys.stderr)
        return None


def build_wheel(directory: str, settings: Any = None, metadata: str | None = None) -> str:
    """Builds a wheel that contains the script."""
    bundle()
    return str(maturin.build_wheel(directory, settings, metadata))
