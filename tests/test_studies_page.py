"""What a report says of two worlds: each by its own data, its own criterion, its own count."""

from dataclasses import replace

import polars as pl

from fullpipe.studies import catalogue, page, run
from fullpipe.studies.claim import Check, Data, Finding, Size, within
from fullpipe.studies.write import _finding


def missed(values: list[float], criterion: float = 10.0, paper: str = "ten") -> Check:
    return within("speed", values, paper=paper, least=criterion, unit="m/s")


def findings(*worlds: str) -> list[Finding]:
    return [Finding(world, [missed([1.0, 2.0])]) for world in worlds]


def because(found: list[Finding]) -> list[str]:
    built = catalogue.built("queue16.fig4")
    assert built is not None
    claim = replace(
        built.claim, explain=lambda data: ["The same.", f"The mean is {data.mean('x'):g}, {data.worlds[0]}."]
    )
    runs = pl.DataFrame({"world": ["sim", "sim", "kernel"], "x": [1.0, 3.0, 10.0]})
    return run._because(claim, Data(runs, pl.DataFrame()), found)


def test_each_world_is_explained_by_its_own_data_and_what_is_the_same_is_said_once() -> None:
    assert because(findings("sim", "kernel")) == [
        "Simulation and Linux kernel: The same.",
        "Simulation: The mean is 2, sim.",
        "Linux kernel: The mean is 10, kernel.",
    ]


def test_a_world_that_misses_nothing_is_not_explained() -> None:
    met = Finding("sim", [within("speed", [11.0], paper="ten", least=10.0)])
    assert because([met, *findings("kernel")]) == [
        "Linux kernel: The same.",
        "Linux kernel: The mean is 10, kernel.",
    ]
    assert because([met]) == []


def test_one_world_needs_no_name() -> None:
    assert because(findings("sim")) == ["The same.", "The mean is 2, sim."]


def test_a_criterion_that_differs_between_worlds_is_told_for_each() -> None:
    found = [
        Finding("sim", [missed([20.0, 22.0])]),
        Finding("kernel", [missed([1.0], 1.0, "ten; a tenth of it")]),
    ]
    table = page._checks([_finding(one) for one in found])
    assert "simulation: at least 10 m/s<br>Linux kernel: at least 1 m/s" in table
    assert "simulation: ten<br>Linux kernel: ten; a tenth of it" in table
    assert table.count("n = 2") == 1 and "n = 1" not in table
    same = page._checks([_finding(one) for one in findings("sim", "kernel")])
    assert same.count("at least 10 m/s") == 1


def test_what_was_not_run_is_not_counted() -> None:
    result = {"size": "full", "seeds": 10, "repetitions": 3, "version": "1", "at": "now", "id": "p.c"}
    assert page._provenance({**result, "findings": [{"world": "sim"}]}).startswith(
        "Provenance: 10 seeds in the simulator; "
    )
    both = [{"world": "sim"}, {"world": "kernel"}]
    said = page._provenance({**result, "findings": both})
    assert "10 seeds in the simulator, 3 repetitions in the kernel world; " in said


def test_an_uncertainty_has_two_digits_and_a_miss_its_expectation() -> None:
    one = within("Cycles", [1.0, 1.07, 1.14], paper="", least=2, most=4.5, unit="cycles")
    assert Finding("sim", [one]).reason == "Cycles: 1.07 ± 0.17 cycles (expected 2 to 4.5)."


def test_the_command_has_every_option_that_mattered() -> None:
    built = catalogue.built("queue16.fig4")
    assert built is not None
    assert run.Plan(built, Size.FULL, ("sim",), 10, 3).command == "fullpipe study run queue16.fig4"
    short = run.Plan(built, Size.QUICK, ("sim", "kernel"), 7, 2).command
    assert short == "fullpipe study run queue16.fig4 --quick --world all --seeds 7 --repetitions 2"


def test_no_column_of_checks_can_hide() -> None:
    table = page._checks([_finding(one) for one in findings("sim", "kernel")])
    assert 'data-heading="Simulation"' in table and 'data-heading="Linux kernel"' in table
    assert 'class="number"' not in table, "words wrap"
