"""The fingerprint of stored runs covers every source that a run depends on."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WORLDS = {"FULLPIPE_SIM_BUILD": "fullpipe-sim", "FULLPIPE_KERNEL_BUILD": "fullpipe-kernel"}
CONTROLLERS = "python/fullpipe/scenario/controllers.py"
SCENARIO = ROOT / "crates" / "scenario" / "src"
# What of the scenario's crate no fingerprint covers: words, and what refuses specs. See crates/py/build.rs.
WORDS = {
    "declared",
    "document",
    "elements",
    "format",
    "place",
    "quantity",
    "queue",
    "reader",
    "resolve",
    "change_text",
    "schema",
    "unit",
}
REFUSALS = {"bounds", "check", "error", "key", "stack", "validate"}

pytestmark = pytest.mark.skipif(
    shutil.which("cargo") is None or shutil.which("rustc") is None, reason="needs Rust"
)


class Tree:
    """A copy of the sources, and the build script that prints their fingerprints."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "tree"
        ignored = shutil.ignore_patterns("target", "tests", "benches", "examples")
        shutil.copytree(ROOT / "crates", self.root / "crates", ignore=ignored)
        for name in ("Cargo.toml", "Cargo.lock", CONTROLLERS):
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        self._script = folder / "build-script"
        script = ROOT / "crates" / "py" / "build.rs"
        subprocess.run(["rustc", "--edition=2024", "-O", "-o", self._script, script], check=True)
        self._before = self.prints()

    def prints(self) -> dict[str, str]:
        """The fingerprint of each world."""
        done = subprocess.run(
            [self._script], cwd=self.root / "crates" / "py", capture_output=True, text=True, check=True
        )
        return dict(re.findall(r"cargo:rustc-env=(\w+)=(\w+)", done.stdout))

    def changed_by(self, source: str) -> set[str]:
        """The worlds whose fingerprint changes with that source."""
        path = self.root / source
        content = path.read_bytes()
        path.write_bytes(content + b"\nchanged = changed\n")
        after = self.changed()
        path.write_bytes(content)
        return after

    def changed(self) -> set[str]:
        """The worlds whose fingerprint is not what it was in the copy."""
        after = self.prints()
        return {name for name, print_ in self._before.items() if print_ != after[name]}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    return Tree(tmp_path_factory.mktemp("fingerprint"))


@pytest.mark.parametrize(
    "source",
    [
        "crates/scenario/src/transfers.rs",
        "crates/scenario/src/transfers/playback.rs",
        "crates/scenario/src/spec.rs",
        "crates/path/src/chain.rs",
        "crates/record/src/measures.rs",
        "crates/cc/src/parameter.rs",
        "Cargo.lock",
    ],
)
def test_shared_sources_are_in_both_fingerprints(source: str, tree: Tree) -> None:
    assert tree.changed_by(source) == set(WORLDS)


def test_other_sources_are_in_their_fingerprint(tree: Tree) -> None:
    members = _members()
    expected: dict[str, set[str]] = {}
    for variable, member in WORLDS.items():
        unread = {path for path in _unread() if variable == "FULLPIPE_KERNEL_BUILD" or "/cc/" not in path}
        for folder in _closure(member, members):
            for path in sorted(folder.joinpath("src").rglob("*.rs")):
                source = path.relative_to(ROOT).as_posix()
                left_out = any(source == one or source.startswith(f"{one}/") for one in unread)
                if not left_out and "tests" not in path.relative_to(folder).with_suffix("").parts:
                    expected.setdefault(source, set()).add(variable)
    for source, worlds in expected.items():
        assert tree.changed_by(source) == worlds, source


@pytest.mark.parametrize("source", ["crates/py/src/controller.rs", CONTROLLERS])
def test_python_driver_is_in_sim_fingerprint(source: str, tree: Tree) -> None:
    assert tree.changed_by(source) == {"FULLPIPE_SIM_BUILD"}


def test_new_file_changes_fingerprint(tree: Tree) -> None:
    new = tree.root / "crates" / "scenario" / "src" / "behaviour.rs"
    new.write_text("", encoding="utf-8")
    after = tree.changed()
    new.unlink()
    assert after == set(WORLDS)


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("crates/path/src/chain.rs", "crates/path/src/chain/mod.rs"),
        ("crates/cc/src/parameter.rs", "crates/units/src/other.rs"),
    ],
)
def test_moved_file_keeps_fingerprint(source: str, place: str, tree: Tree) -> None:
    new = tree.root / place
    new.parent.mkdir(exist_ok=True)
    old = (tree.root / source).rename(new)
    after = tree.changed()
    old.rename(tree.root / source)
    assert after == set()


@pytest.mark.parametrize(
    ("source", "before", "after"),
    [
        ("crates/path/src/chain.rs", "\n", "\n// More.\n"),
        ("crates/path/src/chain.rs", "//!", "//! Prose:"),
        ("crates/cc/src/controller.rs", ";\n", " ;\n\n"),
        (CONTROLLERS, "\n\n\n", "\n\n# More.\n"),
        (CONTROLLERS, "_SUFFIX = ", "_SUFFIX  =   "),
    ],
)
def test_comments_and_layout_keep_fingerprint(source: str, before: str, after: str, tree: Tree) -> None:
    path = tree.root / source
    content = path.read_text(encoding="utf-8")
    assert before in content
    path.write_text(content.replace(before, after), encoding="utf-8")
    changed = tree.changed()
    path.write_text(content, encoding="utf-8")
    assert changed == set()


@pytest.mark.parametrize(
    ("source", "before", "after"),
    [
        # The same name of another module may be something else.
        (
            "crates/cc/src/controllers/vegas.rs",
            "use crate::controllers::recovery::",
            "use crate::controllers::reno::",
        ),
        ("crates/path/src/chain.rs", "pub struct", "struct"),
        (CONTROLLERS, "    return", "return"),
    ],
)
def test_possible_meaning_change_changes_fingerprint(
    source: str, before: str, after: str, tree: Tree
) -> None:
    path = tree.root / source
    content = path.read_text(encoding="utf-8")
    assert before in content
    path.write_text(content.replace(before, after, 1), encoding="utf-8")
    changed = tree.changed()
    path.write_text(content, encoding="utf-8")
    assert "FULLPIPE_SIM_BUILD" in changed


def test_tokens_match_rust_and_python_lexers(tmp_path: Path) -> None:
    """The tests of the build script's lexer, which cargo does not run."""
    tests = tmp_path / "tokens"
    source = ROOT / "crates" / "py" / "tokens.rs"
    subprocess.run(["rustc", "--edition=2024", "--test", "-o", tests, source], check=True)
    done = subprocess.run([tests], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "10 passed" in done.stdout


def test_runs_do_not_depend_on_exclusions() -> None:
    """Neither the worlds nor what they read of the scenario's crate use its words."""
    left_out = WORDS | REFUSALS
    named = {Path(one).stem for one in _unread() if "/scenario/" in one}
    assert named == left_out
    for path in sorted(SCENARIO.rglob("*.rs")):
        module = path.relative_to(SCENARIO).parts[0].removesuffix(".rs")
        if module in left_out or module == "lib":
            continue
        code = path.read_text(encoding="utf-8").partition("#[cfg(test)]")[0]
        used = set(re.findall(r"\b(?:crate|super)::(\w+)", code))
        assert not used & WORDS, path
    for room in ("sim", "path", "scenario", "record"):
        for path in sorted((ROOT / "crates" / room / "src").rglob("*.rs")):
            reads = "fullpipe_replay" in path.read_text(encoding="utf-8")
            assert not reads or "recording" in path.relative_to(ROOT).as_posix(), path
    for world in ("sim", "emu", "kernel", "record", "path"):
        for path in sorted((ROOT / "crates" / world / "src").rglob("*.rs")):
            if path.relative_to(ROOT).as_posix() in _unread():
                continue
            text = path.read_text(encoding="utf-8").partition("#[cfg(test)]")[0]
            used = set(re.findall(r"\bfullpipe_scenario::(\w+)", text))
            modules = {"spec", "transfers", "controller", "metrics"}
            assert used <= {*modules, "Spec", "ControllerChoice", "Program", "Side"}, path


def _unread() -> set[str]:
    """What crates/py/build.rs leaves out."""
    script = (ROOT / "crates" / "py" / "build.rs").read_text(encoding="utf-8")
    return set(re.findall(r'"(crates/[^"]+/src[^"]*)"', script))


def _members() -> dict[str, dict[str, object]]:
    """Cargo's own list of the workspace's crates."""
    done = subprocess.run(
        ["cargo", "metadata", "--offline", "--no-deps", "--format-version", "1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return {one["name"]: one for one in json.loads(done.stdout)["packages"]}


def _closure(member: str, members: dict[str, dict[str, object]]) -> list[Path]:
    """The folders of a crate and of all that it depends on in the workspace."""
    names, waiting = set(), [member]
    while waiting:
        name = waiting.pop()
        if name in names:
            continue
        names.add(name)
        dependencies: list[dict[str, object]] = members[name]["dependencies"]  # type: ignore[assignment]
        waiting += [
            str(one["name"]) for one in dependencies if one["kind"] is None and one["name"] in members
        ]
    return [Path(str(members[name]["manifest_path"])).parent for name in sorted(names)]
