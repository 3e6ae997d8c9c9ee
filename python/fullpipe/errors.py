"""Errors that Python detects before the native half does, in the native half's wording."""

import json
import re
from collections.abc import Callable, Mapping

import fullpipe._native as _native
from fullpipe._native import ScenarioError
from fullpipe.text import MOST_SENTENCE, shown


def _sentence(error: BaseException) -> str:
    """What `str()` returns: printable and bounded, whatever text of a file the message quotes."""
    plain = OSError.__str__(error) if isinstance(error, OSError) else BaseException.__str__(error)
    return shown(plain, MOST_SENTENCE)


for _kind in (ScenarioError, _native.WorldError, _native.RecordingError, _native.ControllerError):
    _kind.__str__ = _sentence  # type: ignore[method-assign]


class OutputError(OSError):
    """A file could not be written, e.g. because the disk is full. `str()` says which, why, and what to do."""

    __str__ = _sentence


class SweepError(RuntimeError):
    """A sweep had to stop, e.g. because another one uses its folder. `str()` says why and what to do."""

    __str__ = _sentence


def mistake(field: str, given: object, expected: str, fix: str) -> ScenarioError:
    """A `ScenarioError` that names the field, what was given, what is expected and how to fix it."""
    error = ScenarioError(f"{field}: {_quoted(given)} cannot be used; expected {expected}; {fix}")
    error.field, error.given, error.expected, error.fix = field, str(given), expected, fix
    return error


def unusable(option: str, wrong: str, fix: str) -> ScenarioError:
    """A `ScenarioError` for an option that does not fit the others: "--list needs a grid; ..."."""
    error = ScenarioError(f"{option} {wrong}; {fix}")
    error.field, error.given, error.expected, error.fix = option.lstrip("-"), option, wrong, fix
    return error


def stated(field: str, given: object, sentence: str, expected: str, fix: str) -> ScenarioError:
    """A `ScenarioError` whose own sentence says what is wrong and how to fix it."""
    error = ScenarioError(sentence)
    error.field, error.given, error.expected, error.fix = field, str(given), expected, fix
    return error


def renamed(error: ScenarioError, names: Mapping[str, str]) -> ScenarioError:
    """The error with the name of the parameter that its field was made from, e.g. `rtt` for `path.rtt`.

    Returns the error itself if `names`, from field to parameter, does not have the field.
    """
    name = names.get(error.field, names.get(error.field.partition("[")[0]))
    key = error.field.rpartition(".")[2]
    sentence = _without_field(error)
    if name is None or sentence is None:
        return error
    fix = _replaced(error.fix, f"write {key} = ", f"write {name.rpartition('.')[2]} = ")
    table = error.field.rpartition(".")[0]
    fix = _without(fix, lambda word: names.get(f"{table}.{word}" if table else word))
    return _rewritten(error, name, f"{name}: {_replaced_end(sentence, error.fix, fix)}", fix)


def typed(error: ScenarioError, options: Mapping[str, str]) -> ScenarioError:
    """The error with the option that was typed: `--rtt "40 parsecs" is not ...` for `rtt: "40 parsecs" ...`.

    `options` maps parameters to options; an argument has none, so its value names it. An error in
    a file is about the file, not about an option.
    """
    option = None if error.file else options.get(error.field)
    sentence = _without_field(error)
    if option is None or sentence is None:
        return error
    fix = _replaced(error.fix, f"write {error.field} = ", f"write {option or error.field} ")
    fix = _without(fix, options.get)
    sentence = _replaced_end(sentence, error.fix, fix)
    quoted = sentence.startswith('"') or sentence[:1].isdigit() or sentence.startswith("-")
    if not option:
        sentence = sentence if quoted else f"{error.field}: {sentence}"
    else:
        sentence = f"{option} {sentence}" if quoted else f"{option}: {sentence}"
    return _rewritten(error, error.field, sentence, fix)


def placed(error: ScenarioError, field: str, file: str, line: int | None) -> ScenarioError:
    """An error about a field in a line of a file."""
    place = file if line is None else f"{file}:{line}"
    moved = _rewritten(error, field, f"{place}: {field}: {_without_field(error) or error}", error.fix)
    moved.file, moved.line = file, line
    return moved


def _rewritten(error: ScenarioError, field: str, sentence: str, fix: str) -> ScenarioError:
    made = ScenarioError(sentence)
    made.field, made.given, made.expected, made.fix = field, error.given, error.expected, fix
    made.file, made.line = error.file, error.line
    return made


def _without_field(error: ScenarioError) -> str | None:
    """The sentence after its field; None where it does not begin with it."""
    sentence, field = str(error), f"{error.field}: "
    return sentence.removeprefix(field) if sentence.startswith(field) else None


def _replaced(fix: str, before: str, after: str) -> str:
    return after + fix.removeprefix(before) if fix.startswith(before) else fix


def _without(fix: str, name_of: Callable[[str], str | None]) -> str:
    """The fix, with the name of what is to be removed if it has one."""
    return re.sub(r"\b(remove|leave out) (\w+)\b", lambda one: f"{one[1]} {name_of(one[2]) or one[2]}", fix)


def _replaced_end(sentence: str, before: str, after: str) -> str:
    return sentence.removesuffix(before) + after if before and sentence.endswith(before) else sentence


def _quoted(given: object) -> str:
    return json.dumps(given, ensure_ascii=False) if isinstance(given, str | int | float) else repr(given)
