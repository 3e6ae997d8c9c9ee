"""The hand-written stubs of the native module say what the module has."""

import ast
import inspect
from pathlib import Path

import pytest

from fullpipe import _native

STUBS = ast.parse((Path(__file__).parent.parent / "python/fullpipe/_native.pyi").read_text(encoding="utf-8"))
FUNCTIONS = {node.name: node for node in STUBS.body if isinstance(node, ast.FunctionDef)}
CLASSES = {node.name: node for node in STUBS.body if isinstance(node, ast.ClassDef)}


def test_the_names_are_the_same() -> None:
    there = {name for name in dir(_native) if not name.startswith("_")}
    former = {
        name.id
        for node in STUBS.body
        if isinstance(node, ast.Assign)
        for name in node.targets
        if isinstance(name, ast.Name)
    }
    assert there == set(FUNCTIONS) | set(CLASSES) | former - {"__all__"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_parameters_are_the_same(name: str) -> None:
    stub = FUNCTIONS[name].args
    there = inspect.signature(getattr(_native, name)).parameters.values()
    assert [one.arg for one in stub.args] == [one.name for one in there]
    optional = [one.arg for one in stub.args][len(stub.args) - len(stub.defaults) :]
    assert optional == [one.name for one in there if one.default is not inspect.Parameter.empty]


@pytest.mark.parametrize("name", CLASSES)
def test_the_classes_have_what_is_said(name: str) -> None:
    there = getattr(_native, name)
    for base in CLASSES[name].bases:
        assert isinstance(base, ast.Name)
        assert base.id in {one.__name__ for one in there.__mro__}
    for member in CLASSES[name].body:
        if isinstance(member, ast.FunctionDef):
            assert hasattr(there, member.name)
        elif isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name):
            assert hasattr(there, member.target.id)
