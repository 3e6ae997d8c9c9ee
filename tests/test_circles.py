"""No two source files of a crate need each other, directly or through others.

An arrow leads from a file to each file whose names its code uses: by `use`, or by a path that begins with
`crate`, `super`, `self` or a module below it. A name that a file only hands on (`pub use`) leads to the file
that defines it. Tests do not count. `mod` is no arrow: a parent declares its children, but need not use them.

A file and the files in the folder of its name are one module in parts: each may use the other. But the parts
alone must have no circle, and no circle may lead through other modules.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CRATES = sorted(path.parent.relative_to(ROOT).as_posix() for path in ROOT.glob("*/*/Cargo.toml"))
CRATES = [crate for crate in CRATES if crate.startswith(("crates/", "quic/"))]

Module = tuple[str, ...]
Graph = dict[str, set[str]]

TOKEN = re.compile(
    r"""
    //[^\n]* | /\*.*?\*/                                # comments
    | (?P<text> b?r(?P<hashes>\#*)".*?"(?P=hashes) | [bc]?"(?:[^"\\]|\\.)*" | b?'(?:[^'\\\n]|\\[^\n]{1,9}?)' )
    | '\w+                                              # lifetimes
    | (?P<token> \w+ | :: | \S )
    """,
    re.VERBOSE | re.DOTALL,
)
DEFINES = {"fn", "struct", "enum", "const", "static", "trait", "type", "union", "macro_rules", "mod"}


@dataclass
class Source:
    """What a file says about names."""

    file: str
    # The name in this module, or "*", and the path that it stands for.
    uses: list[tuple[str, Module]] = field(default_factory=list)
    # Paths elsewhere in the code, and those of macros to which an argument is appended.
    paths: list[Module] = field(default_factory=list)
    macros: list[Module] = field(default_factory=list)
    # Names of `pub use`, and all words of the code but for `use`.
    public: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    defined: set[str] = field(default_factory=set)
    # Modules that exist only in tests, and those whose file has another name.
    tests: set[str] = field(default_factory=set)
    moved: dict[str, str] = field(default_factory=dict)


def tokens(text: str) -> list[str]:
    """The code without comments; a string is one token that begins with a quotation mark."""
    found = []
    for match in TOKEN.finditer(text):
        if match["text"]:
            found.append('"' + match["text"])
        elif match["token"]:
            found.append(match["token"])
    return found


def closing(code: list[str], start: int) -> int:
    """The place of the bracket that closes the one at `start`."""
    depth = 0
    for place in range(start, len(code)):
        depth += (code[place] in "([{") - (code[place] in ")]}")
        if depth == 0:
            return place
    raise AssertionError(f"{code[start]} is never closed")


def item_end(code: list[str], start: int) -> int:
    """The place of the last token of an item: its semicolon, or the end of its body."""
    place = start
    ends = {";"} if code[start] in {*DEFINES, "pub", "use", "impl"} else {";", ","}
    while code[place] not in ends:
        if code[place] in "([{":
            end = closing(code, place)
            # `use a::{b};` and `fn f(x) {}` go on after a bracket.
            if code[place] == "{" and code[start] != "use":
                return end
            place = end
        place += 1
    return place


def tree(code: list[str], base: Module) -> Iterator[tuple[str, Module]]:
    """The names of a tree of `use`, and the path of each."""
    place, path = 0, base
    while place < len(code):
        token = code[place]
        if token == "{":
            inner, parts, depth = code[place + 1 : closing(code, place)], [[]], 0
            for one in inner:
                depth += (one == "{") - (one == "}")
                if one == "," and depth == 0:
                    parts.append([])
                else:
                    parts[-1].append(one)
            for part in parts:
                yield from tree(part, path)
            return
        if token == "as":
            yield code[place + 1], path
            return
        if token == "*":
            yield "*", path
            return
        if token != "::" and not (token == "self" and path):
            path = (*path, token)
        place += 1
    if path != base or base:
        yield path[-1], path


def read(text: str, file: str = "") -> Source:
    """The uses, paths and definitions of a file, without its tests."""
    code, source = tokens(text), Source(file)
    place = 0
    inside: list[int] = []  # where the inline modules around this place end
    while place < len(code):
        while inside and place > inside[-1]:
            inside.pop()
        token, after = code[place], code[place + 1 : place + 3]
        if token == "#" and after[:1] in (["["], ["!"]):
            start = place + 1 + (after[0] == "!")
            end = closing(code, start)
            attribute = code[start + 1 : end]
            item = end + 1
            while code[item : item + 2] == ["#", "["]:
                item = closing(code, item + 1) + 1
            if attribute[:3] in (["cfg", "(", "test"], ["test"]) or attribute[:5] == [
                "cfg",
                "(",
                "all",
                "(",
                "test",
            ]:
                last = item_end(code, item)
                names = [code[one + 1] for one in range(item, last) if code[one] == "mod"][:1]
                source.tests.update(names if code[last] == ";" else [])
                place = last + 1
                continue
            if attribute[:2] == ["path", "="]:
                name = code[item + 1] if code[item] == "mod" else code[item + 2]
                source.moved[name] = attribute[2].strip('"')
            place = end + 1
            continue
        if token == "use" and after[:1] != ["<"]:
            end = item_end(code, place)
            for name, path in tree([one for one in code[place + 1 : end] if one != "$"], ()):
                source.uses.append((name, lifted(path, len(inside))))
                if "pub" in code[max(place - 4, 0) : place]:
                    source.public.add(name)
            place = end + 1
            continue
        source.words.add(token)
        if token in DEFINES and after:
            source.defined.add(after[1] if token == "macro_rules" or after[0] in ("mut", "fn") else after[0])
            if token == "mod" and after[1] == "{":
                inside.append(closing(code, place + 2))
        if after[:1] == ["::"] and code[place - 1] != "::" and re.match(r"[a-z_]", token):
            path, at = (token,), place
            while code[at + 1 : at + 2] == ["::"] and re.match(r"\w", code[at + 2]):
                path, at = (*path, code[at + 2]), at + 2
            is_open = code[at + 1 : at + 3] == ["::", "$"]
            (source.macros if is_open else source.paths).append(lifted(path, len(inside)))
            place = at + 1
            continue
        place += 1
    return source


def lifted(path: Module, depth: int) -> Module:
    """A path inside as many inline modules, as the file's own module would write it."""
    while depth and path[:1] == ("super",):
        path, depth = path[1:], depth - 1
    return path


class Crate:
    """The modules of a crate and the arrows between their files."""

    def __init__(self, sources: dict[Module, Source]) -> None:
        self.sources = sources

    @classmethod
    def of(cls, folder: Path) -> "Crate":
        sources: dict[Module, Source] = {}
        roots = [folder / "src" / name for name in ("lib.rs", "main.rs") if (folder / "src" / name).exists()]
        for root in roots[:1]:
            cls._load(root, (), folder, sources)
        return cls(sources)

    @classmethod
    def _load(cls, path: Path, module: Module, folder: Path, sources: dict[Module, Source]) -> None:
        # A file that is a module of two others (`#[path]`) is two: each has names of its own.
        parts = path.with_suffix("").parts[-len(module) :] if module else ()
        is_elsewhere = parts != module and path.name != "mod.rs"
        file = "/".join(module) + ".rs" if is_elsewhere else path.relative_to(folder / "src").as_posix()
        source = read(path.read_text(encoding="utf-8"), file)
        sources[module] = source
        own = path.parent if not module or path.name == "mod.rs" else path.with_suffix("")
        for name in source.defined - source.tests:
            for child in (
                own / f"{name}.rs",
                own / name / "mod.rs",
                path.parent / source.moved.get(name, "\0"),
            ):
                if "\0" not in str(child) and child.exists():
                    cls._load(child, (*module, name), folder, sources)

    def definition(self, module: Module, path: Module) -> tuple[Module, bool] | None:
        """The module that a path in a module names, or that defines what the path names.

        And whether the path names that module itself. `None` if it is outside of the crate.
        """
        found = self._definition(module, path, frozenset())
        if found is None and path[0] in ("crate", "super", "self"):
            # A macro defines it: the innermost module that the path names.
            return self.definition(module, path[:-1])
        return found

    def _definition(
        self, module: Module, path: Module, tried: frozenset[object]
    ) -> tuple[Module, bool] | None:
        if (module, path) in tried:
            return None
        tried |= {(module, path)}
        if path[:1] == ("crate",):
            module, path = (), path[1:]
        while path[:1] in (("self",), ("super",)):
            module, path = module[:-1] if path[0] == "super" else module, path[1:]
        if not path:
            return module, True
        name, rest = path[0], path[1:]
        if (*module, name) in self.sources:
            return self._definition((*module, name), rest, tried)
        source = self.sources[module]
        for own, target in source.uses:
            if own == name and target != (name,):
                return self._definition(module, target + rest, tried)
        if name in source.defined:
            return module, False
        for own, target in source.uses:
            base = self._definition(module, target, tried) if own == "*" and target else None
            found = self._definition(base[0], (name,), tried) if base is not None else None
            if found is not None:
                return found
        return None

    def arrows(self) -> Graph:
        graph: Graph = {source.file: set() for source in self.sources.values()}
        for module, source in self.sources.items():
            found = {target for path in source.paths if (target := self.definition(module, path))}
            begins = {path[0] for path in source.paths}
            for name, path in source.uses:
                target = self.definition(module, path)
                # Paths that begin with an imported module say what of it is used; macros need not.
                is_named = target is not None and target[1] and name in begins
                is_handed_on = name in source.public - source.words
                if target is not None and not is_named and not is_handed_on:
                    found.add(target)
            for path in source.macros:
                if target := self.definition(module, path):
                    found |= {(other, True) for other in self.sources if other[:-1] == target[0] and other}
            graph[source.file] = {self.sources[other].file for other, _ in found} - {source.file}
        return graph


def circles(graph: Graph) -> list[list[str]]:
    """The sets of files each of which leads to all others of its set.

    A circle of a file and its own parts only does not count, but one of these parts alone does.
    """
    found = []
    for circle in knots(graph):
        head = next((file for file in circle if all(is_part(other, file) for other in circle - {file})), None)
        if head is None:
            found.append(sorted(circle))
        else:
            parts = circle - {head}
            found += circles({file: graph[file] & parts for file in parts})
    return sorted(found)


def knots(graph: Graph) -> set[frozenset[str]]:
    """The sets of files each of which leads to all others of its set."""

    def reach(start: str) -> set[str]:
        waiting, seen = [start], set()
        while waiting:
            for other in graph[waiting.pop()]:
                if other not in seen:
                    seen.add(other)
                    waiting.append(other)
        return seen

    reached = {file: reach(file) for file in graph}
    return {
        frozenset(other for other in reached[file] if file in reached[other])
        for file in graph
        if file in reached[file]
    }


def is_part(file: str, head: str) -> bool:
    """Whether a file is in the folder of another one's name, or that one is the root of all."""
    folder, _, name = head.rpartition("/")
    if name == "mod.rs":
        return file.startswith(f"{folder}/") or not folder
    return head in ("lib.rs", "main.rs") or file.startswith(f"{head.removesuffix('.rs')}/")


@pytest.mark.parametrize("crate", CRATES)
def test_no_two_files_need_each_other(crate: str) -> None:
    assert not circles(Crate.of(ROOT / crate).arrows())


def made_up(folder: Path, files: dict[str, str]) -> list[list[str]]:
    for name, text in files.items():
        path = folder / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return circles(Crate.of(folder).arrows())


TWO = "pub mod a;\npub mod b;\n"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        # Each control has one circle, written in another way.
        ({"lib.rs": TWO, "a.rs": "use crate::b::B;", "b.rs": "use super::a::A; struct B;"}, ["a.rs", "b.rs"]),
        (
            {"lib.rs": TWO, "a.rs": "use crate::{b, c};", "b.rs": "fn f() { crate::a::g(); }"},
            ["a.rs", "b.rs"],
        ),
        (
            {
                "lib.rs": TWO + "pub use b::B;",
                "a.rs": "use crate::B; pub struct A;",
                "b.rs": "mod inner { use super::super::a::A; } pub struct B;",
            },
            ["a.rs", "b.rs"],
        ),
        (
            {
                "lib.rs": TWO + "mod c;",
                "a.rs": "use crate::b::*;",
                "b.rs": "mod part;",
                "b/part.rs": "use crate::c::C;",
                "c.rs": "use crate::a::A; use crate::b::part::P; struct C;",
            },
            ["b/part.rs", "c.rs"],
        ),
        (
            {
                "lib.rs": TWO,
                "a.rs": "mod x; mod y; use x::X; pub struct A;",
                "a/x.rs": "use super::{A, y::Y}; pub struct X;",
                "a/y.rs": "use super::x::X; pub struct Y;",
                "b.rs": "",
            },
            ["a/x.rs", "a/y.rs"],
        ),
        (
            {
                "lib.rs": "mod all; mod list;",
                "all.rs": "mod x;",
                "all/x.rs": "use crate::list::L;",
                "list.rs": "macro_rules! each { ($m:ident) => { $crate::all::$m::X } } struct L;",
            },
            ["all/x.rs", "list.rs"],
        ),
        # To import a module is to use what the code names of it.
        (
            {
                "lib.rs": TWO + "mod c;",
                "a.rs": "pub use crate::b::B; mod x; pub use x::X;",
                "a/x.rs": "pub struct X;",
                "b.rs": "use crate::a; struct B(a::X);",
                "c.rs": "",
            },
            None,
        ),
        # To hand a name on is not to use it.
        (
            {"lib.rs": TWO, "a.rs": "pub use crate::b::B; struct A;", "b.rs": "use crate::a::A; struct B;"},
            None,
        ),
        (
            {
                "lib.rs": TWO,
                "a.rs": "pub use crate::b::B; struct A(B);",
                "b.rs": "use crate::a::A; struct B;",
            },
            ["a.rs", "b.rs"],
        ),
        # A file and its own parts may use each other, tests do not count, nor do comments and strings.
        ({"lib.rs": "mod a; use a::A; pub struct B;", "a.rs": "use crate::B; pub struct A;"}, None),
        (
            {
                "lib.rs": "mod a;",
                "a.rs": "mod x; use x::X; pub struct A;",
                "a/x.rs": "use super::A; pub struct X;",
            },
            None,
        ),
        (
            {
                "lib.rs": TWO,
                "a.rs": "use crate::b::B; #[cfg(test)] mod tests { use crate::b::B; }",
                "b.rs": "// use crate::a;\n/* use crate::a; */ const C: char = '\"';\n"
                'const S: &str = r#"use crate::a;"#; const T: &str = "\\"use crate::a;";\n'
                "pub struct B<'a>(&'a str); #[cfg(test)] mod tests { use crate::a::A; }",
            },
            None,
        ),
    ],
)
def test_a_made_up_circle_is_found(tmp_path: Path, files: dict[str, str], expected: list[str] | None) -> None:
    assert made_up(tmp_path, files) == ([expected] if expected else [])
