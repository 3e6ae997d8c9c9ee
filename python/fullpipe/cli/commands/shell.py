"""`fullpipe shell`."""

import json
import os
import secrets
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from fullpipe.cli import options as shared
from fullpipe.cli.options import BUFFER, Ecn, complete_queues, path_text, say

_BOTH, _UP, _DOWN = "Both directions", "Up: from the command to the outside", "Down: to the command"
_PROMPT = Path(__file__).parent / "prompt"
_POSIX_SHELLS = ("sh", "dash", "ash", "ksh", "mksh")


def _option(
    name: str,
    help: str,
    panel: str,
    *,
    file: bool = False,
    default: str | bool = False,
    complete: Callable[[str], list[str]] | None = None,
) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        f"--{name}",
        help=help,
        rich_help_panel=panel,
        metavar="FILE" if file else None,
        parser=path_text if file else None,
        show_default=default,
        autocompletion=complete,
    )
    return option


@dataclass(frozen=True)
class _Direction:
    """The options of one direction, or of both; None where an option is not given."""

    prefix: str  # Prefix of the options: "", "up-" or "down-".
    rate: str | None
    deliveries: str | None
    buffer: str | None
    queue: str | None
    loss: str | None
    jitter: str | None

    def over(self, both: "_Direction") -> dict[str, str]:
        """The keys of the scenario's path for this direction: its own options, then those for both."""
        # A link has a rate or deliveries: a direction's own option replaces either.
        linked = self if self.rate is not None or self.deliveries is not None else both
        said = {
            "rate": linked.rate,
            "deliveries": linked.deliveries,
            "buffer": self._or(both, "buffer"),
            "queue": self._or(both, "queue"),
            "loss": self._or(both, "loss"),
            "jitter": self._or(both, "jitter"),
        }
        return {key: value for key, value in said.items() if value is not None}

    def _or(self, both: "_Direction", name: str) -> str | None:
        own: str | None = getattr(self, name)
        return own if own is not None else getattr(both, name)

    def parameter(self, key: str, both: "_Direction") -> str:
        """The parameter of `shell` that set this key of the path."""
        prefix = self.prefix if getattr(self, key) is not None else both.prefix
        return f"{prefix}{key}".replace("-", "_")


def shell(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="-- COMMAND...", help="What to run behind the path.", show_default="your shell"
        ),
    ] = None,
    path: Annotated[
        Path | None,
        typer.Option(
            metavar="SCENARIO.toml",
            help="Take path and hosts from a scenario, whose forward direction is up. Options win.",
            parser=shared.path,
        ),
    ] = None,
    rtt: Annotated[
        str | None,
        typer.Option(help="Round-trip time of the empty path, e.g. '40 ms'.", show_default="the file's"),
    ] = None,
    rate: Annotated[
        str | None, _option("rate", "Rate of the bottleneck, e.g. '10 Mbit/s' or 10mbit.", _BOTH)
    ] = None,
    deliveries: Annotated[
        str | None,
        _option("deliveries", "Mahimahi delivery trace to follow instead of a rate.", _BOTH, file=True),
    ] = None,
    buffer: Annotated[
        str | None,
        _option("buffer", "What fits into the bottleneck's queue, e.g. '100 KB'.", _BOTH, default=BUFFER),
    ] = None,
    queue: Annotated[
        str | None,
        _option(
            "queue",
            "Discipline of that queue; see `fullpipe queues`.",
            _BOTH,
            default="fifo",
            complete=complete_queues,
        ),
    ] = None,
    loss: Annotated[str | None, _option("loss", "Random loss, e.g. '0.1 %'.", _BOTH)] = None,
    jitter: Annotated[
        str | None, _option("jitter", "Random extra delay, from zero to e.g. '2 ms'.", _BOTH)
    ] = None,
    up_rate: Annotated[str | None, _option("up-rate", "Rate.", _UP)] = None,
    up_deliveries: Annotated[str | None, _option("up-deliveries", "Delivery trace.", _UP, file=True)] = None,
    up_buffer: Annotated[str | None, _option("up-buffer", "Size of the queue.", _UP)] = None,
    up_queue: Annotated[
        str | None, _option("up-queue", "Discipline of the queue.", _UP, complete=complete_queues)
    ] = None,
    up_loss: Annotated[str | None, _option("up-loss", "Random loss.", _UP)] = None,
    up_jitter: Annotated[str | None, _option("up-jitter", "Random extra delay.", _UP)] = None,
    router: Annotated[
        str | None,
        _option("router", "tbf: a real Linux router with tc-tbf, in place of a link.", _UP),
    ] = None,
    burst: Annotated[
        str | None, _option("burst", "Depth of the bucket: of the router, or of a token bucket.", _UP)
    ] = None,
    down_rate: Annotated[str | None, _option("down-rate", "Rate.", _DOWN)] = None,
    down_deliveries: Annotated[
        str | None, _option("down-deliveries", "Delivery trace.", _DOWN, file=True)
    ] = None,
    down_buffer: Annotated[str | None, _option("down-buffer", "Size of the queue.", _DOWN)] = None,
    down_queue: Annotated[
        str | None, _option("down-queue", "Discipline of the queue.", _DOWN, complete=complete_queues)
    ] = None,
    down_loss: Annotated[str | None, _option("down-loss", "Random loss.", _DOWN)] = None,
    down_jitter: Annotated[str | None, _option("down-jitter", "Random extra delay.", _DOWN)] = None,
    server: Annotated[
        str | None,
        typer.Option(
            metavar="COMMAND",
            help="What to run at the far end, e.g. 'iperf3 -s' or 'iperf3 -s -p {port}'.",
            show_default="none",
        ),
    ] = None,
    ecn: Ecn = False,
    seed: Annotated[
        int | None,
        typer.Option(help="Seed of random loss and jitter.", show_default="the file's, or a new one"),
    ] = None,
) -> None:
    """Run a command, or a shell, behind an emulated path. Shells nest.

    Each option of the path applies to both directions. --up-... and --down-... override it for one.
    The round-trip time is split evenly between them. The far end's address is in the environment
    variables FULLPIPE_SERVER and, for IPv6, FULLPIPE_SERVER6 of the command, the path in FULLPIPE_PATH. With
    --server, FULLPIPE_PORT is a port that is free there. The exit code is the command's.

    For example:

    fullpipe shell --rate 10mbit --rtt 80ms --server 'iperf3 -s' -- sh -c 'iperf3 -c $FULLPIPE_SERVER'
    """
    both = _Direction(
        "",
        rate,
        deliveries,
        buffer,
        queue,
        loss,
        jitter,
    )
    up = _Direction("up-", up_rate, up_deliveries, up_buffer, up_queue, up_loss, up_jitter)
    down = _Direction("down-", down_rate, down_deliveries, down_buffer, down_queue, down_loss, down_jitter)
    more = {"rtt": rtt, "router": router, "burst": burst}
    request = {
        "spec": _spec(path, seed, ecn, (both, up, down), more),
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
    more: dict[str, str | None],
) -> str:
    """The spec of the file's path, or of none, with the options of the directions, and more."""
    from fullpipe.errors import unfit
    from fullpipe.scenario import scenario

    both, up, down = directions
    for one in directions:
        if one.rate is not None and one.deliveries is not None:
            raise unfit(
                f"--{one.prefix}deliveries",
                f"cannot be used with --{one.prefix}rate",
                "remove one of the two",
            )
    given = {key: value for key, value in more.items() if value is not None}
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
    from fullpipe.errors import unfit

    if "rtt" not in given:
        raise unfit("--rtt", "is missing", "add --rtt '40 ms', or --path with a scenario file")
    missing = [
        one
        for one, path in zip(directions[1:], paths, strict=True)
        if "rate" not in path and "deliveries" not in path
    ]
    if missing:
        option = "--rate" if len(missing) > 1 else f"--{missing[0].prefix}rate"
        raise unfit(option, "is missing", "add --rate '10 Mbit/s' for both directions")
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

    kinds.check("path", file, ("Scenario", "Grid"), "a scenario file")
    # Only resolved: its flows, and files that they name, are not run.
    try:
        text = json.loads(_native.resolve_file(str(file))[0])
    except _native.ScenarioError as error:
        raise renamed(error, {"scenario": "path"}) from None
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
    links = ("rate", "deliveries", "buffer", "queue", "loss", "jitter")
    return {
        "seed": "seed",
        "hosts.ecn": "ecn",
        **{f"path.{key}": key for key in ("rtt", "router", "burst") if given is None or key in given},
        **{
            f"{path}.{key}": direction.parameter(key, both)
            for path, direction in (("path", up), ("path.reverse", down))
            for key in links
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
