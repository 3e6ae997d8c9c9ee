"""What the package has besides its code: scenarios, grids and, in a wheel, the program with the QUIC stacks.

In a checkout they are where they are made. A build puts them into `fullpipe/shipped`.
"""

import os
from pathlib import Path

from fullpipe.errors import mistake

_FOLDER = Path(__file__).with_name("shipped")
SCENARIOS = Path("scenarios")
GRIDS = SCENARIOS / "grids"


def find(field: str, given: str | Path, folder: Path) -> Path:
    """The file that is meant: a path, or the name of one in `folder`, without its suffix.

    Names are those of files in `folder` here, in a directory above, and in the package, in this order. A
    path that is not here, but in the package, as `scenarios/policer.toml`, is that of the package.

    Raises:
        ScenarioError: No file has this name; the error lists those that are there.
    """
    path = Path(given)
    if path.exists():
        return path
    if path.suffix or len(path.parts) != 1:
        ours = _FOLDER / path
        return ours if path.parts[:1] == SCENARIOS.parts and ours.is_file() else path
    places = [*(one / folder for one in (Path.cwd(), *Path.cwd().parents)), _FOLDER / folder]
    for place in places:
        if (found := place / f"{path}.toml").is_file():
            return found
    names = sorted({one.stem for place in places for one in place.glob("*.toml")})
    if not names:
        raise mistake(field, str(given), "the path of a file", "check the path")
    raise mistake(field, str(given), f"a path, or one of {', '.join(names)}", "give one of these")


def program(name: str) -> Path | None:
    """A program that the package carries; None without it."""
    path = _FOLDER / "bin" / name
    return path if path.is_file() and os.access(path, os.X_OK) else None
