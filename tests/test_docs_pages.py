"""The blocks of Python in the pages of docs run, in order, as a reader would paste them."""

import re
import socket
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# A page becomes one of these by having a block.
PAGES = [
    page
    for page in [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]
    if _BLOCK.search(page.read_text())
]


def test_there_are_pages_to_run() -> None:
    assert {"README", "simulation", "controllers", "environments"} <= {page.stem for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_of_a_page_runs(
    page: Path, in_empty_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object, **_more: object) -> None:
        raise AssertionError("a block wants the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    text = page.read_text()
    if "import gymnasium" in text:
        pytest.importorskip("gymnasium", reason="this page needs gymnasium")
        pytest.importorskip("pettingzoo", reason="this page needs pettingzoo")
    names: dict[str, Any] = {"__name__": f"docs_{page.stem}"}
    for block in _BLOCK.finditer(text):
        # Tracebacks name the line of the page.
        before = text.count("\n", 0, block.start(1))
        exec(compile("\n" * before + block[1], str(page), "exec"), names)
    assert not list(in_empty_folder.iterdir()), "a block leaves files behind"
