"""`fullpipe shell`."""

import json
import os
import secrets
import shlex
import shutil
import signal
import sys
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from fullpipe.cli import options as shared
from fullpipe.cli.options import say
from fullpipe.scenario.path import OPTIONS

_OF_PATH = tuple(one.name for one in OPTIONS if one.ways != "both")
_OF_DIRECTION = tuple(one.name for one in OPTIONS if one.ways == "both")
_PROMPT = Path(__file__).parent / "prompt"
_POSIX_SHELLS = ("sh", "dash", "ash", "ksh", "mksh")


@dataclass(frozen=True)
class _Direction:
    """The options of one direction, or of both."""

    prefix: str  # Prefix of the options: "", "up-" or "down-".
    message: Mapping[str, str]

    @classmethod
    def of(cls, prefix: str, given: Mapping[str, Any]) -> "_Direction":
        """Of the options that were given for the whole path, those with this prefix."""
        names = {one.name: f"{prefix}{one.name}".replace("-", "_") for one in OPTIONS if one.ways == "both"}
        return cls(prefix, {name: given[option] for name, option in names.items() if option in given})

    def over(self, both: "_Direction") -> dict[str, str]:
        """The keys of the scenario's path for this direction: its own options, then those for both."""
        # A link has a rate or deliveries: a direction's own option replaces either.
        links = {"rate", "deliveries"}
        replaced = links if links & set(self.message) else set()
        return {**{key: value for key, value in both.message.items() if key not in replaced}, **self.message}

    def parameter(self, key: str, both: "_Direction") -> str:
        """The parameter of `shell` that set this key of the path."""
        prefix = self.prefix if key in self.message else both.prefix
        return f"{prefix}{key}".replace("-", "_")


@shared.path_options(
    ways=("", "up-", "down-"),
    defaults={"rate": "", "rtt": ""},
    more={
        "rate": " Needed, unless there are --deliveries or --path, or --up-rate and --down-rate.",
        "rtt": " Needed, unless --path is given.",
    },
)
def shell(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="-- COMMAND...", help="Command to run behind the path.", show_default="your shell"
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--path",
            metavar="SCENARIO.toml",
            help="Use the path, socket buffers and ECN of a scenario; its forward direction becomes up. "
            "Options override it.",
            parser=shared.path,
        ),
    ] = None,
    *,
    path: dict[str, Any],
    server: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="Command to run at the far end, e.g. 'iperf3 -s' or 'iperf3 -s -p {port}'.",
            show_default="none",
        ),
    ] = None,
    ecn: Annotated[bool, typer.Option("--ecn", help="Negotiate ECN at both ends.")] = False,
    seed: Annotated[
        int | None,
        typer.Option(help="Seed of random loss and jitter.", show_default="that of --path, or a new one"),
    ] = None,
) -> None:
    """Run a command, or a shell, behind an emulated path. Packets of a shell within a shell cross both paths.

    Options of the path apply to both directions, those that begin with --up or --down to one. In --buffer, a
    BDP is that of each direction: its rate times --rtt. Each direction
    has half of --rtt. The far end is on this machine, too, in a network of its own. The command has
    environment variables: FULLPIPE_SERVER and FULLPIPE_SERVER6 are addresses of the far end (IPv4 and IPv6),
    FULLPIPE_PATH describes the path. With --server, FULLPIPE_PORT is a free port. {port} in the server's
    command is replaced by it; a server without {port} may listen on a port of its own, e.g. iperf3 on 5201.
    The exit code is the command's.

    For example:

    fullpipe shell --rate 10mbit --rtt 80ms --server 'iperf3 -s' -- sh -c 'iperf3 -c $FULLPIPE_SERVER'
    """
    both, up, down = (_Direction.of(prefix, path) for prefix in ("", "up-", "down-"))
    more = {one.name: path[one.name] for one in OPTIONS if one.ways != "both" and one.name in path}
    request = {
        "spec": _spec(file, seed, ecn, (both, up, down), more),
        "command": _with_prompt(command or [os.environ.get("SHELL") or "/bin/sh"], os.environ),
        "server": None if server is None else _far_end(server),
    }
    sys.stdout.flush()
    # The shell enters namespaces, so this process replaces itself by a fresh one. An interrupt waits until
    # that one can handle it.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        # -P: the working directory may be a stranger's, and nothing is imported from it.
        child = [sys.executable, "-P", "-m", "fullpipe.runs.worlds._shell_child", json.dumps(request)]
        os.execv(sys.executable, child)
    finally:
        # Children inherit the mask. With this one, none that this process starts later could be interrupted.
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _spec(
    file: Path | None,
    seed: int | None,
    ecn: bool,
    directions: tuple[_Direction, _Direction, _Direction],
    given: dict[str, str],
) -> str:
    """The spec of the file's path, or of none, with the options of the directions, and more."""
    from fullpipe.errors import unusable
    from fullpipe.scenario import scenario

    both, up, down = directions
    for one in directions:
        if "rate" in one.message and "deliveries" in one.message:
            raise unusable(
                f"--{one.prefix}deliveries",
                f"cannot be used with --{one.prefix}rate",
                "remove one of the two",
            )
    paths = [one.over(both) for one in (up, down)]
    document = _without_file(directions, paths, given) if file is None else _from_file(file, paths, given)
    if ecn:
        document["hosts"] = {**document.get("hosts", {}), "ecn": True}
    if seed is not None or "seed" not in document:
        # Without --seed, each shell has other random losses; it prints the number that repeats them.
        document["seed"] = secrets.randbelow(1 << 32) if seed is None else seed
    # A scenario needs a flow; this one never runs. What runs behind the path chooses its own algorithm.
    document["flows"] = [{"controller": "reno"}]
    parameters = _parameters(both, up, down, None if file is None else {**given, **paths[0], **paths[1]})
    base = Path() if file is None else file.parent
    loaded = scenario.from_document(document, base_dir=base, parameters=parameters)
    notes: list[str] = []
    if file is None and "buffer" not in paths[1]:
        paths[1]["buffer"], notes = _assumed_buffer(given["rtt"], paths[1], parameters)
        loaded = scenario.from_document(document, base_dir=base, parameters=parameters)
    for note in dict.fromkeys([*loaded.notes, *notes]):
        say(f"fullpipe: {note}")
    return loaded.alternatives[0].spec_json


def _without_file(
    directions: tuple[_Direction, _Direction, _Direction],
    paths: list[dict[str, str]],
    given: dict[str, str],
) -> dict[str, Any]:
    """The document of the options alone."""
    from fullpipe.errors import unusable

    if "rtt" not in given:
        raise unusable("--rtt", "is missing", "add --rtt '40 ms', or --path with a scenario file")
    missing = [
        one
        for one, path in zip(directions[1:], paths, strict=True)
        if "rate" not in path and "deliveries" not in path
    ]
    if missing:
        option = "--rate" if len(missing) > 1 else f"--{missing[0].prefix}rate"
        raise unusable(option, "is missing", "add --rate '10 Mbit/s' for both directions")
    return {"name": "shell", "path": {**paths[0], **given, "reverse": paths[1]}}


def _assumed_buffer(rtt: str, path: dict[str, str], parameters: dict[str, str]) -> tuple[str, list[str]]:
    """The buffer on the way down if none is given, and notes on it: what a scenario assumes for its way up.

    For its way down, a scenario assumes Linux's 1000 packets instead.
    """
    from fullpipe.scenario import scenario

    names = {"path.rtt": "rtt"}
    names |= {f"path.{key}": parameters[f"path.reverse.{key}"] for key in path}
    link = {key: value for key, value in path.items() if key in ("rate", "deliveries")}
    document = {"path": {"rtt": rtt, **link}, "flows": [{"controller": "reno"}]}
    loaded = scenario.from_document(document, base_dir=Path(), parameters=names)
    queue = loaded.alternatives[0].spec["forward"][0]["queue"]
    return f"{queue['bytes']} B", [note for note in loaded.notes if note.startswith("buffer: ")]


def _from_file(file: Path, paths: list[dict[str, str]], given: dict[str, str]) -> dict[str, Any]:
    """Path, hosts, seed and the duration, which bounds changes, of a scenario, with the options in place."""
    import fullpipe._native as _native
    from fullpipe.errors import renamed
    from fullpipe.scenario import kinds

    kinds.check("file", file, ("Scenario", "Grid"), "a scenario file")
    # Only resolved: its flows, and files that they name, are not run.
    try:
        text = json.loads(_native.resolve_file(str(file))[0])
    except _native.ScenarioError as error:
        raise renamed(error, {"scenario": "file"}) from None
    document: dict[str, Any] = {key: text[key] for key in ("duration", "hosts", "seed") if key in text}
    path = text["path"]
    ways = [
        _replaced(way, options) for way, options in zip((path, path.get("reverse", {})), paths, strict=True)
    ]
    document["path"] = {**ways[0], **given, "reverse": ways[1]}
    return {"name": "shell", **document}


def _replaced(way: dict[str, Any], options: dict[str, str]) -> dict[str, Any]:
    """A direction of a file with options: a rate replaces deliveries, and deliveries replace a rate."""
    links = ("rate", "deliveries")
    kept = {key: value for key, value in way.items() if not (key in links and set(links) & set(options))}
    if "deliveries" in options:
        # Relative to the working directory, not to the file.
        options = {**options, "deliveries": str(Path(options["deliveries"]).absolute())}
    return {**kept, **options}


def _parameters(
    both: _Direction, up: _Direction, down: _Direction, given: dict[str, str] | None
) -> dict[str, str]:
    """The parameter of `shell` that each field of the document is made from. The others are a file's."""
    return {
        "seed": "seed",
        "hosts.ecn": "ecn",
        **{f"path.{key}": key for key in _OF_PATH if given is None or key in given},
        **{
            f"{path}.{key}": direction.parameter(key, both)
            for path, direction in (("path", up), ("path.reverse", down))
            for key in _OF_DIRECTION
            if given is None or key in given
        },
    }


def _far_end(server: str) -> list[str]:
    """The words of the server's command line. Raises an error early if it cannot be run."""
    from fullpipe.errors import mistake

    try:
        words = shlex.split(server)
    except ValueError as error:
        raise mistake("server", server, f"a command line ({error})", "close the quotation") from None
    if not words:
        raise mistake("server", server, "a command line", "name a program, e.g. --server 'iperf3 -s'")
    if shutil.which(words[0]) is None:
        exists = "/" in words[0] and Path(words[0]).exists()
        why = "it is not an executable file" if exists else "it was not found"
        raise mistake(
            "server",
            words[0],
            f"a program that can be run ({why})",
            "check its name, install it, or give its path",
        )
    return words


def _with_prompt(command: list[str], environment: MutableMapping[str, str]) -> list[str]:
    """The command line that lets an interactive shell show FULLPIPE_PATH in its prompt; others as they are.

    The user's own startup files are read as usual. Sets what the shell needs in `environment`.
    """
    if len(command) != 1:
        return command
    match Path(command[0]).name:
        case "bash":
            return [*command, "--rcfile", str(_PROMPT / "bashrc")]
        case "zsh":
            _replace("ZDOTDIR", str(_PROMPT), environment)
        case name if name in _POSIX_SHELLS:
            _replace("ENV", str(_PROMPT / "shrc"), environment)
    return command


def _replace(name: str, value: str, environment: MutableMapping[str, str]) -> None:
    """Sets a variable; the startup file that it points to restores it from FULLPIPE_..."""
    if name in environment:
        environment[f"FULLPIPE_{name}"] = environment[name]
    environment[name] = value
