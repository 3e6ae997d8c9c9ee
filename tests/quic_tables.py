"""What docs/explanation/quic.md is made of, and the script that makes it."""

import importlib.util
from pathlib import Path
from types import ModuleType

from fullpipe import evidence

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "bench" / "quic_conform.py"
# Relative, as in the command that the page names.
SCENARIOS = Path("docs", "explanation", "quic")


def bench(script: Path = SCRIPT) -> ModuleType:
    """A script as a module."""
    spec = importlib.util.spec_from_file_location(f"bench_{script.stem}", script)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lines() -> list[evidence.Line]:
    """What was measured of the cases over real QUIC, without adapters."""
    made = bench().of_suite(evidence.read(ROOT / "results" / "conformance.jsonl"), "bbr3")
    return list(bench().linked(made, "bbr3"))
