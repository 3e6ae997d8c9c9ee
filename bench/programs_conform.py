"""Which programs of others pass the cases that are judged from outside? For docs/how-to/programs-conform.md.

    .venv/bin/python bench/programs_conform.py [--only NAME] [--out FOLDER] [--record]

Each program sends over the kernel world's path: iperf3 over Linux's own controllers, ngtcp2's server with
each of its own, quic-go with its own. Needs root, iperf3, ngtcp2's example client and server (Debian:
ngtcp2-client, ngtcp2-server), openssl and Go. A program takes about six minutes with `--at-once 2`, nine to
twelve one run at a time, and longer where runs have to be repeated because they cannot be trusted.

What is in the folder is not run again, so that the work can be split; what was interrupted is. Each result
says with which Fullpipe and on which machine it was measured (machine.json). Results of an older version of
this script do not: `--made-here` says that it was with this Fullpipe and on this machine.
"""

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fullpipe._native as _native
from fullpipe import evidence, files
from fullpipe.conformance.case import Case, Criterion
from fullpipe.conformance.conformance_report import ConformanceReport
from fullpipe.conformance.programs import registry
from fullpipe.conformance.programs.run import conform_program
from fullpipe.conformance.results import (
    FAIL,
    NOT_APPLICABLE,
    NOT_JUDGED,
    PASS,
)
from fullpipe.runs import machine
from fullpipe.runs.worlds import registry as worlds

FILE = Path(__file__).resolve().parent.parent / "results" / "conformance.jsonl"
WORLD = "kernel"
QUIC_GO = Path(__file__).resolve().parent / "programs" / "quic-go"
# Longer than the longest case.
SECONDS = 40
# At 20 Mbit/s it lasts for 80 s.
BYTES = 200_000_000


@dataclass(frozen=True)
class Program:
    """A program, its commands, and what its congestion control is like."""

    name: str
    says: str
    client: str
    server: str
    sender: str
    like: str
    version: Sequence[str]


def programs(folder: Path) -> list[Program]:
    """The programs; `folder` has what some of them need."""
    made = [
        Program(
            f"iperf3-{name}",
            f"iperf3 over Linux's {name}",
            f"iperf3 -c {{server}} -p {{port}} -t {SECONDS} -C {name}",
            "iperf3 -s -1 -p {port}",
            "client",
            like,
            ("iperf3", "--version"),
        )
        for name, like in (("cubic", "cubic"), ("bbr", "bbr3"))
    ]
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    made += [
        Program(
            f"ngtcp2-{name}",
            f"ngtcp2's server with {name}",
            f"gtlsclient -q --exit-on-all-streams-close {{server}} {{port}} https://{{server}}/{BYTES}",
            f"gtlsserver -q --max-dyn-length=1G --cc={name} '*' {{port}} {key} {certificate}",
            "server",
            like,
            ("dpkg-query", "-W", "-f", "ngtcp2 ${Version}", "ngtcp2-server"),
        )
        for name, like in (("cubic", "cubic"), ("bbr", "bbr3"), ("bbr2", "bbr3"))
    ]
    binary = folder / "bin" / "quic-go"
    made.append(
        Program(
            "quic-go",
            "quic-go, whose controller is Reno's",
            f"{binary} send {{server}}:{{port}} {SECONDS}",
            f"{binary} receive :{{port}}",
            "client",
            "any",
            ("go", "version", "-m", str(binary)),
        )
    )
    return made


def main() -> None:
    """Runs what is missing, prints the table, and records what it is made of."""
    data = options().parse_args()
    if data.record:
        evidence.read(FILE)  # A file that cannot be used is an error now.
    folder: Path = data.out.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    every = programs(folder)
    if unknown := set(data.only) - {one.name for one in every}:
        sys.exit(
            f"--only {', '.join(sorted(unknown))}: no such program; {', '.join(one.name for one in every)}"
        )
    # First, because a run takes minutes.
    results = {one.name: read(folder / one.name) for one in every if is_complete(folder / one.name)}
    for one in every:
        if one.name in results or (data.only and one.name not in data.only):
            continue
        prepare(one, folder)
        found = measure(one, folder / one.name, data.repetitions, data.at_once)
        print(f"{one.name}: {found.summary}", flush=True)
        results[one.name] = read(folder / one.name)
    made = [
        line
        for one in every
        if one.name in results
        for line in lines(one, results[one.name], folder, made_here=data.made_here)
    ]
    print(table(made))
    if data.record:
        evidence.replace(FILE, made, size=None if data.replace_larger else size)


def size(line: Mapping[str, Any]) -> tuple[int, ...]:
    """How often a case was played."""
    return (max((len(one["values"]) for one in line.get("criteria", ())), default=0),)


def options() -> argparse.ArgumentParser:
    """What can be given."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="only this program")
    parser.add_argument(
        "--out", type=Path, default=Path("out/programs-conform"), help="where results are kept"
    )
    parser.add_argument("--repetitions", type=int, default=3, help="runs of each path")
    parser.add_argument("--at-once", type=int, default=None, help="runs at the same time")
    parser.add_argument(
        "--made-here",
        action="store_true",
        help="results that do not say where they were measured are of this Fullpipe on this machine",
    )
    parser.add_argument("--record", action="store_true", help="put the results into results/")
    parser.add_argument(
        evidence.LARGER, action="store_true", help="let a smaller run replace a larger one of the same code"
    )
    return parser


def prepare(program: Program, folder: Path) -> None:
    """Makes what a program needs: a certificate, or its binary."""
    # What was interrupted has another name.
    certificate, binary = folder / "certificate.pem", folder / "bin" / "quic-go"
    if program.name.startswith("ngtcp2") and not certificate.is_file():
        part = certificate.with_suffix(".part")
        names = ("-keyout", str(folder / "key.pem"), "-out", str(part))
        subprocess.run(
            [
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-days",
                "30",
                "-subj",
                "/CN=x",
                *names,
            ],
            check=True,
            capture_output=True,
        )
        part.replace(certificate)
    if program.name == "quic-go" and not binary.is_file():
        part = binary.with_suffix(".part")
        subprocess.run(["go", "build", "-o", str(part), "."], cwd=QUIC_GO, check=True)
        part.replace(binary)


@dataclass(frozen=True)
class Kept:
    """A result in its folder."""

    # The cases of today by their names, as in conformance.json.
    cases: Mapping[str, Mapping[str, Any]]
    # The load average of a core before the first run.
    load_a_core: float | None
    version: str
    # With which Fullpipe and on which machine it was measured; None where nobody wrote it down.
    machine: str | None


# Written last: a folder without it was interrupted.
LAST = "version.txt"
MACHINE = "machine.json"


def is_complete(folder: Path) -> bool:
    """Whether a folder has a result; one that was interrupted has none."""
    last = folder / LAST
    return last.is_file() and last.stat().st_size > 0 and (folder / "conformance.json").is_file()


def measure(program: Program, folder: Path, repetitions: int, at_once: int | None) -> ConformanceReport:
    """Judges a program, and keeps the result in a folder."""
    files.make_folder(folder)
    (folder / LAST).unlink(missing_ok=True)
    found = conform_program(
        program.client,
        program.server,
        sender=program.sender,
        like=program.like,
        repetitions=repetitions,
        at_once=at_once,
    )
    files.write(folder, MACHINE, json.dumps({"measured_with": here()}).encode())
    found.write(folder)
    files.write(folder, LAST, version(program).encode())
    return found


def read(folder: Path) -> Kept:
    """The result in a folder. Ends with a sentence if it cannot be used today."""
    again = f"remove {folder} to measure the program again"
    try:
        reported = json.loads((folder / "conformance.json").read_text(encoding="utf-8"))
        cases = {case["name"]: case for case in reported["cases"]}
        load = reported.get("program", {}).get("load_a_core")
        text = (folder / LAST).read_text(encoding="utf-8").strip()
        noted = folder / MACHINE
        measured = str(json.loads(noted.read_bytes())["measured_with"]) if noted.is_file() else None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        sys.exit(f"{folder}: what is kept there cannot be read ({error!r}); {again}")
    today = [case.name for case in registry.every()]
    if missing := [name for name in today if name not in cases]:
        sys.exit(f"{folder}: the kept result has no case {', '.join(missing)}; {again}")
    return Kept({name: cases[name] for name in today}, load, text, measured)


def here() -> str:
    """This Fullpipe and this machine, in a few words."""
    where = f"Linux {os.uname().release}, {machine.cores()} cores, {platform.machine()}"
    return f"Fullpipe {_native.version()} on {where}"


def version(program: Program) -> str:
    """The program's version, in a few words."""
    if shutil.which(program.version[0]) is None:
        return "unknown"
    data = subprocess.run(program.version, capture_output=True, text=True, check=False).stdout
    if program.name == "quic-go":
        found = re.search(r"quic-go/quic-go\s+(v\S+)", data)
        compiler = re.search(r"go1\S+", data)
        return f"quic-go {found[1] if found else 'unknown'}, {compiler[0] if compiler else 'Go'}"
    if program.name.startswith("iperf3"):
        return f"{' '.join(data.split()[:2])}, Linux {os.uname().release}"
    return data.strip() or "unknown"


MARKS = {PASS: "pass", FAIL: "**fail**", NOT_APPLICABLE: "–", NOT_JUDGED: "not judged"}


def lines(program: Program, kept: Kept, folder: Path, *, made_here: bool = False) -> list[evidence.Line]:
    """The evidence of a program: a line about it, and one for each case.

    `made_here`: a result that does not say where it was measured is of this machine.
    """
    # What is in the folder may be of another day, with another Fullpipe.
    made = evidence.made(
        "python bench/programs_conform.py --record", {WORLD: worlds.named(WORLD).build()}, []
    )
    about = {
        "says": program.says,
        "version": kept.version,
        "like": program.like,
        "sender": program.sender,
        "client": program.client.replace(f"{folder}/", ""),
        "server": program.server.replace(f"{folder}/", ""),
        "load_a_core": kept.load_a_core,
        "machine": kept.machine or (here() if made_here else None),
    }
    if about["machine"] != here():
        made |= {"at": None, "fingerprint": {}}

    def key(case: str | None) -> dict[str, str | None]:
        return {"case": case, "subject": program.name, "world": WORLD}

    found: list[evidence.Line] = [{"key": key(None), "made": made, "program": about}]
    for name, case in kept.cases.items():
        verdict = case["verdict"]
        found.append(
            {
                "key": key(name),
                "made": made,
                "outcome": verdict if verdict in (NOT_APPLICABLE, NOT_JUDGED) else "judged",
                "reason": case["reason"],
                "criteria": [
                    {
                        **{part: one[part] for part in ("says", "unit", "low", "high", "values")},
                        "value": one["measured"],
                    }
                    for one in case["criteria"]
                ],
            }
        )
    return found


def table(made: Sequence[evidence.Line], older: str = "", *, every: bool = False) -> str:
    """The programs, who passes what, and what failed and why, as Markdown.

    `every` also lists the commands, and what each repetition of a failed case measured.
    """
    mine = [one for one in made if one["key"]["world"] == WORLD]
    shown = {one["key"]["subject"]: one["program"] for one in mine if one["key"]["case"] is None}
    known = [one.name for one in programs(Path())]
    names = [one for one in known if one in shown]
    cases = {(one["key"]["subject"], one["key"]["case"]): one for one in mine}
    text = [*measured_with({name: shown[name]["machine"] for name in names}), ""]
    text += [older, ""] if older else []
    heads = ["program", "version", "judged as", "passes", "load average a core", "sender"]
    heads += ["client", "server"] if every else []
    text += [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name in names:
        about = shown[name]
        marks = [verdict(cases[name, case.name]) for case in registry.every() if (name, case.name) in cases]
        applicable = len(marks) - marks.count(NOT_APPLICABLE)
        load = "unknown" if about["load_a_core"] is None else f"{about['load_a_core']:g}"
        text.append(
            f"| {about['says']} | {about['version']} | {about['like']} | "
            f"{marks.count(PASS)} of {applicable} | {load} | {about['sender']} |"
            + (f" `{about['client']}` | `{about['server']}` |" if every else "")
        )
    text += ["", f"| case | criterion | {' | '.join(names)} |", f"|---|---|{'---|' * len(names)}"]
    for case in registry.every():
        found = [cases.get((name, case.name)) for name in names]
        if not any(found):
            continue
        main = next((one["criteria"][0] for one in found if one is not None and one["criteria"]), None)
        named = f"{main['says']}: {bounds(main)}" if main is not None else ""
        cells = " | ".join("not played" if one is None else cell(one, main) for one in found)
        text.append(f"| `{case.name.removeprefix('outside.')}` | {named} | {cells} |")
    ordered = [
        (name, case, cases[name, case.name])
        for name in names
        for case in registry.every()
        if (name, case.name) in cases
    ]
    text += ["", *failures(ordered, every)]
    return "\n".join([*text, ""])


def verdict(line: evidence.Line) -> str:
    """It follows from the measured values."""
    if line["outcome"] != "judged":
        return str(line["outcome"])
    return PASS if all(map(met, line["criteria"])) else FAIL


def met(criterion: Mapping[str, Any]) -> bool:
    """Whether the value is in the range."""
    return Criterion("", criterion["says"], criterion["low"], criterion["high"]).met(criterion["value"])


def measured_with(machines: Mapping[str, str | None]) -> list[str]:
    """With what programs were measured: a sentence, or a line for each machine or version."""
    by_machine: dict[str | None, list[str]] = {}
    for name, machine_of in machines.items():
        by_machine.setdefault(machine_of, []).append(name)
    data = {
        (f"Measured with {reported}" if reported is not None else "With what and where was not noted"): names
        for reported, names in by_machine.items()
    }
    if len(data) == 1:
        return [f"{next(iter(data))}."]
    return [f"* {text}: {', '.join(names)}." for text, names in data.items()]


def cell(line: evidence.Line, main: Mapping[str, Any] | None) -> str:
    """A verdict, if it is no pass, and the value that decides it; its criterion, if that is another one."""
    mark = MARKS[verdict(line)]
    reported = next(iter([*(one for one in line["criteria"] if not met(one)), *line["criteria"]]), None)
    if reported is None:
        return mark
    other = f" ({reported['says']})" if main is not None and reported["says"] != main["says"] else ""
    shown = f"{value(reported)}{other}"
    return shown if verdict(line) == PASS else f"{mark}, {shown}"


def value(reported: Mapping[str, Any]) -> str:
    """A measured value with its unit."""
    return "never" if reported["value"] is None else f"{reported['value']:.3g} {reported['unit']}".strip()


def failures(played: Sequence[tuple[str, Case, evidence.Line]], every: bool) -> list[str]:
    """A line for each case without a verdict and, for `every` one, each criterion that is not met."""
    text = []
    for name, case, line in played:
        if line["outcome"] == NOT_JUDGED:
            text.append(f"* {name}, `{case.name}`: not judged: {line['reason']}.")
        for reported in line["criteria"]:
            if every and not met(reported):
                reached = [f"{of:.3g}" if of is not None else "never" for of in reported["values"]]
                text.append(
                    f"* {name}, `{case.name}`: {reported['says']}: {value(reported)}, of the repetitions "
                    f"{', '.join(reached)} (expected {bounds(reported)})."
                )
    return text or (["All applicable cases pass."] if every else [])


def bounds(reported: Mapping[str, Any]) -> str:
    """A criterion's range."""
    unit = f" {reported['unit']}" if reported["unit"] else ""
    if reported["low"] is not None and reported["high"] is not None:
        return f"{reported['low']:g} to {reported['high']:g}{unit}"
    return (
        f"at least {reported['low']:g}{unit}"
        if reported["low"] is not None
        else f"at most {reported['high']:g}{unit}"
    )


if __name__ == "__main__":
    main()
