"""All claims: those built, found in the packages of the papers, and those only listed."""

import importlib
import pkgutil
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from types import ModuleType

from fullpipe import plugins
from fullpipe.errors import mistake, stated
from fullpipe.text import joined
from fullpipe_studies import papers as papers_here
from fullpipe_studies.claim import Claim, Paper

ALL = "all"
# The entry points of packages that are papers.
GROUP = "fullpipe.studies"
_PARTS = ("Question", "Method", "Prediction")


@dataclass(frozen=True)
class About:
    """The parts of a docstring: its first line, and a paragraph each for question, method and prediction."""

    title: str
    question: str
    method: str
    prediction: str

    @staticmethod
    def of(module: ModuleType) -> "About":
        """Reads a module's docstring, which must have all parts."""
        lines = (module.__doc__ or "").strip().splitlines()
        parts = dict.fromkeys(_PARTS, "")
        at = None
        for line in (one.strip() for one in lines[1:]):
            head, colon, rest = line.partition(": ")
            if colon and head in parts:
                at, line = head, rest
            elif not line:
                at = None
            if at is not None:
                parts[at] = f"{parts[at]} {line}".strip()
        missing = [name for name, text in parts.items() if not text]
        if not lines or missing:
            raise ValueError(f"the docstring of {module.__name__} lacks {', '.join(missing) or 'a title'}")
        return About(lines[0].rstrip("."), parts["Question"], parts["Method"], parts["Prediction"])


@dataclass(frozen=True)
class Change:
    """A verdict that became another one: on which day, if it is known, and why, in a sentence or nothing."""

    was: str
    now: str
    why: str = ""
    on: str = ""


@dataclass(frozen=True)
class Notes:
    """What people found out about a claim: the cause of misses, and the last change of a world's verdict."""

    cause: str = ""
    changes: Mapping[str, Change] = field(default_factory=dict)


@dataclass(frozen=True)
class Built:
    """A claim that has code."""

    paper: str
    name: str
    about: About
    claim: Claim
    changes: Mapping[str, Change] = field(default_factory=dict)  # By world.
    here: bool = False  # Whether its file is in this package.

    @property
    def id(self) -> str:
        """Its name in commands."""
        return f"{self.paper}.{self.name}"


@dataclass(frozen=True)
class Listed:
    """A claim as `claims.toml` lists it."""

    id: str
    worlds: tuple[str, ...]
    title: str

    @property
    def paper(self) -> str:
        """The paper's short name."""
        return self.id.partition(".")[0]


@dataclass(frozen=True)
class Study:
    """A paper with its built claims, in order."""

    name: str
    about: About
    paper: Paper
    claims: Sequence[Built]


@cache
def listed() -> tuple[Listed, ...]:
    """Every claim that the project intends to check, in order."""
    text = resources.files("fullpipe_studies").joinpath("claims.toml").read_text(encoding="utf-8")
    return tuple(
        Listed(f"{paper}.{name}", tuple(entry["worlds"]), entry["title"])
        for paper, entries in tomllib.loads(text).items()
        for name, entry in entries.items()
    )


# The papers that are not here, by name.
_registered: dict[str, ModuleType] = {}


def register(package: ModuleType | str) -> None:
    """Adds a paper: a package, or its name, with a docstring, `PAPER` and a file for each claim.

    Its last name is the paper's. Every command of `fullpipe study` takes it from then on.
    """
    module = importlib.import_module(package) if isinstance(package, str) else package
    name = module.__name__.rpartition(".")[2]
    taken = name == ALL or name in _built_in() or _registered.get(name, module) is not module
    if taken or any(one.paper == name for one in listed()):
        raise mistake("study", name, "a name that no other paper has", "rename the package")
    _study(name, module)  # Damage is an error now.
    _registered[name] = module
    papers.cache_clear()


@cache
def load_installed() -> dict[str, str]:
    """Registers the papers of installed packages, once; returns why some cannot be loaded, by entry point."""
    return plugins.load(GROUP, register)


@cache
def papers() -> tuple[Study, ...]:
    """The papers with at least one built claim."""
    order = list(dict.fromkeys(one.paper for one in listed()))
    own = {name: importlib.import_module(f"{papers_here.__name__}.{name}") for name in _built_in()}
    load_installed()
    packages = {**own, **_registered}
    return tuple(_study(name, packages[name]) for name in _sorted(list(packages), order))


def _built_in() -> list[str]:
    return [module.name for module in pkgutil.iter_modules(papers_here.__path__) if module.ispkg]


def everything() -> list[Listed]:
    """Every claim, built or only listed; those that are not listed come last in their paper."""
    known = {one.id for one in listed()}
    extra = [
        Listed(one.id, one.claim.worlds, one.about.title)
        for study in papers()
        for one in study.claims
        if one.id not in known
    ]
    order = list(dict.fromkeys(one.paper for one in [*listed(), *extra]))
    return sorted([*listed(), *extra], key=lambda one: order.index(one.paper))


def built(name: str) -> Built | None:
    """The claim with that id; None if it is not built yet."""
    return next((one for study in papers() for one in study.claims if one.id == name), None)


def find(selectors: Sequence[str]) -> list[Built]:
    """The claims that PAPER, PAPER.CLAIM or `all` name, in order, each once."""
    every = [claim for study in papers() for claim in study.claims]
    chosen: set[str] = set()
    for selector in selectors:
        named = [one.id for one in every if selector in (ALL, one.paper, one.id)]
        if not named:
            fix = "see `fullpipe study list`"
            sentence = f"{_unknown(selector, every)}; {fix}"
            raise stated("study", selector, sentence, "a paper, a claim or all", fix)
        chosen.update(named)
    return [one for one in every if one.id in chosen]


def study(name: str) -> Study:
    """The study of a paper."""
    return next(one for one in papers() if one.name == name)


def _study(name: str, package: ModuleType) -> Study:
    order = [one.id.partition(".")[2] for one in listed() if one.paper == name]
    found = []
    notes_of = _notes(package)
    modules = [one.name for one in pkgutil.iter_modules(package.__path__) if not one.name.startswith("_")]
    for stem in _sorted(modules, order):
        module = importlib.import_module(f"{package.__name__}.{stem}")
        about = About.of(module)
        noted = notes_of.get(stem, Notes())
        claim = module.CLAIM.completed(vars(module))
        claim = replace(claim, cause=noted.cause) if noted.cause else claim
        here = module.__name__.startswith(f"{papers_here.__name__}.")
        found.append(Built(name, stem, about, claim, noted.changes, here))
    return Study(name, About.of(package), package.PAPER, tuple(found))


def _notes(package: ModuleType) -> dict[str, Notes]:
    """What a paper's `notes.toml` says, by claim; nothing if it has none."""
    file = resources.files(package).joinpath("notes.toml")
    if not file.is_file():
        return {}
    return {
        claim: Notes(
            " ".join(one.get("cause", "").split()),
            {world: Change(**each) for world, each in one.get("changed", {}).items()},
        )
        for claim, one in tomllib.loads(file.read_text(encoding="utf-8")).items()
    }


def _sorted(names: Sequence[str], order: Sequence[str]) -> list[str]:
    """In the given order; names that are not in it come last, sorted."""
    place = {name: number for number, name in enumerate(order)}
    return sorted(names, key=lambda name: (place.get(name, len(place)), name))


def _unknown(selector: str, every: Sequence[Built]) -> str:
    """Why a selector names no claim that can run."""
    paper, _, claim = selector.partition(".")
    if any(one.id == selector for one in listed()):
        return f"{selector} is listed but not built yet"
    if any(one.paper == paper for one in every):
        return f"{paper} has no claim {claim}" if claim else f'"{selector}" names no claim of {paper}'
    same = [one.id for one in every if one.id.partition(".")[2] == selector]
    fix = f"give {joined(same, 'or')}" if same else "give PAPER, PAPER.CLAIM or all"
    return f'there is no paper "{paper}"; {fix}'


def left_open(claim: str) -> tuple[str, ...]:
    """The set-ups of a claim that differ in nothing but what its paper leaves open."""
    found = built(claim)
    return () if found is None or found.claim.setups is None else found.claim.setups.left_open
