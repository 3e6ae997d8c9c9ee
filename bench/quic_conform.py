"""Who passes what over real QUIC: the cases of `fullpipe conform` in the world quic, for several controllers.

    make quic && .venv/bin/python bench/quic_conform.py --write docs/quic.md

prints a row for each case that is applicable to one of them, with the measured value of its decisive
criterion, and puts the table between two lines of a document. `--failures` writes a scenario for each case
that a stack's own controller fails, as a file that `fullpipe run` takes; `--qlog` writes a qlog of each.
"""

import argparse
import shlex
import sys
from pathlib import Path

import fullpipe as fp
from fullpipe.conformance import minimal, packet_logs
from fullpipe.conformance.conformity import FAIL, NOT_APPLICABLE, PASS, Conformity, Result
from fullpipe.show.markers import Markers
from fullpipe.system import files
from fullpipe.worlds import registry
from fullpipe.worlds.logs import Logs

CONTROLLERS = ("bbr3", "bbr1", "noq:bbr3", "quinn:bbr", "cubic9438", "noq:cubic", "quinn:cubic")
MARKERS = Markers("quic-conform")


def main() -> None:
    """Plays the cases, prints the table, and writes what was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("controllers", nargs="*", default=CONTROLLERS)
    parser.add_argument("--case", action="append", help="only this case; may be repeated")
    parser.add_argument("--write", type=Path, help="a document with the two marker lines")
    parser.add_argument("--failures", type=Path, help="a folder for scenarios of failures")
    parser.add_argument("--qlog", type=Path, help="a folder for qlogs of failures; may be the same")
    asked = parser.parse_args()
    Logs.of(asked.qlog, None)  # A folder that cannot be written into is an error now.
    if asked.write is not None:
        MARKERS.check(asked.write)
    found = []
    for controller in asked.controllers:
        print(f"plays {controller}", file=sys.stderr)
        found.append(fp.conform(controller, asked.case, world="quic"))
    cases = [word for case in asked.case or () for word in ("--case", case)]
    all_of_them = tuple(asked.controllers) == CONTROLLERS
    text = table(found, [*(() if all_of_them else asked.controllers), *cases])
    print(text, end="")
    if asked.write is not None:
        MARKERS.put(text, asked.write)
    if asked.failures is not None:
        for path in failures(found, asked.failures):
            print(path)
    if asked.qlog is not None:
        for path in qlogs(found, asked.qlog):
            print(path)


def table(found: list[Conformity], asked: list[str]) -> str:
    """Counts, and a row for each case that says something about one of them."""
    versions = registry.named("quic").versions()
    command = shlex.join(["python", "bench/quic_conform.py", *asked])
    lines = [
        f"Made by `{command}`: Fullpipe {fp.__version__}, {versions}. A value is that of the criterion which "
        "is not met, or of the case's main one; the worst over its seeds. “–” is not applicable.",
        "",
        "| controller | passes | fails, of these by design | not applicable |",
        "|---|---|---|---|",
    ]
    for one in found:
        passes, fails, without = (
            sum(result.verdict == verdict for result in one.results)
            for verdict in (PASS, FAIL, NOT_APPLICABLE)
        )
        designed = sum(one.expected(result) is not None for result in one.results)
        lines.append(f"| {one.controller} | {passes} of {passes + fails} | {fails}, {designed} | {without} |")
    lines += ["", f"| case | criterion | {' | '.join(one.controller for one in found)} |"]
    lines += ["|" + "---|" * (2 + len(found))]
    for results in zip(*(one.results for one in found), strict=True):
        if all(one.verdict == NOT_APPLICABLE for one in results):
            continue
        lines.append(row(found, results))
    reasons = {
        (one.reason, result.case.name)
        for conformity in found
        for result in (one for one in conformity.results if one.verdict == NOT_APPLICABLE)
        for one in (result,)
        if "of BBR" not in one.reason and "BBR's phases" not in one.reason
    }
    if reasons:
        lines += ["", "Not applicable for another reason than that no phases are shown:", ""]
        by_reason: dict[str, list[str]] = {}
        for reason, case in sorted(reasons):
            by_reason.setdefault(reason, []).append(f"`{case}`")
        lines += [f"* {', '.join(cases)}: {reason}." for reason, cases in by_reason.items()]
    return "\n".join(lines) + "\n"


def row(found: list[Conformity], results: tuple[Result, ...]) -> str:
    """A case, its main criterion, and what each controller came to."""
    case = results[0].case
    main = next((one for one in case.criteria if one.key == case.main), case.criteria[0])
    cells = [cell(conformity, result, main.key) for conformity, result in zip(found, results, strict=True)]
    return f"| `{case.name}` | {main.quantity}: {main.bounds} | {' | '.join(cells)} |"


def cell(conformity: Conformity, result: Result, main: str) -> str:
    """A verdict with its value, and whose criterion it is if that is not the main one."""
    check = result.decisive
    if result.verdict == NOT_APPLICABLE:
        return "–"
    if check is None:
        return f"**{result.verdict}**"
    other = "" if check.criterion.key == main else f" ({check.criterion.quantity}: {check.criterion.bounds})"
    if result.verdict == PASS:
        return f"{check.measured}{other}"
    why = conformity.expected(result)
    word = "by design" if why is not None else "**fail**"
    return f"{word}: {check.measured}{other}"


def failures(found: list[Conformity], folder: Path) -> list[Path]:
    """A scenario for each case that a stack's own controller fails, and not by design."""
    files.make_folder(folder)
    written = []
    for one, result in failed(found):
        text = minimal.scenario(one, result)
        if text is not None:
            name = f"{one.controller.replace(':', '-')}-{result.case.name}.toml"
            written.append(files.write(folder, name, text.encode()))
    return written


def qlogs(found: list[Conformity], folder: Path) -> list[Path]:
    """A qlog for each stage of such a case, in both forms. Its runs are done once more."""
    written = []
    for one, result in failed(found):
        paths, without = packet_logs.write(one, folder, [result])
        for case in without:
            print(f"{one.controller}, {case}: no qlog, because it changes its buffer", file=sys.stderr)
        written += paths
    return written


def failed(found: list[Conformity]) -> list[tuple[Conformity, Result]]:
    """What a stack's own controllers fail, and not by design."""
    return [
        (one, result)
        for one in found
        for result in one.results
        if ":" in one.controller and result.verdict == FAIL and one.expected(result) is None
    ]


if __name__ == "__main__":
    main()
