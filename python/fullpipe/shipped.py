"""What the package has besides its code: scenarios, grids and, in a wheel, the program with the QUIC stacks.

In a checkout they are where they are made. A build puts them into `fullpipe/shipped`.
"""

import os
import shutil
import sys
from pathlib import Path

from fullpipe.errors import mistake

_FOLDER = Path(__file__).with_name("shipped")
SCENARIOS = Path("scenarios")
GRIDS = SCENARIOS / "grids"
# Names the program with the QUIC stacks, e.g. a developer's own.
QUIC_VARIABLE = "FULLPIPE_QUIC"
QUIC = "fullpipe-quic"


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


def quic() -> Path | None:
    """Where that program is: what the environment names, beside Python, in the package, or on the PATH.

    None if there is none. An empty name in the environment says so.
    """
    if (named := os.environ.get(QUIC_VARIABLE)) is not None:
        # Absolute, because what has no folder is looked for where programs are, not here.
        return Path(named).absolute() if named else None
    beside = Path(sys.executable).parent / QUIC
    if beside.is_file() and os.access(beside, os.X_OK):
        return beside
    found = shutil.which(QUIC)
    return program(QUIC) or (Path(found) if found else None)
