"""The command line. Results go to stdout; progress, notes and errors to stderr.

Exit codes: 0 done; 1 two worlds differ, or nobody can say (`agree`), a decision is not the recorded one
(`replay`), the emulator is inaccurate (`kernel check`), a case fails (`conform`) or changed (`gate`), arms
are not comparable (`plan`), or a run failed (`study run`, `evaluate`); 2 a user error, or results that could
not be written; 70 a defect of Fullpipe; 130 interrupted.

Each command is imported when it is looked up, and imports heavy modules when it runs, so that `--help`
answers at once.
"""

import copy
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from fullpipe.cli import usage
from fullpipe.cli.commands import manual
from fullpipe.report import provenance, streams
from fullpipe.text import capitalised, shown


class _Command(TyperCommand):
    """A command whose errors name the option that was typed, not the parameter or the field behind it.

    Its help wraps each paragraph to the terminal's width, and shows metavars and defaults without
    Typer's own brackets around them.
    """

    def __init__(self, *args: Any, **named: Any) -> None:
        from fullpipe.cli.options import WORLDS

        super().__init__(*args, **named)
        self.help = _reflowed(self.help)
        self._naming = [one for one in self.params if WORLDS in (getattr(one, "help", None) or "")]
        self._templates = [str(getattr(one, "help", "")) for one in self._naming]
        self._name_worlds(look=False)
        for one in self.params:
            if isinstance(getattr(one, "show_default", None), str):
                # Typer would put such a text in parentheses.
                one._get_default_string = _default_text(str(one.show_default))  # type: ignore[attr-defined]

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The usage after the command's name: `CC...` instead of `{CC...}...`."""
        return [_plain_piece(piece) for piece in super().collect_usage_pieces(ctx)]

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, with names for their values in the help."""
        return [usage.in_plain_words(one) for one in super().get_params(ctx)]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Prints the help, with the worlds of installed packages."""
        self._name_worlds(look=True)
        with streams.own_text():
            super().format_help(ctx, formatter)

    def _name_worlds(self, *, look: bool) -> None:
        from fullpipe.cli.options import WORLDS
        from fullpipe.runs.worlds import registry

        for one, template in zip(self._naming, self._templates, strict=True):
            one.help = template.replace(WORLDS, shown(registry.names_in_help(look=look)))  # type: ignore[attr-defined]

    def invoke(self, ctx: Any) -> Any:
        """Runs the command."""
        try:
            return super().invoke(ctx)
        except ValueError as error:
            # The module that has the class takes a while to import.
            import fullpipe._native as _native
            from fullpipe import errors

            if not isinstance(error, _native.ScenarioError):
                raise
            raise errors.typed(error, _options_of(self)) from None


def _reflowed(text: str | None) -> str | None:
    """The text with one line for each paragraph, as Typer keeps the line breaks of all but the first."""
    if text is None:
        return None
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in inspect.cleandoc(text).split("\n\n"))


def _default_text(text: str) -> Callable[..., str]:
    return lambda **_: text


def _plain_piece(piece: str) -> str:
    """A piece of a usage line without the brackets and dots that Typer adds to the metavar's own."""
    name = piece.removesuffix("...")
    required = name.startswith("{") and name.endswith("}")
    own = name[1:-1] if required or name.startswith("[") else name
    if piece == name:
        return own if required else piece
    own = own if own.endswith("...") else f"{own}..."
    return own if required else f"[{own}]"


def _options_of(command: TyperCommand) -> dict[str, str]:
    """The option name of each parameter; empty for an argument."""
    return {
        str(one.name): max(one.opts, key=len) if one.param_type_name == "option" else ""
        for one in command.params
    }


def _name_options(commands: typer.Typer) -> None:
    """Makes every command's errors name options."""
    for command in commands.registered_commands:
        command.cls = _Command
    for group in commands.registered_groups:
        group.cls = _Group
        if group.typer_instance is not None:
            _name_options(group.typer_instance)


# Lines of help are padded to the width of the terminal, whatever the environment says that it is.
_WIDEST = 1000


class _Group(TyperGroup):
    """A group of commands, whose help is in plain words, too."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, with names for their values in the help."""
        return [usage.in_plain_words(one) for one in super().get_params(ctx)]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Prints the help."""
        with streams.own_text():
            super().format_help(ctx, formatter)


class _Commands(_Group):
    """The commands, with every expected error as one sentence on stderr and an exit code."""

    def __init__(self, **named: Any) -> None:
        super().__init__(**named)
        self.commands = _ByName()  # type: ignore[assignment]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Prints the help as plain text, without an import of our own commands, or of what draws boxes."""
        listing = copy.copy(self)
        listing.commands = {name: listed(name) or self.commands[name] for name in self.commands}
        listing.rich_markup_mode = None
        super(_Commands, listing).format_help(ctx, formatter)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Writes what each command does."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, (one.help or "").split("\n\n")[0]) for name, one in self.commands.items()]
            )

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Runs a command and, in standalone mode, exits with its exit code."""
        columns = os.environ.get("COLUMNS", "")
        if columns.isdecimal() and int(columns) > _WIDEST:
            os.environ["COLUMNS"] = str(_WIDEST)

        given = sys.argv[1:] if args is None else args

        def command() -> object:
            name = prog_name or "fullpipe"
            if manual.COMPLETE_VARIABLE in os.environ:
                from typer.completion import get_completion_inspect_parameters

                get_completion_inspect_parameters()  # Makes Typer's classes for each shell known.
            provenance.began(given)
            words = manual.as_option(self, given)
            return super(_Commands, self).main(words, name, complete_var, False, windows_expand_args, **extra)

        code = _guarded(command, given)
        if standalone_mode:
            sys.exit(code)
        return code


def _guarded(command: Callable[[], object], words: Sequence[str]) -> int:
    """The command's exit code; errors that a user can fix become a sentence."""
    try:
        code = command()
        return code if isinstance(code, int) else 0
    except typer.TyperException as error:
        if usage.is_help(error) and (text := error.format_message()):
            print(text)
        message = usage.sentence(error, words)
        # A usage error knows its command; where the group does not know the word, it is the group.
        context = getattr(error, "ctx", None)
        help_of = "fullpipe" if context is None else context.command_path
        see = f"see `{help_of} --help`"
        ending = f" {capitalised(see)}" if message.endswith("?") else f"; {see}"
        return streams.complain(message + ending)
    except typer.Abort:
        raise KeyboardInterrupt from None
    except Exception as error:
        import fullpipe._native as _native
        from fullpipe.errors import OutputError, SweepError

        ours = _native.ScenarioError | _native.WorldError | _native.RecordingError | OutputError | SweepError
        if isinstance(error, ours):
            return streams.complain(str(error))
        if isinstance(error, _native.ControllerError):
            from fullpipe.scenario import controllers

            return streams.complain(f"{controllers.place_of(error)}{error}")
        raise


app = typer.Typer(
    cls=_Commands,
    name="fullpipe",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Congestion control on one path: simulated, over this machine's Linux TCP, and in QUIC stacks.",
    context_settings={"help_option_names": ["-h", "--help"]},
)


# The entry points of packages that have commands.
GROUP = "fullpipe.commands"
# Our commands: where each is below `fullpipe.cli.commands`, and the first paragraph of its help.
_OWN = {
    "advise": (
        "advise:advise",
        "Say which congestion control a path should run, what would change the answer, and how to apply it.",
    ),
    "plan": (
        "plan:app",
        "Analyse the results of an experiment that `fullpipe advise --plan` planned.",
    ),
    "map": ("map:map_", "Map which congestion control is best, over two quantities of the path."),
    "compare": (
        "compare:compare",
        "Compare controllers, each alone on the path; print a table and write a report.",
    ),
    "run": (
        "run:run",
        "Run a scenario and print a table of its flows and queues; with several seeds, means and intervals.",
    ),
    "agree": (
        "agree:agree",
        "Run a scenario, or a grid of them, in two worlds; report how far they are apart. By default these "
        "are the simulator and the kernel.",
    ),
    "merge": (
        "merge:merge",
        "Combine the parts of a command that several machines ran with --shard.",
    ),
    "lab": ("lab:lab", "Open the lab: live simulations, comparisons and decision maps in your browser."),
    "shell": (
        "shell:shell",
        "Run a command, or a shell, behind an emulated path. Packets of a shell within a shell cross both "
        "paths.",
    ),
    "probe": (
        "probe:probe",
        "Measure the path to another machine that runs Fullpipe, and write it as a scenario.",
    ),
    "conform": (
        "conform:conform",
        "Test a controller by cases made from BBRv3's draft, and for known bugs of implementations.",
    ),
    "replay": (
        "replay:replay",
        "Replay recorded kernel decisions with Fullpipe's controllers. Exit code 1: some decision differs.",
    ),
    "deliveries": (
        "deliveries:deliveries",
        "Write a trace of a link whose rate varies, like a cellular one: the times at which it can send.",
    ),
    "flows": (
        "flows:flows",
        "Write a list of the TCP flows of a capture: start, bytes, and pauses of more than 100 ms.",
    ),
    "controllers": ("available:controllers", "List the congestion controllers and their parameters."),
    "queues": ("available:queues", "List the queue disciplines and their settings."),
    "schema": ("available:schema", "Print the JSON Schema of a scenario."),
    "doctor": (
        "available:doctor",
        "Report what this machine can do, what is missing, and how to fix it.",
    ),
    "help": ("manual:help_", "Show the help of a command, or the list of commands."),
    "man": ("manual:man", "Print the manual page, for `man -l` or /usr/share/man/man1."),
    "completion": (
        "manual:completion",
        'Print a completion script for a shell, e.g. `eval "$(fullpipe completion bash)"`.',
    ),
    "kernel": (
        "kernel:app",
        "Load our controllers into this kernel; record decisions of its own ones; check the emulator.",
    ),
    "gate": ("gate:app", "Compare a controller's results with a baseline, in continuous integration."),
    "stacks": (
        "stacks:app",
        "List the QUIC stacks that are here, and which of a controller's values each reports (window, phase, "
        "rate). `fullpipe stacks check` checks an adapter.",
    ),
}
_SETTINGS = {"shell": {"allow_interspersed_args": False}}
# The same paragraph for the commands of our own package that may be missing.
_STUDIES = {
    "evaluate": "Report on a controller by the criteria of RFC 9743 (BCP 133), compared with CUBIC, Reno and "
    "BBRv1.",
    "study": "Reproduce the papers' figures and tables.",
}


class _ByName(Mapping[str, Any]):
    """The commands by their names; each is imported when it is looked up."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = _made(name)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        from fullpipe import plugins

        return iter(dict.fromkeys([*_OWN, *sorted({*plugins.names(GROUP), *_STUDIES})]))

    def __len__(self) -> int:
        return len(list(iter(self)))


def listed(name: str) -> TyperCommand | None:
    """What the list of commands shows of one that need not be imported; None for others."""
    if name in _OWN:
        return TyperCommand(name, help=_OWN[name][1])
    from fullpipe import plugins

    if name not in _STUDIES:
        return None
    text = _STUDIES[name] if name in plugins.names(GROUP) else f"{_STUDIES[name].rstrip('.')}; not installed."
    return TyperCommand(name, help=text)


def _made(name: str) -> Any:
    """The command of that name. Raises `KeyError` if there is none."""
    if name in _OWN:
        module, _, attribute = _OWN[name][0].partition(":")
        found = getattr(import_module(f"fullpipe.cli.commands.{module}"), attribute)
    else:
        found = _of_package(name)
    alone = typer.Typer()
    if isinstance(found, typer.Typer):
        alone.add_typer(found, name=name)
    elif isinstance(found, str):
        _add_unusable(alone, name, found)
    else:
        alone.command(name, context_settings=_SETTINGS.get(name))(found)
    _name_options(alone)
    return typer.main.get_group(alone).commands[name]


def _of_package(name: str) -> Any:
    """A command of an installed package, or a sentence that says why it cannot be used."""
    from fullpipe import plugins

    found, broken = plugins.parts(GROUP, name)
    if name in found and not isinstance(found[name], typer.Typer) and not inspect.isfunction(found[name]):
        broken[name] = f"{shown(repr(found[name]))} is no typer.Typer and no function"
    if name in broken:
        return f"the command {name} cannot be used: {broken[name]}"
    if name in found:
        return found[name]
    if name not in _STUDIES:
        raise KeyError(name)
    return (
        f"the command {name} is not installed; install the package fullpipe-studies, "
        "in a checkout by `pip install ./packages/studies`"
    )


def _add_unusable(commands: typer.Typer, name: str, sentence: str) -> None:
    """Adds a command that takes anything and says why it does nothing."""

    def command() -> None:
        raise typer.Exit(streams.complain(sentence))

    anything = {"allow_extra_args": True, "ignore_unknown_options": True}
    commands.command(name, help="Not usable.", context_settings=anything)(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        import fullpipe._native as _native

        print(f"fullpipe {_native.version()}")
        raise typer.Exit()


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass
