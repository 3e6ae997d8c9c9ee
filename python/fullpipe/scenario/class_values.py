"""What the values in a class say: its attributes, its methods' defaults, and what they use from around them.

Two classes that one function makes have the same source. They differ in these values, and an address that
had only the source would give the runs of one to the other. Only plain values can be told apart: numbers,
text, None, lists, tuples, sets and dicts of these, members of an enum, instances of a dataclass, and code.
"""

import dataclasses
import enum
import functools
import sys
from collections.abc import Iterator, Mapping, Sequence
from numbers import Number
from pathlib import Path, PurePath
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MemberDescriptorType, ModuleType

# What may have a special name, as `__init__`.
_FUNCTIONS = (FunctionType, classmethod, staticmethod, property)
_SCALARS = (bool, int, float, complex, str, bytes, range, type(None), type(...))


class NotPlainError(Exception):
    """A value that cannot be told from others by its text: where it is, and what."""


def of_parameters(parameters: Mapping[str, object]) -> str:
    """A controller's parameters as text, sorted by name. Raises `NotPlainError`."""
    for name, value in parameters.items():
        _text(value, f"the parameter {name}")
    return _text(sorted(parameters.items()), "the parameters")


def of_class(made_by: type, below: type, *, in_file: bool) -> str:
    """The values in a class and in those that it extends up to `below`. Raises `NotPlainError`.

    Empty if they are in files and have their names there, because then the files say the values.
    """
    classes = [one for one in made_by.__mro__ if one not in below.__mro__]
    if in_file and all(map(_is_known_by_name, classes)):
        return ""
    return "\n".join(_of_class(one, one.__name__, classes) for one in classes)


def _text(value: object, where: str, inside: Sequence[object] = ()) -> str:
    """The value as text that is the same in every process. Plain literals are as Python writes them.

    `inside` are the values that it is part of. A class or function that uses itself is only named.
    """
    kind = type(value)
    # Numbers may be those of a package, e.g. NumPy's.
    if kind in _SCALARS or (isinstance(value, Number | PurePath) and not isinstance(value, enum.Enum)):
        return repr(value)
    again = any(one is value for one in inside)
    if isinstance(value, type | FunctionType | BuiltinFunctionType) and (again or _is_known_by_name(value)):
        return _named(value)
    if again:
        raise NotPlainError(f"{where}, which contains itself")
    deeper = (*inside, value)

    def text(part: object) -> str:
        return _text(part, where, deeper)

    match value:
        case list():
            return f"[{', '.join(map(text, value))}]"
        case tuple():
            return f"({', '.join(map(text, value))}{',' if len(value) == 1 else ''})"
        case set() | frozenset():
            return f"{kind.__name__}({', '.join(sorted(map(text, value)))})"
        case dict():
            return "{" + ", ".join(f"{text(name)}: {text(one)}" for name, one in value.items()) + "}"
        case enum.Enum():
            return f"{_named(kind)}.{value.name} {text(value.value)}"
        case ModuleType():
            return f"module {value.__name__}"
        case type():
            return _of_class(value, where, inside)
        case FunctionType():
            return _of_function(value, where, deeper)
        case classmethod() | staticmethod():
            return f"{kind.__name__} {text(value.__func__)}"
        case property():
            return f"property {text([value.fget, value.fset, value.fdel])}"
        case functools.cached_property():
            return f"cached_property {text(value.func)}"
        case functools.partial():
            return f"partial {text([value.func, value.args, value.keywords])}"
        case MemberDescriptorType():
            return "slot"
    if dataclasses.is_dataclass(value):
        fields = [(one.name, getattr(value, one.name)) for one in dataclasses.fields(value)]
        return f"{text(kind)} {text(fields)}"
    raise NotPlainError(f"{where}, which is {_article(kind.__name__)}")


def _of_class(one: type, where: str, inside: Sequence[object]) -> str:
    deeper = (*inside, one)
    message = [f"{name} = {_text(value, f'{where}.{name}', deeper)}" for name, value in _attributes(one)]
    return f"class {_named(one)}: {'; '.join(message)}"


def _attributes(one: type) -> Iterator[tuple[str, object]]:
    """What its body and its makers put into it, sorted by name, without what Python adds to any class."""
    for name, value in sorted(vars(one).items()):
        special = name.startswith("__") and name.endswith("__")
        if isinstance(value, _FUNCTIONS) or not (special or name.startswith("_abc_")):
            yield name, value


def _of_function(function: FunctionType, where: str, inside: Sequence[object]) -> str:
    code = function.__code__
    used = []
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        used.append(f"{name} = {_text(_content(cell), f'{name} in {where}', inside)}")
    given = [
        _text(function.__defaults__, f"a default in {where}", inside),
        _text(function.__kwdefaults__, f"a default in {where}", inside),
    ]
    return f"{_named(function)} {_of_code(code)} {given} {used}"


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        return "empty until later"


def _of_code(code: CodeType) -> str:
    """Code with its constants and names; a function inside stands for its own."""
    constants = [
        _of_code(one) if isinstance(one, CodeType) else _text(one, code.co_name) for one in code.co_consts
    ]
    return f"{code.co_code.hex()} {constants} {code.co_names}"


def _is_known_by_name(one: object) -> bool:
    """Whether its module has it under its name, and is a file: code that the name stands for."""
    module = sys.modules.get(str(getattr(one, "__module__", None)))
    if module is None or (module.__name__ == "__main__" and not hasattr(module, "__file__")):
        return False
    found: object = module
    for name in str(getattr(one, "__qualname__", "?")).split("."):
        found = getattr(found, name, None)
    return found is one


def _named(one: object) -> str:
    """The name of a class or function. Its module's name depends on how the file was loaded."""
    file = getattr(sys.modules.get(str(getattr(one, "__module__", None))), "__file__", None)
    return f"{Path(file).stem if file else ''}.{getattr(one, '__qualname__', '')}"


def _article(noun: str) -> str:
    return f"an {noun}" if noun[0] in "AEIOUaeiou" else f"a {noun}"
