"""Makes known mistakes one at a time and shows that the suite fails.

    python tests/mistakes/run.py [NAME...] [--quick] [--tests] [--list] [--markdown FILE]

Each mistake of mistakes.toml replaces a piece of a copy of the workspace. Then the proofs run: the replay of
every recorded kernel decision (crates/record/tests/corpus.rs); and where that notices nothing, or the list
expects more, the laws and unit tests of the controllers. Replay or laws must notice: a unit test alone is not
enough, for who makes the mistake in the code makes it in the test. No recording has decisions of BBRv3: for a
mistake in it, the Python module is built in the copy, `fullpipe conform bbr3` plays the cases, and the case
that the list names must fail. Needs cargo, and the packages that the workspace needs anyway; nothing else.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("mistakes.toml")
# How tests of fullpipe-conformance are called; those of fullpipe-cc begin with their module.
CONFORMANCE = "tests::"
LAWS = f"{CONFORMANCE}every_controller_obeys"

REPLAY = ("-p", "fullpipe-record", "--features", "parquet", "--test", "corpus")
SMALL_BYTES = "200000"
# What the module has besides the simulator, which plays no case: it need not be fast, only built fast.
BESIDE = ("capture", "emu", "export", "files", "kernel", "record", "replay", "scenario")
# The Python module. A mistake changes one crate, and the others change little with it.
MODULE = (
    "build",
    "--locked",
    "--release",
    "-p",
    "fullpipe-py",
    *(f"--config=profile.release.package.fullpipe-{name}.opt-level=0" for name in BESIDE),
)
FAST_TO_BUILD = {
    "CARGO_PROFILE_RELEASE_LTO": "false",
    "CARGO_PROFILE_RELEASE_CODEGEN_UNITS": "16",
    "CARGO_PROFILE_RELEASE_DEBUG": "0",
    "CARGO_INCREMENTAL": "1",
}
TESTS = ("-p", "fullpipe-cc", "-p", "fullpipe-conformance", "--lib", "--no-fail-fast")
# A mistake may make a loop endless; a build and a run take seconds once the first build is done.
FIRST_SECONDS, LIMIT_SECONDS = 3600, 600


@dataclass(frozen=True)
class Mistake:
    """One entry of the list; mistakes.toml says what the fields are."""

    name: str
    what: str
    made: str
    file: str
    text: str
    instead: str
    caught: tuple[str, ...]
    quick: bool = False
    # The case of `fullpipe conform bbr3` that must fail, where "conform" is to notice.
    case: str = ""

    def applied(self, source: str) -> str:
        """The source with the mistake in it."""
        found = source.count(self.text)
        if found != 1:
            raise StaleError(
                f"{LIST.name}: {self.name} is stale: its text occurs {found} times in {self.file}"
            )
        return source.replace(self.text, self.instead)


class StaleError(Exception):
    """The list does not fit the code."""


class BrokenError(Exception):
    """The proofs could not run, or fail without any mistake."""


@dataclass(frozen=True)
class Verdict:
    """What noticed a mistake."""

    # The field that differs first, of each recording that differs.
    replay: dict[str, str] = field(default_factory=dict)
    # Recordings replayed, if some differ.
    replayed: int = 0
    laws: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    # Cases of `fullpipe conform bbr3` that fail, and what the first of them says.
    cases: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    def by(self) -> tuple[str, ...]:
        """The proofs that count."""
        proofs = {"replay": self.replay, "laws": self.laws, "conform": self.cases}
        return tuple(name for name, found in proofs.items() if found)


def load() -> list[Mistake]:
    """The list, in its order."""
    entries = tomllib.loads(LIST.read_text())
    return [
        Mistake(name=name, **{**entry, "caught": tuple(entry["caught"])}) for name, entry in entries.items()
    ]


class Copy:
    """A copy of the workspace, with a folder for builds that stays warm."""

    def __init__(self, folder: Path, target: Path) -> None:
        self.folder = folder
        # Of the last test run.
        self.output = ""
        self.target = target
        # Without the times of the files: to cargo a copy elsewhere is the same package, and what looks older
        # than the last build would not be built again, though that had another copy's last mistake in it.
        for name in ("Cargo.toml", "Cargo.lock"):
            shutil.copyfile(ROOT / name, folder / name)
        left_out = shutil.ignore_patterns("target", "peers")
        for name in (".cargo", "crates", "bench"):
            shutil.copytree(ROOT / name, folder / name, ignore=left_out, copy_function=shutil.copyfile)
        # The module's fingerprint covers files of the package.
        shutil.copytree(
            ROOT / "python",
            folder / "python",
            ignore=shutil.ignore_patterns("*.so", "__pycache__"),
            copy_function=shutil.copyfile,
        )
        (folder / "tests").mkdir()
        (folder / "tests" / "recordings").symlink_to(ROOT / "tests" / "recordings")

    def prove(self, limit: float, *, tests_too: bool = False) -> Verdict:
        """Runs the replay, and the tests if the replay notices nothing or they are asked for."""
        start = time.monotonic()
        # Most mistakes show in the small recordings, which take a second; the others get all of them.
        replay = self._test(REPLAY, limit, FULLPIPE_CORPUS_MAX_BYTES=SMALL_BYTES)
        if not _failed(replay):
            replay = self._test(REPLAY, limit)
        differs = dict(re.findall(r"^differs (\S+) ([^:\s]+):", replay, re.MULTILINE))
        if not differs and _failed(replay):
            differs = {"all": "end"}
        tests = self._test(TESTS, limit) if tests_too or not differs else ""
        failing = sorted(set(re.findall(r"^test (\S+) \.\.\. FAILED", tests, re.MULTILINE)))
        if not failing and _failed(tests):
            failing = ["(the test binary did not end)"]
        laws = tuple(name.removeprefix(CONFORMANCE) for name in failing if name.startswith(LAWS))
        units = tuple(name for name in failing if not name.startswith(CONFORMANCE))
        replayed = re.search(r"^(\d+) recordings$", replay, re.MULTILINE)
        return Verdict(
            differs,
            int(replayed[1]) if replayed else 0,
            laws,
            units,
            seconds=time.monotonic() - start,
        )

    def conform(self, limit: float) -> Verdict:
        """Builds the Python module and plays every case with bbr3."""
        start = time.monotonic()
        builds = {"CARGO_TARGET_DIR": str(self.target), "CARGO_TERM_COLOR": "never", **FAST_TO_BUILD}
        code = self._run(["cargo", *MODULE], FIRST_SECONDS, builds)
        if code != 0:
            raise BrokenError(f"the Python module does not build:\n{self.output}")
        package = self.folder / "python"
        shutil.copyfile(self.target / "release" / "lib_native.so", package / "fullpipe" / "_native.abi3.so")
        arguments = [sys.executable, "-m", "fullpipe", "conform", "bbr3", "--json"]
        code = self._run(arguments, limit, {"PYTHONPATH": str(package)}, errors=subprocess.DEVNULL)
        if code not in (0, 1):
            raise BrokenError(f"`fullpipe conform bbr3` ended with {code}:\n{self.output}")
        cases = {
            one["name"]: _reported(one)
            for one in json.loads(self.output)["cases"]
            if one["verdict"] == "fail"
        }
        return Verdict(cases=cases, seconds=time.monotonic() - start)

    def _test(self, what: tuple[str, ...], limit: float, **more: str) -> str:
        """The output of a test run; of one that hangs, what it says so far."""
        builds = {"CARGO_TARGET_DIR": str(self.target), "CARGO_TERM_COLOR": "never"}
        arguments = ["cargo", "test", "--locked", *what]
        code = self._run(arguments, limit, {**builds, **more})
        if code is None:
            self.output = "it hangs\ntest result: FAILED. "
        output = self.output
        if code != 0 and "could not compile" in output:
            raise BrokenError(f"it does not compile:\n{output}")
        if code != 0 and "Running" not in output and "it hangs" not in output:
            raise BrokenError(f"`{' '.join(arguments)}` failed:\n{output}")
        return output if code == 0 else f"{output}\ntest result: FAILED. "

    def _run(
        self, arguments: list[str], limit: float, more: dict[str, str], errors: int = subprocess.STDOUT
    ) -> int | None:
        """Runs a command with its output in `output`; returns its exit code, None if it hangs."""
        # Its own session, so that a hanging test goes with cargo.
        with subprocess.Popen(
            arguments,
            cwd=self.folder,
            env={**os.environ, **more},
            text=True,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        ) as running:
            try:
                self.output, _ = running.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                os.killpg(running.pid, 9)
                return None
        return running.returncode


def _reported(case: dict[str, Any]) -> str:
    """What a failing case says: the first criterion that is not met, and why."""
    for one in case["criteria"]:
        if not one["met"]:
            measured = "never" if one["measured"] is None else f"{one['measured']:.4g}"
            return f"{one['says']}: {measured} {one['unit']}".rstrip()
    return str(case["reason"])


def _failed(output: str) -> bool:
    return "test result: FAILED." in output


def make(copy: Copy, mistake: Mistake, *, tests_too: bool) -> Verdict:
    """Makes a mistake, and unmakes it."""
    path = copy.folder / mistake.file
    source = path.read_text()
    path.write_text(mistake.applied(source))
    try:
        if mistake.case:
            return copy.conform(LIMIT_SECONDS)
        return copy.prove(LIMIT_SECONDS, tests_too=tests_too or "laws" in mistake.caught)
    except BrokenError as error:
        raise BrokenError(f"{mistake.name}: {error}") from None
    finally:
        path.write_text(source)


def problem(mistake: Mistake, verdict: Verdict) -> str | None:
    """What is wrong with a verdict, if something is."""
    if mistake.case and mistake.case not in verdict.cases:
        return f"NOT CAUGHT by {mistake.case}"
    if not verdict.by():
        return "NOT CAUGHT by replay or laws" + (", only by unit tests" if verdict.units else "")
    missing = [proof for proof in mistake.caught if proof not in verdict.by()]
    return f"the list expects {' and '.join(missing)} to notice" if missing else None


def reported(verdict: Verdict, *, short: bool) -> tuple[str, str, str]:
    """Replay, laws and unit tests, in words."""
    replay = ""
    if verdict.replay:
        [(most, _)] = Counter(verdict.replay.values()).most_common(1)
        replay = f"{len(verdict.replay)} of {verdict.replayed} recordings, {most} first"
    laws = ", ".join(verdict.laws)
    units = f"{len(verdict.units)}" if short else ", ".join(verdict.units)
    return replay, laws, units if verdict.units else ""


def markdown(results: list[tuple[Mistake, Verdict]]) -> str:
    """The tables of README.md."""
    rows = [
        "| mistake | where it was made | replay differs | laws broken | unit tests |",
        "|---|---|---|---|---|",
    ]
    cases = [
        "| mistake | where it was made | the case, and what it shows | others that fail |",
        "|---|---|---|---|",
    ]
    for mistake, verdict in results:
        if mistake.case:
            message = verdict.cases.get(mistake.case, "passes")
            others = ", ".join(name for name in verdict.cases if name != mistake.case)
            cases.append(f"| {mistake.what} | {mistake.made} | `{mistake.case}`: {message} | {others} |")
        else:
            replay, laws, units = reported(verdict, short=True)
            rows.append(
                f"| {mistake.what} | {mistake.made} | {replay} | {laws.replace('_', ' ')} | {units} |"
            )
    return "\n\n".join("\n".join(table) for table in (rows, cases) if len(table) > 2) + "\n"


def target_folder() -> Path:
    """Where the copy is built: beside the other builds, so that `cargo clean` clears it."""
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "mistakes"


def main() -> int:
    """Runs what the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="mistakes to make; all without any")
    parser.add_argument("--list", action="store_true", help="say what there is, and do nothing")
    parser.add_argument("--quick", action="store_true", help="only the shorter list")
    parser.add_argument(
        "--tests", action="store_true", help="run laws and unit tests though the replay fails"
    )
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the table there as well")
    parser.add_argument("--target-dir", type=Path, default=target_folder(), help="where to build; of its own")
    options = parser.parse_args()
    if options.target_dir.resolve() == target_folder().parent:
        # The workspace's next build would take the copy's for its own, mistake and all.
        parser.error("--target-dir must not be the folder in which the workspace itself is built")
    mistakes = load()
    unknown = set(options.names) - {mistake.name for mistake in mistakes}
    if unknown:
        parser.error(f"no such mistake: {', '.join(sorted(unknown))}; --list has them")
    if options.names:
        mistakes = [mistake for mistake in mistakes if mistake.name in options.names]
    elif options.quick:
        mistakes = [mistake for mistake in mistakes if mistake.quick]
    for mistake in mistakes:
        mistake.applied((ROOT / mistake.file).read_text())
    if options.list:
        for mistake in mistakes:
            print(f"{mistake.name:36} {mistake.what} ({mistake.made})")
        return 0
    results, problems = [], 0
    with tempfile.TemporaryDirectory(prefix="fullpipe-mistakes-") as folder:
        copy = Copy(Path(folder), options.target_dir.resolve())
        for needed, proof in (
            (not all(mistake.case for mistake in mistakes), copy.prove),
            (any(mistake.case for mistake in mistakes), copy.conform),
        ):
            if not needed:
                continue
            unmodified = proof(FIRST_SECONDS)
            if unmodified.by() or unmodified.units:
                raise BrokenError(f"the suite fails without any mistake:\n{copy.output[-3000:]}")
            print(f"without a mistake the suite passes ({unmodified.seconds:.0f} s)", flush=True)
        for mistake in mistakes:
            verdict = make(copy, mistake, tests_too=options.tests)
            results.append((mistake, verdict))
            wrong = problem(mistake, verdict)
            problems += wrong is not None
            replay, laws, units = reported(verdict, short=True)
            by = [f"replay: {replay}" if replay else "", f"laws: {laws}" if laws else ""]
            by.append(f"unit tests: {units}" if units else "")
            by.append(f"cases: {', '.join(verdict.cases)}" if verdict.cases else "")
            line = "; ".join(filter(None, [wrong or "", *by]))
            print(f"{mistake.name:36} {verdict.seconds:4.0f} s  {line}", flush=True)
    if options.markdown:
        options.markdown.write_text(markdown(results))
    total = sum(verdict.seconds for _, verdict in results)
    print(f"{len(results)} mistakes, {len(results) - problems} caught as the list says ({total:.0f} s)")
    return 1 if problems else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (StaleError, BrokenError) as error:
        sys.exit(f"{error}")
