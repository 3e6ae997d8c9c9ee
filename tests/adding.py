"""A copy of the Rust sources, for tests that follow a README's steps in it, and cargo for that copy."""

import os
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent
# The crates that tests of laws spend their time in: many runs of each controller.
LAWS = {"cc", "conformance", "units"}


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
    # No crate of the copy is one of the workspace's, and most are built to be built fast.
    members = ["bench", *sorted(one.name for one in (folder / "crates").iterdir())]
    lines = [
        f"[profile.dev.package.fullpipe-{one}]\nopt-level = {int(one in LAWS)}\ndebug = false\n"
        for one in members
    ]
    (folder / ".cargo").mkdir()
    (folder / ".cargo" / "config.toml").write_text("".join(lines), encoding="utf-8")
    return folder


def cargo(tree: Path, *arguments: str) -> str:
    """What cargo prints. Crates of registries are those that the workspace's tests compiled."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
    done = subprocess.run(
        ["cargo", "--config", str(ROOT / ".cargo" / "config.toml"), *arguments],
        cwd=tree,
        env={**os.environ, "CARGO_TARGET_DIR": str(target), "CARGO_TERM_COLOR": "never"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
