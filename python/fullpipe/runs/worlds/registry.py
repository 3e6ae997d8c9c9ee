"""All worlds: the built-in ones, those of installed packages, and those that a program registers.

A package offers a world by an entry point of the group `fullpipe.worlds`. These are looked for only if an
unknown world is named or all worlds are listed, because that takes a while.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fullpipe import shipped
from fullpipe.text import joined

if TYPE_CHECKING:
    from fullpipe.runs.worlds.world import World

ALL = "all"
# The entry points of packages that have worlds.
GROUP = "fullpipe.worlds"
# The built-in worlds, each `WORLD` in its module. The first is the default, the first two are compared.
_HOME = {"sim": "fullpipe.runs.worlds.sim", "kernel": "fullpipe.runs.worlds.kernel"}
# Those that need a program which not everybody builds: without it, lists and `all` leave them out, and
# whoever names one is told how to get it.
_OPTIONAL = {"quic": "fullpipe.runs.worlds.quic"}
# Those that run only where they are named: lists and `all` leave them out.
_SPECIAL = {"qdisc": "fullpipe.runs.worlds.qdisc"}
DEFAULT, *_ = _HOME
_MEANING = {
    "sim": "simulated",
    "kernel": "this machine's TCP over an emulated path and queue",
    "quic": "QUIC stacks in virtual time",
    "qdisc": "as kernel, but with a queue of Linux's own",
    ALL: "all of these but qdisc",
}
PAIR: tuple[str, str] = (DEFAULT, "kernel")

_registered: "dict[str, World]" = {}


def register(world: "World") -> None:
    """Adds a world to those of this process: every command, figure and report takes it from then on."""
    from fullpipe.errors import mistake

    if isinstance(world, type):
        fix = f"write register({world.__name__}())"
        raise mistake("world", world.__name__, "an instance of the class", fix)
    for method in ("build", "run", "refuses"):
        if not callable(getattr(world, method, None)):
            fix = "extend fullpipe.runs.worlds.World"
            raise mistake("world", type(world).__name__, f"a world, with the method {method}", fix)
    name = getattr(world, "name", None)
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}", name):
        expected = 'a name of at most 32 letters, digits, "-" and "_"'
        raise mistake("world", name, expected, "rename the world")
    # Names become those of files, which some systems do not tell apart by their case.
    all_names = (*_HOME, *_OPTIONAL, *_SPECIAL, ALL, *_registered)
    taken = {one.casefold() for one in all_names if one != name or one not in _registered}
    before = _registered.get(name)
    # A notebook's cell may run again, and a module may be loaded after it registered its world.
    again = before is None or _class_of(before) == _class_of(world)
    if name.casefold() in taken or not again:
        raise mistake("world", name, "a name that no other world has", "rename the world")
    _registered[world.name] = world


def known() -> list[str]:
    """The names of built-in and registered worlds, without a look at installed packages."""
    return [*_HOME, *optional(), *_registered]


def names() -> list[str]:
    """The names of all worlds, apart from those that run only where they are named."""
    load_installed()
    return known()


def optional(*, there: bool = True) -> list[str]:
    """The names of the worlds that need a program: those whose program is there, or those that lack it."""
    return [name for name in _OPTIONAL if (shipped.quic() is not None) == there]


def controllers() -> list[Mapping[str, Any]]:
    """The controllers that only one of the worlds has, as `fullpipe controllers` lists them."""
    return [one for name in known() if (world := find(name)) for one in world.controllers()]


def special() -> list[str]:
    """The names of the worlds that run only where they are named."""
    return list(_SPECIAL)


def find(name: str) -> "World | None":
    """The world of that name, or None, e.g. for data that were made where other packages are installed."""
    if home := _HOME.get(name) or _OPTIONAL.get(name) or _SPECIAL.get(name):
        # Waits where another thread imports it: a module that `sys.modules` has may have no `WORLD` yet.
        world: World = import_module(home).WORLD
        return world
    if name not in _registered:
        load_installed()
    return _registered.get(name)


def named(name: str) -> "World":
    """The world of that name; raises `ScenarioError` if there is none."""
    return _existing(name, everything=False)


def chosen(name: str) -> "list[World]":
    """The world of that name, or all."""
    return [named(one) for one in names()] if name == ALL else [_existing(name, everything=True)]


def pair(given: Sequence[str]) -> "tuple[World, World]":
    """The two worlds that are compared with each other; the second is the reference."""
    from fullpipe.errors import mistake

    if isinstance(given, str) or len(given) != 2 or given[0] == given[1]:
        shown = given if isinstance(given, str) else ",".join(map(str, given))
        raise mistake("worlds", shown, "two different worlds", f'e.g. "{",".join(PAIR)}"')
    first, second = map(named, given)
    return first, second


def message(*, everything: bool = True, look: bool = True) -> str:
    """The names in a sentence, the last one `all`. `look`: also those of installed packages."""
    options = [*(names() if look else known()), *special(), *([ALL] if everything else [])]
    return joined(options, "or")


def names_in_help(*, look: bool) -> str:
    """The names and what they mean, and how to get the worlds that are not there."""
    options = [*(names() if look else known()), *special(), ALL]
    lacking = [f"; {name} is one more, once `make {name}` has built it" for name in optional(there=False)]
    return joined(
        [f"{name} ({_MEANING[name]})" if name in _MEANING else name for name in options], "or"
    ) + "".join(lacking)


@cache
def load_installed() -> dict[str, str]:
    """Registers the worlds of installed packages, once; returns why some cannot be loaded, by entry point."""
    from fullpipe import plugins

    return plugins.load(GROUP, lambda world: register(world() if isinstance(world, type) else world))


def _existing(name: str, *, everything: bool) -> "World":
    if (world := find(name)) is None:
        from fullpipe.errors import mistake

        why = "".join(f"; {reason}" for reason in load_installed().values())
        raise mistake("world", name, message(everything=everything), f"name one of them{why}")
    return world


def _class_of(world: "World") -> tuple[str, str]:
    return type(world).__module__, type(world).__qualname__
