"""What the documents promise is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "ARCHITECTURE.md",
    *sorted(ROOT.glob("docs/*.md")),
    *ROOT.glob("bench/*.md"),
]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_relative_links_lead_somewhere(document: Path) -> None:
    """A link that is no address names a file beside the document."""
    for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
        assert (document.parent / target).exists(), f"{document.name} links to {target}, which is missing"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_nothing_is_left_to_fill_in(document: Path) -> None:
    """No line is a bare word in capitals."""
    assert not re.findall(r"^[A-Z][A-Z_]+$", document.read_text(), re.MULTILINE)


def test_every_scenario_that_the_readme_names_is_shipped() -> None:
    """Commands can be pasted as they are."""
    for name in re.findall(r"scenarios/[\w.-]+\.toml", (ROOT / "README.md").read_text()):
        assert (ROOT / name).exists(), name
