"""Builds the package: maturin, and before it two files that the package contains.

One is the script of the reports, which the renderer bundles once. Where the renderer is missing or fails,
reports bundle the script themselves. The other one has the licences of all Rust crates in the native module.
"""

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import maturin
from maturin import *  # noqa: F403 (the other hooks of PEP 517 are maturin's own)

ASSETS = Path(__file__).parent / "fullpipe" / "show" / "assets"
NOTICES = Path(__file__).parent / "fullpipe" / "THIRD-PARTY-NOTICES.txt"


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


def notices(file: Path = NOTICES) -> None:
    """Writes the crates in the native module, each with its version, its licence and its licence files."""
    manifest = Path(__file__).parent.parent / "crates" / "py" / "Cargo.toml"
    # A source distribution has fewer crates than the lock file.
    for locked in (["--locked"], []):
        words = ["cargo", "metadata", "--format-version", "1", *locked, "--manifest-path", str(manifest)]
        done = subprocess.run(words, stdout=subprocess.PIPE, check=not locked)
        if done.returncode == 0:
            break
    told = json.loads(done.stdout)
    parts = ["Fullpipe's native module contains these crates of others.\n"]
    for one in sorted(linked(told), key=lambda one: (one["name"], one["version"])):
        folder = Path(one["manifest_path"]).parent
        parts.append(f"\n{'=' * 80}\n{one['name']} {one['version']}: {one['license']}\n")
        for licence in sorted(folder.iterdir()):
            if licence.is_file() and licence.name.upper().startswith(
                ("LICEN", "COPYING", "NOTICE", "UNLICENSE")
            ):
                parts.append(f"\n--- {licence.name}\n{licence.read_text(encoding='utf-8', errors='replace')}")
    file.write_text("".join(parts), encoding="utf-8")


def linked(told: dict[str, Any]) -> list[dict[str, Any]]:
    """The crates from elsewhere on which the native module depends, of what `cargo metadata` prints."""
    packages = {one["id"]: one for one in told["packages"]}
    nodes = {one["id"]: one for one in told["resolve"]["nodes"]}
    waiting = [key for key, one in packages.items() if one["name"] == "fullpipe-py"]
    found: set[str] = set()
    while waiting:
        key = waiting.pop()
        if key not in found:
            found.add(key)
            waiting += [
                dep["pkg"]
                for dep in nodes[key]["deps"]
                if any(kind["kind"] is None for kind in dep["dep_kinds"])
            ]
    return [packages[key] for key in found if packages[key]["source"] is not None]


def build_wheel(directory: str, settings: Any = None, metadata: str | None = None) -> str:
    """Builds a wheel that contains both files."""
    bundle()
    notices()
    return str(maturin.build_wheel(directory, settings, metadata))
