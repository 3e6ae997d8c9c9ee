"""Locked Python packages are those of the metadata; crates have allowed sources and licences."""

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]
# The packages beside the core, which install with the same lock files.
BESIDE = [
    tomllib.loads(one.read_text(encoding="utf-8")) for one in sorted(ROOT.glob("packages/*/pyproject.toml"))
]
# What each lock file is for, besides what builds the packages.
EXTRA_OF = {"studies": "map", "dev": "dev"}
# What the Makefile installs with it beside the core.
INSTALLED = {
    "studies": [one for one in BESIDE if one["project"]["name"] == "fullpipe-studies"],
    "dev": BESIDE,
}
# Not those of packages that are unpacked below a build folder.
LOCKS = [one for one in sorted(ROOT.glob("**/Cargo.lock")) if "target" not in one.parts]
PIN = re.compile(
    r"^([\w.-]+)==([^\s;\\]+)( ; [^\\]+)? \\\n((?: +--hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.MULTILINE
)


def canonical(name: str) -> str:
    return name.lower().replace("_", "-")


def text(name: str) -> str:
    return (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")


def locked(name: str) -> dict[tuple[str, str], str]:
    """The versions, by package and marker."""
    return {(one[1].lower(), one[3] or ""): one[2] for one in PIN.finditer(text(name))}


def built_with() -> list[str]:
    """What builds the core and the packages beside it."""
    return list(
        dict.fromkeys(one for project in (PROJECT, *BESIDE) for one in project["build-system"]["requires"])
    )


def asked(name: str) -> list[Requirement]:
    """What a lock file must fit, with the extras of extras."""
    found = [Requirement(one) for one in built_with()]
    waiting: list[str] = []
    if name in EXTRA_OF:
        waiting += [*PROJECT["project"]["dependencies"], f"fullpipe[{EXTRA_OF[name]}]"]
        waiting += [one for project in INSTALLED[name] for one in project["project"]["dependencies"]]
    while waiting:
        one = Requirement(waiting.pop())
        if one.name == "fullpipe":
            waiting += [inner for extra in one.extras for inner in EXTRAS[extra]]
        else:
            found.append(one)
    return found


@pytest.mark.parametrize("name", ["build", "studies", "dev"])
def test_lock_fits_the_metadata(name: str) -> None:
    versions = locked(name)
    for one in asked(name):
        fitting = [version for (package, _), version in versions.items() if package == canonical(one.name)]
        assert fitting and all(one.specifier.contains(version) for version in fitting), str(one)


@pytest.mark.parametrize("name", ["build", "studies", "dev", "docs"])
def test_every_lock_line_pins_with_hashes(name: str) -> None:
    assert PIN.sub("", text(name)) == ""


def test_locks_have_the_same_versions() -> None:
    every = locked("dev")
    for name in ("build", "studies"):
        assert locked(name).items() <= every.items()


def test_site_lock_shares_package_versions() -> None:
    every = {package: version for (package, _), version in locked("dev").items()}
    site = {package: version for (package, _), version in locked("docs").items()}
    assert {one: site[one] for one in site.keys() & every.keys()} == {
        one: every[one] for one in site.keys() & every.keys()
    }
    lines = (ROOT / "requirements" / "docs.in").read_text(encoding="utf-8").splitlines()
    assert {one for one in lines if not one.startswith("#")} <= site.keys()


def test_build_requirements_match_metadata() -> None:
    lines = (ROOT / "requirements" / "build.in").read_text(encoding="utf-8").splitlines()
    assert [one for one in lines if not one.startswith("#")] == built_with()


@pytest.mark.parametrize("file", LOCKS, ids=lambda one: str(one.relative_to(ROOT)))
def test_crates_come_from_the_registry_alone(file: Path) -> None:
    packages = tomllib.loads(file.read_text(encoding="utf-8"))["package"]
    others = [one for one in packages if "source" in one]
    assert all(one["source"].startswith("registry+") and len(one["checksum"]) == 64 for one in others)


DENY = tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8"))


def allowed(licence: str) -> bool:
    """Whether deny.toml allows an SPDX expression."""
    listed = DENY["licenses"]["allow"]
    words = {"AND": "and", "OR": "or"}
    terms = re.compile(r"[\w.-]+(?: WITH [\w.-]+)?")
    expression = terms.sub(lambda one: words.get(one[0], str(one[0] in listed)), licence.replace("/", " OR "))
    return bool(eval(expression, {"__builtins__": {}}))


@pytest.mark.parametrize(
    ("licence", "is_allowed"),
    [
        ("MIT/Apache-2.0", True),
        ("(MIT OR GPL-3.0-only) AND Unicode-3.0", True),
        ("MIT AND GPL-3.0-only", False),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("MIT WITH LLVM-exception", False),
    ],
)
def test_an_expression_of_licences_is_judged(licence: str, is_allowed: bool) -> None:
    assert allowed(licence) == is_allowed


def test_every_crate_has_an_allowed_licence() -> None:
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not installed, so that the licences of crates are not known")
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True)
    crates = [one for one in json.loads(done.stdout)["packages"] if one["source"] is not None]
    assert len(crates) > 100
    assert [one["id"] for one in crates if not allowed(one["license"] or "NONE")] == []
