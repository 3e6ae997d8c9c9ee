"""`fullpipe help`, `man` and `completion`: the command tree as help, as a manual page and for a shell.

All three are generated from the commands themselves, so they are never out of date.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer

from fullpipe.report.streams import MISTAKE

SHELLS = ("bash", "zsh", "fish")
# Typer's scripts set this variable to ask for completions.
COMPLETE_VARIABLE = "_FULLPIPE_COMPLETE"

_SEE_ALSO = (
    "Documentation, scenarios and the sources are in the repository; README.md there is the first page."
)
_EXIT_CODES = (
    ("0", "Done. With agree and replay: both sides agree."),
    (
        "1",
        "They do not agree, agree is inconclusive, kernel check found the emulator inaccurate, a case "
        "of conform fails, or a run of study run failed.",
    ),
    (str(MISTAKE), "A mistake in the command or a file. One sentence on stderr names it and the fix."),
    ("70", "A defect of Fullpipe: please report the traceback."),
    ("130", "Interrupted."),
)


def help_(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND...", help="The command, e.g. compare.")
    ] = None,
) -> None:
    """Show the help of a command, or the list of commands."""
    raise AssertionError(f"{words} became --help before the commands were looked up")


def completion(
    shell: Annotated[
        str,
        typer.Argument(metavar="SHELL", help="bash, zsh or fish.", autocompletion=lambda: list(SHELLS)),
    ],
) -> None:
    """Print a completion script for a shell, e.g. `eval "$(fullpipe completion bash)"`."""
    from typer._completion_shared import get_completion_script

    from fullpipe.errors import mistake

    if shell not in SHELLS:
        raise mistake("SHELL", shell, ", ".join(SHELLS), "name one of the three")
    print(get_completion_script(prog_name="fullpipe", complete_var=COMPLETE_VARIABLE, shell=shell))


def man(context: typer.Context) -> None:
    """Print the manual page, for `man -l` or /usr/share/man/man1."""
    root = context.find_root()
    print("\n".join(_page(root.command, root)))


def as_option(root: Any, words: Sequence[str]) -> list[str]:
    """The words, with `help` before or after a command replaced by `--help`."""
    words = list(words)
    if words[:1] == ["help"] and words[1:] not in (["-h"], ["--help"]):
        return [*words[1:], "--help"]
    if len(words) > 1 and words[-1] == "help" and _named(root, words[:-1]):
        return [*words[:-1], "--help"]
    return words


def _named(group: Any, words: Sequence[str]) -> bool:
    """Whether the words name a command and nothing more."""
    for word in words:
        group = getattr(group, "commands", {}).get(word)
        if group is None:
            return False
    return True


def _commands(command: Any, context: Any) -> Iterator[tuple[Any, Any]]:
    """Every command that does something, with its context, in the order of the help."""
    children = getattr(command, "commands", None)
    if children is None:
        yield command, context
        return
    for name, child in children.items():
        yield from _commands(child, typer.Context(child, info_name=name, parent=context))


def _page(root: Any, context: Any) -> Iterator[str]:
    import fullpipe._native as _native

    yield f'.TH FULLPIPE 1 "" "fullpipe {_native.version()}" "User Commands"'
    yield ".SH NAME"
    yield f"fullpipe \\- {_roff(str(root.help).rstrip('.'))}"
    yield ".SH SYNOPSIS"
    yield ".B fullpipe"
    yield "COMMAND [OPTIONS] [ARGS]"
    yield ".SH COMMANDS"
    for command, own in _commands(root, context):
        yield from _section(command, own)
    yield ".SH EXIT STATUS"
    for code, meaning in _EXIT_CODES:
        yield from (".TP", f".B {code}", _roff(meaning))
    yield ".SH SEE ALSO"
    yield _roff(_SEE_ALSO)


def _section(command: Any, context: Any) -> Iterator[str]:
    pieces = " ".join(command.collect_usage_pieces(context))
    yield f'.SS "{_roff(f"{context.command_path} {pieces}")}"'
    for paragraph in (command.help or "").split("\n\n"):
        yield _roff(" ".join(paragraph.split()))
        yield ".PP"
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None:
            yield from (".TP", f".B {_roff(record[0])}", _roff(record[1]))


def _roff(text: str) -> str:
    """Text escaped for troff."""
    plain = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return f"\\&{plain}" if plain.startswith((".", "'")) else plain
