"""The command line. Results go to stdout; progress, notes and errors to stderr.

Exit codes: 0 done; 1 two worlds differ, or nobody can say (`agree`), a decision is not the recorded one
(`replay`), the emulator is inaccurate (`kernel check`), a case fails (`conform`) or changed (`gate`), or a
run failed (`study run`, `evaluate`); 2 a user error, or results that could not be written; 70 a defect of
Fullpipe; 130 interrupted.

Heavy modules are imported by the command that needs them, so that `--help` answers at once.
"""

import inspect
import os
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from fullpipe import plugins
from fullpipe.cli import usage
from fullpipe.cli.commands import (
    advise,
    agree,
    available,
    compare,
    conform,
    deliveries,
    flows,
    gate,
    kernel,
    lab,
    manual,
    map,
    merge,
    replay,
    run,
    shell,
    stacks,
)
from fullpipe.cli.options import WORLDS, complain
from fullpipe.report import provenance, streams
from fullpipe.runs.worlds import registry
from fullpipe.text import capitalised, shown


class _Command(TyperCommand):
    """A command whose errors name the option that was typed, not the parameter or the field behind it.

    Its help wraps each paragraph to the terminal's width, and shows metavars and defaults without
    Typer's own brackets around them.
    """

    def __init__(self, *args: Any, **named: Any) -> None:
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
        message = usage.sentence(error, words)
        # A usage error knows its command; where the group does not know the word, it is the group.
        context = getattr(error, "ctx", None)
        help_of = "fullpipe" if context is None else context.command_path
        see = f"see `{help_of} --help`"
        return complain(f"{message} {capitalised(see)}" if message.endswith("?") else f"{message}; {see}")
    except typer.Abort:
        raise KeyboardInterrupt from None
    except Exception as error:
        import fullpipe._native as _native
        from fullpipe.errors import OutputError, SweepError

        ours = _native.ScenarioError | _native.WorldError | _native.RecordingError | OutputError | SweepError
        if isinstance(error, ours):
            return complain(str(error))
        if isinstance(error, _native.ControllerError):
            from fullpipe.scenario import controllers

            return complain(f"{controllers.place_of(error)}{error}")
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


# The entry points of packages that have commands, and those of our own packages that may be missing.
GROUP = "fullpipe.commands"
_STUDIES = {
    "study": "Reproduce the papers' figures and tables; not installed.",
    "evaluate": "Report on a controller by the criteria of RFC 9743; not installed.",
}
_ELSEWHERE = {
    name: (
        text,
        f"the command {name} is not installed; install the package fullpipe-studies, "
        "in a checkout by `pip install ./packages/studies`",
    )
    for name, text in _STUDIES.items()
}


def _add_installed() -> None:
    """Adds the commands of installed packages; what cannot be used says why when it is called."""
    own = {one.name or getattr(one.callback, "__name__", "") for one in app.registered_commands}
    own |= {one.name for one in app.registered_groups}
    found, broken = plugins.parts(GROUP)
    for name, commands in found.items():
        if name in own or name in broken:
            continue
        if isinstance(commands, typer.Typer):
            app.add_typer(commands, name=name)
        elif inspect.isfunction(commands):
            app.command(name)(commands)
        else:
            broken[name] = f"{shown(repr(commands))} is no typer.Typer and no function"
    for name, (text, sentence) in _ELSEWHERE.items():
        if name not in found and name not in broken:
            _add_missing(name, text, sentence)
    for name in sorted(broken.keys() - own):
        _add_missing(name, "Not usable.", f"the command {name} cannot be used: {broken[name]}")


def _add_missing(name: str, text: str, sentence: str) -> None:
    """A command that takes anything and says why it does nothing."""

    def command() -> None:
        raise typer.Exit(complain(sentence))

    anything = {"allow_extra_args": True, "ignore_unknown_options": True}
    app.command(name, help=text, context_settings=anything)(command)


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


app.command()(advise.advise)
app.command(name="map")(map.map_)
app.command()(compare.compare)
app.command()(run.run)
app.command(help=agree.HELP)(agree.agree)
app.command()(merge.merge)
app.command()(lab.lab)
app.command(context_settings={"allow_interspersed_args": False})(shell.shell)
app.add_typer(kernel.app, name="kernel")
app.command()(conform.conform)
app.add_typer(gate.app, name="gate")
app.add_typer(stacks.app, name="stacks")
app.command()(replay.replay)
app.command()(deliveries.deliveries)
app.command()(flows.flows)
app.command()(available.controllers)
app.command()(available.queues)
app.command()(available.schema)
app.command()(available.doctor)
app.command(name="help")(manual.help_)
app.command()(manual.man)
app.command()(manual.completion)
_add_installed()
_name_options(app)
