"""The tables of docs/quic.md, as the tests read them, and the script that makes them."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "bench" / "quic_conform.py"
PAGE = ROOT / "docs" / "quic.md"
# Relative, as in the command that the page names.
SCENARIOS = Path("docs", "quic")


def bench() -> ModuleType:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("bench_quic_conform", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def between_markers(name: str) -> str:
    """What the page has between the two lines of a table."""
    page = PAGE.read_text(encoding="utf-8")
    return page.partition(f"<!-- {name}:begin -->\n")[2].partition(f"<!-- {name}:end -->")[0]


def cells(text: str, key: str) -> dict[tuple[str, str], str]:
    """The cells of the tables whose first head is `key`, by the names of row and column.

    A name is what is in backticks, or all of it. "–" is no cell.
    """
    found: dict[tuple[str, str], str] = {}
    heads: list[str] = []
    for line in text.splitlines():
        if not line.startswith("|"):
            heads = []
            continue
        first, *others = (one.strip() for one in line.strip("|").split("|"))
        if not heads:
            heads = [first, *others]
        elif heads[0] == key and not first.startswith("---"):
            name = re.sub(r".*`(.+?)`.*", r"\1", first)
            for head, cell in zip(heads[1:], others, strict=True):
                assert (name, head) not in found, f"{name}, {head}: twice in the tables"
                if cell != "–":
                    found[name, head] = cell
    return found


def column(found: dict[tuple[str, str], str], controller: str) -> dict[str, str]:
    """The cells of a controller, by its cases."""
    return {case: cell for (case, head), cell in found.items() if head == controller}
