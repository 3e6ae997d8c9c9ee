"""Which programs of others pass the cases that are judged from outside? For docs/programs-conform.md.

    .venv/bin/python bench/programs_conform.py [--only NAME] [--out FOLDER] [--write PAGE]

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
from fullpipe import files
from fullpipe.conformance.conformity import Conformity
from fullpipe.conformance.programs import registry
from fullpipe.conformance.programs.run import conform_program
from fullpipe.conformance.results import (
    FAIL,
    NOT_APPLICABLE,
    NOT_JUDGED,
    PASS,
)
from fullpipe.report.markers import Markers
from fullpipe.runs import machine

MARKERS = Markers("programs")
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
    """Runs what is missing, and prints or writes the table."""
    said = options().parse_args()
    if said.write is not None:
        MARKERS.check(said.write)
    folder: Path = said.out.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    every = programs(folder)
    if unknown := set(said.only) - {one.name for one in every}:
        sys.exit(
            f"--only {', '.join(sorted(unknown))}: no such program; {', '.join(one.name for one in every)}"
        )
    # First, because a run takes minutes.
    results = {one.name: read(folder / one.name) for one in every if is_complete(folder / one.name)}
    for one in every:
        if one.name in results or (said.only and one.name not in said.only):
            continue
        prepare(one, folder)
        found = measure(one, folder / one.name, said.repetitions, said.at_once)
        print(f"{one.name}: {found.summary}", flush=True)
        results[one.name] = read(folder / one.name)
    text = table([one for one in every if one.name in results], results, folder, made_here=said.made_here)
    print(text)
    if said.write is not None:
        MARKERS.put(text, said.write)


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
    parser.add_argument("--write", type=Path, default=None, metavar="PAGE", help="the page with the table")
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

    # The cases of today by their names, as in conformity.json.
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
    return last.is_file() and last.stat().st_size > 0 and (folder / "conformity.json").is_file()


def measure(program: Program, folder: Path, repetitions: int, at_once: int | None) -> Conformity:
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
        told = json.loads((folder / "conformity.json").read_text(encoding="utf-8"))
        cases = {case["name"]: case for case in told["cases"]}
        load = told.get("program", {}).get("load_a_core")
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
    said = subprocess.run(program.version, capture_output=True, text=True, check=False).stdout
    if program.name == "quic-go":
        found = re.search(r"quic-go/quic-go\s+(v\S+)", said)
        compiler = re.search(r"go1\S+", said)
        return f"quic-go {found[1] if found else 'unknown'}, {compiler[0] if compiler else 'Go'}"
    if program.name.startswith("iperf3"):
        return f"{' '.join(said.split()[:2])}, Linux {os.uname().release}"
    return said.strip() or "unknown"


MARKS = {PASS: "pass", FAIL: "**fail**", NOT_APPLICABLE: "–", NOT_JUDGED: "not judged"}


def table(
    shown: Sequence[Program], results: Mapping[str, Kept], folder: Path, *, made_here: bool = False
) -> str:
    """The programs, who passes what, and what failed and why, as Markdown.

    `made_here`: results that do not say where they were measured are of this machine.
    """
    lines = [*measured_with(shown, results, made_here=made_here), ""]
    lines += ["| program | version | judged as | passes | load average a core | sender | client | server |"]
    lines += ["|---|---|---|---|---|---|---|---|"]
    for one in shown:
        kept = results[one.name]
        marks = [case["verdict"] for case in kept.cases.values()]
        applicable = len(marks) - marks.count(NOT_APPLICABLE)
        commands = (f"`{text.replace(f'{folder}/', '')}`" for text in (one.client, one.server))
        lines.append(
            f"| {one.says} | {kept.version} | {one.like} | "
            f"{marks.count(PASS)} of {applicable} | {load(kept)} | {one.sender} | "
            f"{' | '.join(commands)} |"
        )
    names = [one.name for one in shown]
    lines += ["", f"| case | criterion | {' | '.join(names)} |", f"|---|---|{'---|' * len(names)}"]
    for case in registry.every():
        found = [results[name].cases[case.name] for name in names]
        main = next((one["criteria"][0] for one in found if one["criteria"]), None)
        named = f"{main['says']}: {bounds(main)}" if main is not None else ""
        cells = " | ".join(cell(one, main) for one in found)
        lines.append(f"| `{case.name.removeprefix('outside.')}` | {named} | {cells} |")
    lines += ["", *failures(shown, results)]
    return "\n".join([*lines, ""])


def measured_with(shown: Sequence[Program], results: Mapping[str, Kept], *, made_here: bool) -> list[str]:
    """With what the results were measured: a sentence, or a line for each machine or version."""
    by_machine: dict[str | None, list[str]] = {}
    for one in shown:
        machine_of = results[one.name].machine or (here() if made_here else None)
        by_machine.setdefault(machine_of, []).append(one.name)
    said = {
        (f"Measured with {told}" if told is not None else "With what and where was not noted"): names
        for told, names in by_machine.items()
    }
    if len(said) == 1:
        return [f"{next(iter(said))}."]
    return [f"* {text}: {', '.join(names)}." for text, names in said.items()]


def load(result: Kept) -> str:
    """The load average of a core before the first run."""
    return "unknown" if result.load_a_core is None else f"{result.load_a_core:g}"


def cell(case: Mapping[str, Any], main: Mapping[str, Any] | None) -> str:
    """A verdict, and the value of the criterion that decides it, which is named if it is not the main one."""
    mark = MARKS[case["verdict"]]
    told = decisive(case)
    if told is None:
        return mark
    other = f" ({told['says']})" if main is not None and told["says"] != main["says"] else ""
    return f"{mark}, {value(told)}{other}"


def decisive(case: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The first criterion that is not met, or the first."""
    every: list[Mapping[str, Any]] = case["criteria"]
    return next(iter([*(one for one in every if not one["met"]), *every]), None)


def value(told: Mapping[str, Any]) -> str:
    """A measured value with its unit."""
    return "never" if told["measured"] is None else f"{told['measured']:.3g} {told['unit']}".strip()


def failures(shown: Sequence[Program], results: Mapping[str, Kept]) -> list[str]:
    """A line for each criterion that is not met, and for each case without a verdict."""
    lines = []
    for one in shown:
        for case in results[one.name].cases.values():
            if case["verdict"] == NOT_JUDGED:
                lines.append(f"* {one.name}, `{case['name']}`: not judged: {case['reason']}.")
            for told in case["criteria"]:
                if told["met"]:
                    continue
                reached = [f"{of:.3g}" if of is not None else "never" for of in told["values"]]
                lines.append(
                    f"* {one.name}, `{case['name']}`: {told['says']}: {value(told)}, of the repetitions "
                    f"{', '.join(reached)}; wanted {bounds(told)} ({case['source']})."
                )
    return lines or ["All applicable cases pass."]


def bounds(told: Mapping[str, Any]) -> str:
    """A criterion's range."""
    unit = f" {told['unit']}" if told["unit"] else ""
    if told["low"] is not None and told["high"] is not None:
        return f"{told['low']:g} to {told['high']:g}{unit}"
    return f"at least {told['low']:g}{unit}" if told["low"] is not None else f"at most {told['high']:g}{unit}"


if __name__ == "__main__":
    main()
