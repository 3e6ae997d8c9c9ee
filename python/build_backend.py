"""Builds the package: maturin, and before it two files that the package contains.

One is the script of the reports, which the renderer bundles once. Where the renderer is missing or fails,
reports bundle the script themselves. The other one has the licences of what the package contains of others.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import maturin
from maturin import *  # noqa: F403 (the other hooks of PEP 517 are maturin's own)

ASSETS = Path(__file__).parent / "fullpipe" / "report" / "assets"
ROOT = Path(__file__).parent.parent
NOTICES = ROOT / "python" / "fullpipe" / "THIRD-PARTY-NOTICES.txt"


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
    """Writes what the package contains of others, each with its version, its licence and its licence files.

    That is the crates in the native module and in the page's engine, and what the page's scripts bundle.
    """
    manifest = ROOT / "crates" / "py" / "Cargo.toml"
    # A source distribution has fewer crates than the lock file.
    for locked in (["--locked"], []):
        words = ["cargo", "metadata", "--format-version", "1", *locked, "--manifest-path", str(manifest)]
        done = subprocess.run(words, stdout=subprocess.PIPE, check=not locked)
        if done.returncode == 0:
            break
    crates = sorted(linked(json.loads(done.stdout)), key=lambda one: (one["name"], one["version"]))
    parts = ["Fullpipe contains these works of others.\n"]
    for one in crates:
        parts += _notice(one["name"], one["version"], one["license"], Path(one["manifest_path"]).parent)
    for folder in bundled():
        package = json.loads((folder / "package.json").read_text(encoding="utf-8"))
        parts += _notice(package["name"], package["version"], package["license"], folder)
    file.write_text("".join(parts), encoding="utf-8")


def _notice(name: str, version: str, licence: str, folder: Path) -> Iterator[str]:
    yield f"\n{'=' * 80}\n{name} {version}: {licence}\n"
    for one in sorted(folder.iterdir()):
        if one.is_file() and one.name.upper().startswith(("LICEN", "COPYING", "NOTICE", "UNLICENSE")):
            yield f"\n--- {one.name}\n{one.read_text(encoding='utf-8', errors='replace')}"


def linked(told: dict[str, Any]) -> list[dict[str, Any]]:
    """The crates from elsewhere that are linked into the package, of what `cargo metadata` prints."""
    packages = {one["id"]: one for one in told["packages"]}
    nodes = {one["id"]: one for one in told["resolve"]["nodes"]}
    waiting = [key for key, one in packages.items() if one["name"] in ("fullpipe-py", "fullpipe-wasm")]
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


def bundled() -> list[Path]:
    """The folders of the packages that the page's scripts may contain; none where the page is not built."""
    lab = ROOT / "lab"
    if not (lab / "node_modules").is_dir():
        return []
    locked = json.loads((lab / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    wanted = (name for name, one in locked.items() if name and not (one.get("dev") or one.get("optional")))
    return [lab / name for name in wanted if (lab / name).is_dir()]


def build_wheel(directory: str, settings: Any = None, metadata: str | None = None) -> str:
    """Builds a wheel that contains both files."""
    bundle()
    notices()
    return str(maturin.build_wheel(directory, settings, metadata))
