"""Records a gate's cases with a revision of the developer's repository: `gate diff --against git:main`.

The revision is checked out in a temporary folder, by a clone that borrows the repository's objects, so that
nothing in the repository itself changes. There, the gate file's `[build]` makes the program, and
`gate record` writes a baseline, in a process of its own. Builds and that process end with this one; the
folder goes, too, unless this process is killed by SIGKILL.
"""

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from fullpipe._native import ScenarioError
from fullpipe.errors import mistake, stated, unusable
from fullpipe.gate import baseline as baselines
from fullpipe.gate.cases import Build, Gate
from fullpipe.runs.worlds import child, quic_program
from fullpipe.scenario.controllers import is_own
from fullpipe.text import shown

_PREFIX = "git:"
_FIELD = "against"
# How often it is seen whether a command has ended.
_LOOK_S = 0.2


@dataclass(frozen=True)
class Recorded:
    """A baseline of a revision, and how the answer names it: "git:main (3875878a)"."""

    baseline: Path
    title: str


@contextlib.contextmanager
def recorded(against: str, gate: Gate, words: Sequence[str]) -> Iterator[Recorded]:
    """The baseline of a revision such as `git:main`, with traces, as long as the context lasts.

    `words` are more options of `gate record`. The cases are the gate file's; the files that it names are the
    revision's.

    Raises:
        ScenarioError: There is no such revision, nothing in the gate file depends on it, it cannot be built,
            or one of its cases cannot run.
    """
    repository, commit = _revision(against, gate)
    title = f"{against} ({commit[:8]})"
    with _ended_by_signals(), tempfile.TemporaryDirectory(prefix="fullpipe-gate-") as temporary:
        folder = Path(temporary).resolve()
        checkout, baseline = folder / "checkout", folder / baselines.DEFAULT
        _git(repository, "clone", "--quiet", "--shared", "--no-checkout", str(repository), str(checkout))
        _git(checkout, "-c", "advice.detachedHead=false", "checkout", "--quiet", "--detach", commit)
        there = checkout / gate.path.resolve().relative_to(repository)
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(gate.path, there)
        variables, adapter = built(gate.build, there.parent, title)
        command = [sys.executable, "-m", "fullpipe", "gate", "record", there.name]
        command += ["--baseline", str(baseline), "--traces", *words]
        command += [] if adapter is None else ["--stack", adapter]
        # It says itself, on standard error, what is wrong.
        if _run(command, there.parent, variables):
            fix = f"see above; or choose cases that run with both, by --only: {gate.path}"
            raise _unusable(against, f"the cases of {title} cannot be recorded", fix)
        yield Recorded(baseline, title)


def built(build: Build | None, folder: Path, title: str) -> tuple[Mapping[str, str], str | None]:
    """Runs the command of `[build]` in a gate file's folder.

    Returns the variable that names its program or, of an adapter, what `--stack` takes.

    Raises:
        ScenarioError: The command fails, or does not make the program.
    """
    if build is None:
        return {}, None
    if code := _run(["/bin/sh", "-c", build.command], folder, {}):
        raise _unusable(build.command, f"the build of {title} ended with code {code}", "see its output above")
    program = folder / build.program
    if not program.is_file():
        fix = "correct build.program in the gate file, relative to its folder"
        raise _unusable(build.program, f"the build of {title} made no program {build.program}", fix)
    if build.stack:
        return {}, f"{build.stack}={shlex.quote(str(program))}"
    return {quic_program.VARIABLE: str(program)}, None


def _revision(against: str, gate: Gate) -> tuple[Path, str]:
    """The repository of the gate file, and the commit that a text such as `git:main` names."""
    name = against.removeprefix(_PREFIX)
    if not against.startswith(_PREFIX) or not name:
        raise mistake(_FIELD, against, "a revision of the gate file's repository", "e.g. git:main")
    if gate.build is None and not any(is_own(case.subject) for case in gate.cases):
        fix = "add [build] with command and program: docs/how-to/gate.md"
        raise _unusable(against, f"no case of {gate.path} depends on this repository", fix)
    folder = gate.path.resolve().parent
    if shutil.which("git") is None:
        raise unusable("--against", "needs git, which is missing", "install git")
    try:
        top = _git(folder, "rev-parse", "--show-toplevel")
        commit = _git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    except ScenarioError as error:
        fix = "`git branch --all` lists branches; in CI, fetch the history (fetch-depth: 0)"
        raise _unusable(against, f"it names no commit of {folder}{_because(error)}", fix) from None
    return Path(top), commit


def _because(error: ScenarioError) -> str:
    return f" ({error.given})" if error.given else ""


def _git(folder: Path, *words: str) -> str:
    """What git prints. The error has what it complains of as `given`.

    Hooks do not run: they are about the developer's own checkout.
    """
    command = ["git", "-c", "core.hooksPath=/dev/null", *words]
    process = child.start(
        command,
        cwd=folder,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        out, complaints = process.communicate()
    finally:
        child.end(process)
    if process.returncode:
        message = child.last_line(complaints)
        raise stated(_FIELD, message, f"git {words[0]}: {message}", "a git repository", "see git's message")
    return out.decode(errors="surrogateescape").rstrip("\n")


def _run(command: Sequence[str], folder: Path, variables: Mapping[str, str]) -> int:
    """Runs a command, whose output goes to standard error, and returns its exit code."""
    process = child.start(
        list(command), cwd=folder, env={**_environment(), **variables}, stdin=subprocess.DEVNULL, stdout=2
    )
    try:
        while True:
            # Waits by looks: an interrupt does not end a wait without a limit that the system restarts.
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(_LOOK_S)
    finally:
        child.end(process)


def _environment() -> dict[str, str]:
    """This process's, without what a hook of git says about another checkout."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Makes the signals that end a process exceptions, so that what is temporary is removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {one: signal.signal(one, leave) for one in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def _unusable(given: str, wrong: str, fix: str) -> ScenarioError:
    return stated(_FIELD, given, f'--against "{shown(given)}": {wrong}; {fix}', "a revision that runs", fix)
