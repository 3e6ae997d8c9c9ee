"""Usage errors and help in plain words, where Typer would show Python's types and pydantic's sentences."""

import json
import re
from collections.abc import Sequence
from typing import Any

# What Typer says of a value, and what we say.
_EXPECTED = (
    (r"Input should be a valid integer.*", "a whole number"),
    (r"Input should be a valid number.*", "a number"),
    (r"Input should be greater than or equal to (\S+)", r"a number from \1"),
    (r"Input should be less than or equal to (\S+)", r"a number up to \1"),
)


def is_help(error: Any) -> bool:
    """Whether it is a missing command. Its message is the help, or empty where that was printed."""
    return type(error).__name__ == "NoArgsIsHelpError"


def sentence(error: Any, words: Sequence[str]) -> str:
    """The message of a usage error, without the place of its help. `words` are what was typed."""
    message = str(error.format_message()).strip().rstrip(".")
    if is_help(error):
        return "a command is missing"
    parameter: Any = getattr(error, "param", None)
    about = str(getattr(error, "message", ""))
    for pattern, expected in _EXPECTED if parameter is not None else ():
        if (match := re.fullmatch(pattern, about.rstrip("."))) is not None:
            name = max(parameter.opts, key=len)
            given = _given(words, parameter.opts)
            typed = f"{name} {json.dumps(given, ensure_ascii=False)}" if given is not None else name
            return f"{typed} cannot be used; expected {match.expand(expected)}"
    return message.replace(". Did you mean", "; did you mean")


def _given(words: Sequence[str], options: Sequence[str]) -> str | None:
    """The value that was typed for an option; None if it is not found."""
    for at, word in enumerate(words):
        if word in options and at + 1 < len(words):
            return words[at + 1]
        name, equals, value = word.partition("=")
        if equals and name in options:
            return value
    return None


def in_plain_words(parameter: Any) -> Any:
    """Gives a parameter a name for its value: none for a flag, NUMBER, PATH, or the option's own name."""
    if parameter.param_type_name == "argument" or getattr(parameter, "is_flag", False):
        parameter.display_type_rich = _nothing
    elif parameter.metavar is None:
        kind = str(parameter.display_type_rich(ctx=None))
        if re.search(r"int|float", kind):
            parameter.metavar = "NUMBER"
        elif "path" in kind.lower():
            parameter.metavar = "PATH"
        else:
            parameter.metavar = max(parameter.opts, key=len).lstrip("-").rpartition("-")[2].upper()
    return parameter


def _nothing(ctx: Any) -> None:
    """Shows no type."""
