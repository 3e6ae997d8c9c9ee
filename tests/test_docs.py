"""What the documents promise is there."""

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import fullpipe as fp
from fullpipe.conformance import registry as cases
from fullpipe.conformance.programs import registry as programs

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [
    *ROOT.glob("*.md"),
    *sorted(ROOT.glob("docs/**/*.md")),
    *ROOT.glob("bench/*.md"),
]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_relative_links_lead_somewhere(document: Path) -> None:
    """A link that is no address names a file beside the document."""
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text()):
        assert (document.parent / target).exists(), f"{document.name} links to {target}, which is missing"


def anchors(document: Path) -> set[str]:
    """What a link can lead to: headings, in the way of GitHub, and places with an id."""
    text = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+?) *$", text, re.MULTILINE)
    shown = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", one).lower() for one in headings]
    named = {re.sub(r"[^\w -]", "", one).replace(" ", "-") for one in shown}
    return named | set(re.findall(r'<a id="([^"]+)">', text))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_to_anchors_resolve(document: Path) -> None:
    for target, place in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", document.read_text()):
        other = document.parent / target if target else document
        if other.suffix == ".md":
            assert place in anchors(other), f"{document.name} links to {target}#{place}, which is missing"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_nothing_is_left_to_fill_in(document: Path) -> None:
    """No line is a bare word in capitals."""
    assert not re.findall(r"^[A-Z][A-Z_]+$", document.read_text(), re.MULTILINE)


def test_scenarios_in_readme_are_shipped() -> None:
    """Commands can be pasted as they are."""
    for name in re.findall(r"scenarios/[\w.-]+\.toml", (ROOT / "README.md").read_text()):
        assert (ROOT / name).exists(), name


# What a checkout has only once something was built.
NOT_IN_A_CHECKOUT = ("/target/", "lab/dist", "cli/site/")
TREE = (
    "crates",
    "python",
    "packages",
    "quic",
    "lab",
    "tests",
    "bench",
    "docs",
    "results",
    "scenarios",
    "examples",
    "requirements",
)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_files_named_from_the_top_exist(document: Path) -> None:
    named = re.findall(rf"`((?:{'|'.join(TREE)})/[\w./-]+)`", document.read_text())
    missing = [
        name
        for name in named
        if not (ROOT / name).exists() and not any(part in name for part in NOT_IN_A_CHECKOUT)
    ]
    assert not missing, f"{document.name} names {', '.join(missing)}"


def docs_module(name: str) -> ModuleType:
    """A module of docs/, of which the site is made."""
    if str(ROOT / "docs") not in sys.path:
        sys.path.append(str(ROOT / "docs"))
    return importlib.import_module(name)


def test_reference_lists_commands_keys_names_crates() -> None:
    reference = docs_module("reference")
    commands = reference.commands()
    assert all(
        f"## fullpipe {one}\n" in commands for one in ("compare", "advise", "kernel record", "study run")
    )
    assert "`--rtt RTT`" in commands
    assert {"`path` – table, required", "## FlowDocument"} <= set(reference.scenarios().split("\n"))
    assert {f"## {one}" for one in fp.__all__ if one != "__version__"} <= set(reference.python().split("\n"))
    assert {
        f"`fullpipe-{one.parent.name}` in `crates/{one.parent.name}`"
        for one in ROOT.glob("crates/*/Cargo.toml")
    } <= set(reference.crates().split("\n"))


def test_reference_lists_cases_with_limits() -> None:
    text = docs_module("reference").cases()
    for case in (*cases.every(), *programs.every()):
        part = text.partition(f"### {case.name}\n")[2].partition("\n### ")[0]
        assert part.count("\n- ") >= len(case.criteria) + len(case.failed_by), case.name
        assert all(name in part for name in case.failed_by)
        assert all(one.is_whether or f"{one.bounds} (" in part for one in case.criteria), case.name


def test_every_reference_part_has_page() -> None:
    pages = "".join(one.read_text() for one in ROOT.glob("docs/**/*.md"))
    assert {one for one in docs_module("reference").PARTS if f"<!-- {one} -->\n" in pages} == set(
        docs_module("reference").PARTS
    )


def test_the_index_links_to_every_page() -> None:
    contents = docs_module("reference").contents((ROOT / "docs" / "index.md").read_text())
    pages = {str(one.relative_to(ROOT / "docs").with_suffix("")) for one in ROOT.glob("docs/*/**/*.md")}
    assert set(re.findall(r"^[\w-]+/[\w/-]+$", contents, re.MULTILINE)) == pages


def test_architecture_map_is_two_pages() -> None:
    assert len((ROOT / "ARCHITECTURE.md").read_text().split()) <= 900
