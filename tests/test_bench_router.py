"""The pure parts of bench/router.py: which runs count, and what its table says of them."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from fullpipe import evidence

SCRIPT = Path(__file__).resolve().parent.parent / "bench" / "router.py"


@pytest.fixture(scope="module")
def router() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_router", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # A dataclass looks its module up.
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[spec.name]
    return module


def cell(router: ModuleType, *runs: object) -> str:
    message = router.options().parse_args(["--repetitions", str(len(runs))])
    return str(router.shown(router.line(message, ("250 KB", 1, "bbr1", "sim"), runs)))


def test_table_counts_only_trusted_runs(router: ModuleType) -> None:
    good, odd = router.Measured(0.016), router.Measured(0.5, ["late"])
    assert cell(router, good) == "1.60 % (n = 1)"
    assert cell(router, good, odd, router.Measured(0.01), None) == "1.30 % (1.00..1.60, n = 2)"
    assert cell(router, odd, None) == "none trusted"
    assert cell(router, None) == "failed"
    assert cell(router, router.Measured(0.0)) == "0.00 % (n = 1)"


def test_untrusted_run_is_repeated(router: ModuleType) -> None:
    good, odd = router.Measured(0.1), router.Measured(0.2, ["late"])
    for runs, attempts, expected, left in (
        ([good, odd], 3, good, 1),
        ([odd, None, good], 3, good, 0),
        ([odd, odd, good], 2, odd, 1),
        ([None, None], 2, None, 0),
    ):
        waiting = list(runs)
        assert router.until_trusted(lambda waiting=waiting: waiting.pop(0), attempts) is expected
        assert len(waiting) == left


SHELL = """fullpipe: up (from the command): 200 Mbit/s, queue of 100 KB
fullpipe: down (to the command): 200 Mbit/s, queue of 100 KB
fullpipe: up (from the command): 100 packets, 90 delivered, 10 dropped by the queue, 0 lost at random
fullpipe: down (to the command): 50 packets, 50 delivered, 0 dropped by the queue, 0 lost at random
"""
LATE = "1 % of packets left more than 2 ms late (limit 1 ms)"


def test_shell_output_yields_counts_and_doubts(router: ModuleType) -> None:
    report = json.dumps({"end": {"sum_sent": {"bytes": 1448 * 90, "retransmits": 10}}})
    assert router.read(report, SHELL) == router.Measured(0.1, [])
    assert router.read(report, f"{SHELL}fullpipe: {LATE}\n") == router.Measured(0.1, [LATE])
    # Without its counts nobody knows.
    assert router.read(report, SHELL.rpartition("fullpipe: down")[0]) is None
    for damaged in ("", "[]", '{"end": {}}', '{"end": {"sum_sent": {"bytes": 0, "retransmits": 0}}}'):
        assert router.read(damaged, SHELL) is None


def test_table_shows_reproducing_command(router: ModuleType, tmp_path: Path) -> None:
    given = ["--seconds", "4", "--repetitions", "1", "--rate", "1 Gbit/s", "--record"]
    message = router.options().parse_args(given)
    made = [
        router.line(message, (*row, way), [router.Measured(0.1)])
        for row in router.ROWS
        for way in router.WAYS
    ]
    text = router.table(made)
    assert "`python bench/router.py --rate '1 Gbit/s' --seconds 4 --repetitions 1 --record`:" in text
    assert "of 1 that were asked for" in text
    assert "| 16 KB | 1 | bbr1 |" + 4 * " 10.00 % (n = 1) |" in text
    (tmp_path / "schema").symlink_to(router.FILE.parent / "schema")
    evidence.replace(tmp_path / "router.jsonl", made)
    assert router.table(evidence.read(tmp_path / "router.jsonl")) == text
    for wrong in ("0", "-1", "x"):
        with pytest.raises(SystemExit):
            router.options().parse_args(["--repetitions", wrong])
