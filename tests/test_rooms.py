"""Python's rooms: each imports only from earlier ones, also inside functions and for types."""

import ast
import re
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "python" / "fullpipe"

# A room may import from those that come before it in this list.
ROOMS = (
    "text",
    "errors",
    "shipped",
    "plugins",
    "files",
    "reading",
    "evidence",
    "scenario",
    "measures",
    "runs",
    "agreement",
    "report",
    "api",
    "simulation",
    "conformance",
    "advisor",
    "probe",
    "gate",
    "cli",
    "__main__",
)


def modules() -> dict[str, Path]:
    return {
        ".".join(path.relative_to(PACKAGE).with_suffix("").parts): path
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.name != "__init__.py" or path.parent != PACKAGE
    }


def imported(path: Path) -> set[str]:
    """The modules and names of this package that a file imports, without the package's own name."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "fullpipe":
            base = node.module.split(".")[1:]
            found |= {".".join([*base, name.name]) for name in node.names}
        elif isinstance(node, ast.Import):
            found |= {name.name.partition(".")[2] for name in node.names if name.name.startswith("fullpipe.")}
    return found


def room(name: str) -> str:
    return name.split(".")[0]


def test_every_module_is_in_a_room() -> None:
    assert {room(name) for name in modules()} == set(ROOMS)


def test_arrows_point_down() -> None:
    upwards = [
        f"{name} imports {other}"
        for name, path in modules().items()
        for other in sorted(imported(path))
        if room(other) in ROOMS and ROOMS.index(room(other)) > ROOMS.index(room(name))
    ]
    assert not upwards, "\n".join(upwards)


def test_lower_rooms_never_import_package() -> None:
    """`fullpipe.compare` and its like are for users: they lead to the topmost rooms."""
    allowed = {"_native", "__version__", "errors", "api", "cli"}
    outside = [
        f"{name} imports {other}"
        for name, path in modules().items()
        for other in sorted(imported(path))
        if other and room(other) not in ROOMS and other not in allowed and not other.startswith("_native.")
    ]
    assert not outside, "\n".join(outside)


def test_core_does_not_name_extra_packages() -> None:
    """It finds what they offer by entry points. One sentence tells how to install what is missing."""
    name = re.compile(r"fullpipe[_-](?:studies|gym)")
    naming = [
        f"{path.relative_to(PACKAGE)}: {line.strip()}"
        for path in sorted(PACKAGE.parent.rglob("*"))
        if path.is_file() and path.suffix in {".py", ".pyi", ".md", ".html", ".css", ".toml"}
        for line in path.read_text(encoding="utf-8").splitlines()
        if name.search(line)
    ]
    assert len(naming) == 1 and "not installed; install the package" in naming[0], naming


def test_modules_have_no_import_cycles() -> None:
    """Also not within functions or for types. Packages beside the core are looked at with it."""
    roots = [PACKAGE.parent, *sorted((PACKAGE.parent.parent / "packages").iterdir())]
    found = {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for root in roots
        for path in sorted(root.rglob("*.py"))
    }
    graph = in_circles({name: arrows(path, set(found)) - {name} for name, path in found.items()})
    assert not graph, "\n".join(f"{name} -> {sorted(others)}" for name, others in graph.items())


def test_a_circle_is_found() -> None:
    graph = {"start": {"a"}, "a": {"b"}, "b": {"c"}, "c": {"a", "leaf"}, "leaf": set()}
    assert in_circles(graph) == {"a": {"b"}, "b": {"c"}, "c": {"a"}}


def in_circles(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """What is left without those that lead to no circle, and those that no circle leads to."""
    while leaves := {name for name, others in graph.items() if not others & graph.keys()}:
        graph = {name: others for name, others in graph.items() if name not in leaves}
    while starts := graph.keys() - set().union(*graph.values()):
        graph = {name: others for name, others in graph.items() if name not in starts}
    return {name: others & graph.keys() for name, others in graph.items()}


def arrows(path: Path, known: set[str]) -> set[str]:
    """The modules that a file imports, of those that are known."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for one in node.names:
                full = f"{node.module}.{one.name}"
                found.add(full if full in known else node.module)
        elif isinstance(node, ast.Import):
            found |= {one.name for one in node.names}
    return found & known
