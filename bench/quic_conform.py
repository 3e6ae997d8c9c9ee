"""Which cases of `fullpipe conform` each controller passes over real QUIC.

    make quic && python bench/quic_conform.py --record --failures docs/explanation/quic
    python bench/quic_conform.py --suite loss --record
    python bench/quic_conform.py --suite loss --stack quicgo=.venv/bin/stack-quicgo --record

plays the cases in the world quic and prints tables: a short one of what a few controllers do on four paths,
and a row for each case, with the measured value of its decisive criterion. `--record` puts the results into
results/conformance.jsonl, from which `make docs` makes the tables. `--failures` writes a scenario for each
case that a controller fails, and not by design, as a file that `fullpipe run` takes; `--qlog` writes a qlog
of each. `--suite loss` plays the cases of loss-based controllers; `--stack` all controllers of a stack behind
an adapter (docs/how-to/stacks.md), unless some are named.
"""

import argparse
import shlex
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import fullpipe as fp
from fullpipe import evidence, files
from fullpipe.conformance import minimal, packet_logs, suites
from fullpipe.conformance.case import Case, Criterion
from fullpipe.conformance.conformance_report import ConformanceReport
from fullpipe.conformance.loss.case import traits
from fullpipe.conformance.results import (
    BBR3,
    FAIL,
    LOSS,
    NOT_APPLICABLE,
    PASS,
    Check,
    Result,
)
from fullpipe.runs.worlds import stacks
from fullpipe.runs.worlds.logs import Logs
from fullpipe.text import joined

CONTROLLERS = (
    *("bbr3", "bbr1", "newreno", "cubic9438", "cubic", "copa"),
    *("noq:bbr3", "noq:cubic", "noq:newreno", "quinn:bbr", "quinn:cubic", "quinn:newreno"),
)
OF_LOSS = ("cubic9438", "newreno", "noq:cubic", "noq:newreno", "quinn:cubic", "quinn:newreno")
OF_SUITE = {BBR3: CONTROLLERS, LOSS: OF_LOSS}
RESULTS = Path(__file__).resolve().parent.parent / "results"
FILE = RESULTS / "conformance.jsonl"
WORLD = "quic"
# The short table: its rows, and its columns after the first two. A column is a case, a criterion of it, and
# how the head of the column names both.
SHORT = ("noq:bbr3", "noq:cubic", "quinn:bbr", "quinn:cubic", "bbr3", "bbr1", "cubic9438")
COLUMNS = (
    ("clean-path", "rate", "clean path", "share of the rate"),
    ("random-loss", "rate", "0.5 % of random loss", "share of the rate"),
    ("deep-buffer", "queue", "deep buffer", "mean queue, in round trips"),
    ("policer", "loss", "policer", "packets lost"),
)
# The page with a line for each case, beside that with the tables.
CASES = "../how-to/conform.md"
# How the cases are named that hold a controller of Fullpipe's against the laws.
LAW = "law."

# What a table links a failure to; None if no scenario says it.
Link = Callable[[ConformanceReport, Result], str | None]


def main() -> None:
    """Plays the cases, prints the tables, and writes what was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("controllers", nargs="*")
    parser.add_argument("--suite", choices=OF_SUITE, default=BBR3)
    parser.add_argument("--stack", action="append", default=[], metavar="NAME=COMMAND")
    parser.add_argument("--case", action="append", help="only this case; may be repeated")
    parser.add_argument(
        "--record", action="store_true", help="put the results into results/conformance.jsonl"
    )
    parser.add_argument("--failures", type=Path, help="a folder for scenarios of failures")
    parser.add_argument("--qlog", type=Path, help="a folder for qlogs of failures; may be the same")
    asked = parser.parse_args()
    Logs.of(asked.qlog, None)  # A folder that cannot be written into is an error now.
    if asked.record:
        evidence.read(FILE)  # A file that cannot be used is an error now.
    given = [stacks.of_text(one) for one in asked.stack]
    stacks.give(given)
    theirs = [f"{stack.name}:{name}" for stack in given for name in stack.about["controllers"]]
    # Of others, nobody says whether they are loss-based.
    theirs = [one for one in theirs if asked.suite == BBR3 or traits(one, "any", own=False)]
    found = []
    for controller in asked.controllers or theirs or OF_SUITE[asked.suite]:
        print(f"plays {controller}", file=sys.stderr)
        found.append(fp.conform(controller, asked.case, world=WORLD, suite=asked.suite))
    more = [] if asked.suite == BBR3 else ["--suite", asked.suite]
    more += [word for one in asked.stack for word in ("--stack", one)]
    more += [word for case in asked.case or () for word in ("--case", case)]
    command = shlex.join(["python", "bench/quic_conform.py", *asked.controllers, *more, "--record"])
    made = lines(found, command, asked.failures)
    print(*tables(made, asked.suite), sep="\n", end="")
    if asked.record:
        evidence.replace(FILE, made)
    if asked.failures is not None:
        for path in failures(found, asked.failures):
            print(path)
    if asked.qlog is not None:
        for path in qlogs(found, asked.qlog):
            print(path)


def lines(
    found: Sequence[ConformanceReport], command: str, failed: Path | None = None
) -> list[evidence.Line]:
    """The evidence of each controller and case. `failed` is the folder with the scenarios of failures."""

    def scenario(one: ConformanceReport, result: Result) -> str | None:
        return (
            None
            if failed is None
            else next(reversed([path.name for path in scenarios(one, result, failed)]), None)
        )

    return [line for one in found for line in one.lines(command, partial(scenario, one))]


def of_suite(made: Sequence[evidence.Line], suite: str) -> list[evidence.Line]:
    """The lines in this world that are about cases of a suite."""
    names = {one.name for one in suites.CHOSEN[suite](None)}
    return [line for line in made if line["key"]["world"] == WORLD and line["key"]["case"] in names]


def linked(made: Sequence[evidence.Line], suite: str) -> list[evidence.Line]:
    """The lines about controllers without an adapter; docs/how-to/stacks.md counts the others."""
    return [line for line in made if line["key"]["subject"] in OF_SUITE[suite]]


def conformities(made: Sequence[evidence.Line], suite: str = BBR3) -> list[ConformanceReport]:
    """How each controller fares by these lines: verdicts follow from the measured values."""
    mine = of_suite(made, suite)
    found = []
    played = {line["key"]["case"] for line in mine}
    cases = [one for one in suites.CHOSEN[suite](None) if one.name in played]
    by_key = {(line["key"]["subject"], line["key"]["case"]): line for line in mine}
    names = dict.fromkeys(line["key"]["subject"] for line in mine)
    for name in (
        *(one for one in OF_SUITE[suite] if one in names),
        *(one for one in names if one not in OF_SUITE[suite]),
    ):
        results = tuple(result(case, by_key.get((name, case.name))) for case in cases)
        found.append(ConformanceReport(name, WORLD, results, suite=suite))
    return found


def result(case: Case, line: evidence.Line | None) -> Result:
    """The result that a line says."""
    if line is None:
        return Result(case, NOT_APPLICABLE, "it was not played")
    if line["outcome"] != "judged":
        return Result(case, line["outcome"], line["reason"])
    checks = tuple(
        Check(
            Criterion(one["key"], one["says"], one["low"], one["high"], one["unit"]),
            one["value"],
            one["seed"],
        )
        for one in line["criteria"]
    )
    verdict = PASS if all(one.met for one in checks) else FAIL
    return Result(case, verdict, line["reason"], checks)


def tables(made: Sequence[evidence.Line], suite: str = BBR3, older: str = "") -> list[str]:
    """What each controller fails in a suite; of the suite for BBRv3, the short table comes before it."""
    failing = failures_table(made, suite, older)
    if suite != BBR3:
        return [failing]
    found = conformities(made)
    return [short(found), failing]


def failures_table(made: Sequence[evidence.Line], suite: str, older: str = "") -> str:
    """How many cases of a suite each controller passes; and what it fails not by design, with the values."""
    made = of_suite(made, suite)
    link = links(made)
    lines = [f"{made_by(made)} {older}".strip(), "", "| controller | passes | fails |", "|---|---|---|"]
    for one in conformities(made, suite):
        failed = ", ".join(
            _failed(result, link(one, result)) for result in one.results if unexpected(one, result)
        )
        lines.append(f"| `{one.controller}` | {passed(one)} | {failed or '–'} |")
    return "\n".join(lines) + "\n"


def every_case(made: Sequence[evidence.Line], older: str = "") -> str:
    """Every case for BBRv3, with what each controller came to."""
    made = of_suite(made, BBR3)
    return table(conformities(made), made_by(made), links(made), older)


def links(made: Sequence[evidence.Line]) -> Link:
    """Finds the scenario of a failure, from the page in docs/explanation."""
    linked = {(one["key"]["subject"], one["key"]["case"]): one["scenario"] for one in made}

    def link(one: ConformanceReport, result: Result) -> str | None:
        name = linked.get((one.controller, result.case.name))
        return None if name is None else f"quic/{name}"

    return link


def _failed(result: Result, scenario: str | None) -> str:
    """A case that fails: its name, the value of the criterion that is not met, and its bounds."""
    check = result.decisive
    name = f"`{result.case.name}`" if scenario is None else f"[`{result.case.name}`]({scenario})"
    return name + ("" if check is None else f" ({check.measured}; {check.criterion.bounds})")


def made_by(made: Sequence[evidence.Line]) -> str:
    """What made a table, and what played."""
    whole = dict.fromkeys(str(one["made"]["command"]) for one in made)
    # Made in parts, each with its own controllers: only the program is named.
    named = {" ".join(one.split()[:2]): one for one in whole}
    parts = len(named) < len(whole)
    commands = [f"`{short} ...`" if parts else f"`{one}`" for short, one in named.items()]
    played = dict.fromkeys(
        word for one in made for word in (f"Fullpipe {one['made']['fullpipe']}", *one["made"]["ran_by"])
    )
    return f"Made by {joined(commands)}: {', '.join(played)}."


def short(found: Sequence[ConformanceReport]) -> str:
    """What a few controllers do on four paths. The table of failures, on the same page, says what made it."""
    results = {(one.controller, result.case.name): result for one in found for result in one.results}
    cases = {result.case.name: result.case for one in found for result in one.results}
    columns = [one for one in COLUMNS if one[0] in cases]
    heads = []
    for name, _, path, quantity in columns:
        seeds = len(cases[name].seeds)
        worst = "1 seed" if seeds == 1 else f"worst of {seeds} seeds"
        heads.append(f"[{path}]({CASES}#{name}): {quantity} ({worst})")
    lines = [f"| controller | {' | '.join(heads)} |", "|" + "---|" * (1 + len(columns))]
    for controller in SHORT:
        if any(one.controller == controller for one in found):
            shown = [value(results[controller, name], key) for name, key, *_ in columns]
            lines.append(f"| {' | '.join([f'`{controller}`', *shown])} |")
    return "\n".join(lines) + "\n"


def value(result: Result, key: str) -> str:
    """What a case measured of one of its criteria."""
    return next((check.measured for check in result.checks if check.criterion.key == key), "–")


def passed(of: ConformanceReport) -> str:
    """How many of the applicable cases pass."""
    passes, fails = (sum(one.verdict == verdict for one in of.results) for verdict in (PASS, FAIL))
    return f"{passes} of {passes + fails}"


def table(found: Sequence[ConformanceReport], by: str, link: Link, older: str = "") -> str:
    """Counts, and a row for each case that says something about one of them."""
    lines = [
        f"{by} A value is that of the criterion which is not met, or of the case's main one; "
        "the worst over its seeds. “–” is not applicable.",
        *(["", older] if older else []),
        "",
        "| controller | passes | fails, of these by design | not applicable |",
        "|---|---|---|---|",
    ]
    for one in found:
        fails, without = (
            sum(result.verdict == verdict for result in one.results) for verdict in (FAIL, NOT_APPLICABLE)
        )
        designed = sum(one.expected(result) is not None for result in one.results)
        lines.append(f"| {one.controller} | {passed(one)} | {fails}, {designed} | {without} |")
    rows = list(zip(*(one.results for one in found), strict=True))
    laws = [row for row in rows if row[0].case.name.startswith(LAW)]
    broken = [row for row in laws if any(one.verdict == FAIL for one in row)]
    others = [row for row in rows if row not in laws]
    general = [row for row in others if not row[0].case.phases]
    lines += ["", "The cases that apply to every controller:", ""]
    lines += grid(found, [*general, *broken], link)
    lines += _of_laws(found, len(laws), len(broken))
    phases = [row for row in others if row[0].case.phases]
    # Those that show no phases have no column.
    shown = [at for at in range(len(found)) if any(row[at].verdict != NOT_APPLICABLE for row in phases)]
    if shown:
        lines += ["", "The cases about BBR's phases:", ""]
        lines += grid([found[at] for at in shown], [tuple(row[at] for at in shown) for row in phases], link)
    # Why a case applies to nobody, although somebody shows phases.
    without = [row[at] for row in others for at in (shown if row[0].case.phases else range(len(found)))]
    by_reason: dict[str, list[str]] = {}
    for one in sorted({(one.reason, one.case.name) for one in without if one.verdict == NOT_APPLICABLE}):
        by_reason.setdefault(one[0], []).append(_case(one[1]))
    if by_reason:
        lines += ["", "Not applicable for another reason than that no phases are shown:", ""]
        lines += [f"* {', '.join(cases)}: {reason}." for reason, cases in by_reason.items()]
    return "\n".join(lines) + "\n"


def unexpected(one: ConformanceReport, result: Result) -> bool:
    """A failure that is not by design."""
    return result.verdict == FAIL and one.expected(result) is None


def _of_laws(found: Sequence[ConformanceReport], laws: int, broken: int) -> list[str]:
    """A sentence instead of the rows of laws that nobody breaks."""
    held = [
        one.controller
        for one in found
        if any(
            result.case.name.startswith(LAW) and result.verdict != NOT_APPLICABLE for result in one.results
        )
    ]
    if not held:
        return []
    what = f"The laws (`{LAW}*`) apply to Fullpipe's own controllers"
    if broken:
        return ["", f"{what}. Those that one of them breaks are in the table."]
    return ["", f"{what}: {joined(held)} break none of the {laws}."]


def grid(found: Sequence[ConformanceReport], rows: Sequence[tuple[Result, ...]], link: Link) -> list[str]:
    """The lines of a table of cases; without those that apply to none of these controllers."""
    lines = [f"| case | criterion | {' | '.join(one.controller for one in found)} |"]
    lines += ["|" + "---|" * (2 + len(found))]
    return lines + [
        row(found, results, link) for results in rows if any(one.verdict != NOT_APPLICABLE for one in results)
    ]


def row(found: Sequence[ConformanceReport], results: tuple[Result, ...], link: Link) -> str:
    """A case, its main criterion, and what each controller came to."""
    case = results[0].case
    main = next((one for one in case.criteria if one.key == case.main), case.criteria[0])
    cells = [cell(of, result, main, link(of, result)) for of, result in zip(found, results, strict=True)]
    return f"| {_case(case.name)} | {main.quantity}: {main.bounds} | {' | '.join(cells)} |"


def _case(name: str) -> str:
    return f"[`{name}`]({CASES}#{name})"


def cell(report: ConformanceReport, result: Result, main: Criterion, scenario: str | None) -> str:
    """A verdict with its value, and whose criterion it is if that is not the main one."""
    check = result.decisive
    if result.verdict == NOT_APPLICABLE:
        return "–"
    word = "by design" if report.expected(result) is not None else f"**{result.verdict}**"
    word = f"[{word}]({scenario})" if scenario is not None else word
    if check is None:
        return word
    of = check.criterion
    shown = f"{check.measured}{'' if of.key == main.key else f' ({of.quantity}: {of.bounds})'}"
    return shown if result.verdict == PASS else f"{word}: {shown}"


def scenarios(one: ConformanceReport, result: Result, folder: Path) -> dict[Path, str]:
    """The files of a failure that is not by design; none if no scenario says it."""
    if result.verdict != FAIL or one.expected(result) is not None:
        return {}
    return minimal.scenarios(one, result, folder / f"{one.controller.replace(':', '-')}-{result.case.name}")


def failures(found: Sequence[ConformanceReport], folder: Path) -> list[Path]:
    """A scenario for each run of a case that a controller fails, and not by design."""
    files.make_folder(folder)
    return [
        files.write(folder, path.name, text.encode())
        for one in found
        for result in one.results
        for path, text in scenarios(one, result, folder).items()
    ]


def qlogs(found: Sequence[ConformanceReport], folder: Path) -> list[Path]:
    """A qlog for each run of such a case, in both forms. Its runs are done once more."""
    written = []
    for one in found:
        failed = [result for result in one.results if result.verdict == FAIL]
        for result in (result for result in failed if one.expected(result) is None):
            paths, without = packet_logs.write(one, folder, [result], log_limit="1 TB")
            for case in without:
                print(f"{one.controller}, {case}: no qlog, because it changes its buffer", file=sys.stderr)
            written += paths
    return written


if __name__ == "__main__":
    main()
