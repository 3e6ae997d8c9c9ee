"""Builds the package: maturin, and before it what the package contains besides its sources.

One part is the script of the reports, which the renderer bundles once. Where the renderer is missing or
fails, reports bundle the script themselves. Another one has the licences of what the package contains of
others. The rest is what a checkout has beside the package: the scenarios and, for a wheel that is given to
others (`make wheel`), the program with the QUIC stacks.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import maturin
from maturin import *  # noqa: F403 (the other hooks of PEP 517 are maturin's own)

ASSETS = Path(__file__).parent / "fullpipe" / "report" / "assets"
ROOT = Path(__file__).parent.parent
NOTICES = ROOT / "python" / "fullpipe" / "THIRD-PARTY-NOTICES.txt"


SHIPPED = ROOT / "python" / "fullpipe" / "shipped"
# Names the program with the QUIC stacks, if the wheel shall have it.
QUIC = "FULLPIPE_WHEEL_QUIC"


def carry(folder: Path = SHIPPED) -> None:
    """Copies what a checkout has beside the package into a folder of the package."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "scenarios", folder / "scenarios")
    if program := os.environ.get(QUIC):
        (folder / "bin").mkdir()
        shutil.copy(program, folder / "bin" / "fullpipe-quic")


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

    That is the crates in the native module, in the page's engine and in the program with the QUIC stacks, and
    what the page's scripts bundle.
    """
    crates = _linked_into(ROOT / "crates" / "py" / "Cargo.toml", ("fullpipe-py", "fullpipe-wasm"))
    if os.environ.get(QUIC):
        crates |= _linked_into(ROOT / "quic" / "world" / "Cargo.toml", ("fullpipe-quic",))
    parts = ["Fullpipe contains these works of others.\n"]
    for _, one in sorted(crates.items()):
        parts += _notice(one["name"], one["version"], one["license"], Path(one["manifest_path"]).parent)
    for folder in bundled():
        package = json.loads((folder / "package.json").read_text(encoding="utf-8"))
        parts += _notice(package["name"], package["version"], package["license"], folder)
    file.write_text("".join(parts), encoding="utf-8")


def _linked_into(manifest: Path, roots: Collection[str]) -> dict[tuple[str, str], dict[str, Any]]:
    """The crates from elsewhere in some of a workspace's crates, by name and version."""
    # A source distribution has fewer crates than the lock file.
    for locked in (["--locked"], []):
        words = ["cargo", "metadata", "--format-version", "1", *locked, "--manifest-path", str(manifest)]
        done = subprocess.run(words, stdout=subprocess.PIPE, check=not locked)
        if done.returncode == 0:
            break
    return {(one["name"], one["version"]): one for one in linked(json.loads(done.stdout), roots)}


def _notice(name: str, version: str, licence: str, folder: Path) -> Iterator[str]:
    yield f"\n{'=' * 80}\n{name} {version}: {licence}\n"
    for one in sorted(folder.iterdir()):
        if one.is_file() and one.name.upper().startswith(("LICEN", "COPYING", "NOTICE", "UNLICENSE")):
            yield f"\n--- {one.name}\n{one.read_text(encoding='utf-8', errors='replace')}"


def linked(reported: dict[str, Any], roots: Collection[str]) -> list[dict[str, Any]]:
    """The crates from elsewhere that are linked into some crates, of what `cargo metadata` prints."""
    packages = {one["id"]: one for one in reported["packages"]}
    nodes = {one["id"]: one for one in reported["resolve"]["nodes"]}
    waiting = [key for key, one in packages.items() if one["name"] in roots]
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
    """Builds a wheel that contains all of it."""
    carry()
    bundle()
    notices()
    return str(maturin.build_wheel(directory, settings, metadata))
