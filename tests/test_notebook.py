"""The notebook in docs runs from top to bottom, without a network."""

import ast
import json
import socket
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).resolve().parent.parent / "docs" / "tutorials" / "notebook.ipynb"


def cells() -> list[str]:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def show(value: Any) -> None:
    """What a notebook does with the value of a cell: all forms in which it can show itself."""
    for name in ("_repr_mimebundle_", "_repr_html_"):
        if hasattr(value, name):
            assert getattr(value, name)()
    assert repr(value)


def test_every_cell_runs_and_shows_value(in_empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object, **_more: object) -> None:
        raise AssertionError("a cell wants the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    names: dict[str, Any] = {}
    shown = 0
    for source in cells():
        tree = ast.parse(source)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, str(NOTEBOOK), "exec"), names)
        if isinstance(last, ast.Expr):
            show(eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names))
            shown += 1
    assert shown >= 6
    assert not list(in_empty_folder.iterdir())


def test_no_cell_carries_output() -> None:
    """Output would be a second copy of what the code gives, and go stale."""
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert not any(cell.get("outputs") for cell in notebook["cells"])
