"""A copy of the Rust sources, for tests that follow a README's steps in it, and cargo for that copy."""

import os
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent


def steps(readme: Path, heading: str) -> list[tuple[str, str, str]]:
    """Each numbered step below a heading: the file it touches, and its code, which is Rust or a diff."""
    text = readme.read_text(encoding="utf-8").partition(f"## {heading}\n")[2]
    found = re.findall(r"^\d\. `([^`]+)`.*?^   ```(rust|diff)\n(.*?)^   ```$", text, re.MULTILINE | re.DOTALL)
    # The code is indented as the step is.
    return [(file, kind, re.sub(r"^   ", "", code, flags=re.MULTILINE)) for file, kind, code in found]


def copied(folder: Path) -> Path:
    """Copies the workspace into a new folder."""
    left_out = shutil.ignore_patterns("target", "peers")
    for name in ("crates", "bench"):
        # Without the times of the files: to cargo every copy is the same package, and what looks older than
        # the last build would not be built again.
        shutil.copytree(ROOT / name, folder / name, ignore=left_out, copy_function=shutil.copyfile)
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copyfile(ROOT / name, folder / name)
    return folder


def cargo(tree: Path, *arguments: str) -> str:
    """What cargo prints, with a target folder of its own that stays warm. Built to be built fast."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "added"
    profile = {"CARGO_PROFILE_DEV_OPT_LEVEL": "0", "CARGO_PROFILE_DEV_DEBUG": "0"}
    done = subprocess.run(
        ["cargo", *arguments],
        cwd=tree,
        env={**os.environ, **profile, "CARGO_TARGET_DIR": str(target), "CARGO_TERM_COLOR": "never"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
