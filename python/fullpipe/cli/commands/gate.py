"""`fullpipe gate`."""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fullpipe.cli.options import (
    MISTAKE,
    Stacks,
    check_file,
    complete_controllers,
    console,
    folder_for,
    path,
    say,
    use_stacks,
    watching,
)
from fullpipe.cli.other_results import GATE, refuse_others
from fullpipe.errors import mistake, unusable
from fullpipe.text import counted, shown

if TYPE_CHECKING:
    from fullpipe.gate.cases import Case
    from fullpipe.gate.checking import Answer
    from fullpipe.gate.options import Options

app = typer.Typer(
    no_args_is_help=True, help="Compare a controller's results with a baseline, in continuous integration."
)

FILE = Path("gate.toml")
BASELINE = Path("gate-baseline.jsonl")
FORMATS = ("text", "markdown", "junit", "json", "github")
# Where a workflow of GitHub takes a summary in Markdown.
_SUMMARY = "GITHUB_STEP_SUMMARY"

GateFile = Annotated[
    Path | None,
    typer.Argument(metavar="GATE.toml", help="The gate file.", show_default="gate.toml", parser=path),
]
Baseline = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The baseline.", show_default="gate-baseline.jsonl", parser=path),
]
Only = Annotated[
    str | None,
    typer.Option(
        metavar="PATTERN", help="Only cases with such a name, e.g. 'deep-*'.", show_default="all cases"
    ),
]
Subject = Annotated[
    str | None,
    typer.Option(
        metavar="CC",
        help="Controller for the cases that name no controller, instead of the gate file's `subject`.",
        show_default="the file's",
        autocompletion=complete_controllers,
    ),
]
Cache = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Folder of stored runs. A run is used again only if the content of its scenario, the "
        "controller's code or binary, and Fullpipe are unchanged.",
        show_default="~/.cache/fullpipe/gate",
        parser=path,
    ),
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Run every case again, and store no run.")]
Jobs = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="How many runs at the same time.", show_default="one on each core"),
]
Code = Annotated[
    bool, typer.Option("--code", help="Let the gate file run the Python files of its controllers.")
]
Programs = Annotated[
    bool,
    typer.Option(
        "--allow-programs", help="Let the gate file run commands: of builds, and of programs in scenarios."
    ),
]
Format = Annotated[
    str,
    typer.Option(
        "--format",
        help=f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}.",
        autocompletion=lambda: list(FORMATS),
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Folder for the answer in all formats, and reports with figures of what changed.",
        show_default="none",
        parser=path,
    ),
]


@app.command()
def init(
    stack: Annotated[
        str | None,
        typer.Option(
            metavar="STACK",
            help="Test the controllers of this QUIC stack, e.g. noq; or NAME=COMMAND, with the command of "
            "its adapter (docs/how-to/stacks.md).",
            show_default="none: controllers of Fullpipe, in the simulator",
        ),
    ] = None,
    controllers: Annotated[
        str | None,
        typer.Option(
            metavar="CC,CC",
            help="Controllers to test, e.g. bbr3,cubic.",
            show_default="cubic; with --stack, all of the stack's",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The file to write.", show_default="gate.toml", parser=path),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write a gate file with about 20 cases for each controller.

    Each case runs with three seeds. Any difference from the recorded baseline is a change, unless you give
    the case a tolerance in the file.
    """
    from fullpipe import files
    from fullpipe.gate import template

    out = out or FILE
    check_file(out)
    if out.exists() and not force:
        raise mistake("out", str(out), "a new file", "give --force to replace it, or name another one")
    names = [one.strip() for one in (controllers or "").split(",") if one.strip()]
    subjects = template.subjects(stack, names)
    files.write_named(out, template.text_of(subjects).encode())
    print(f"Written: {out}, for {', '.join(subjects)}")
    more = f" --stack {shlex.quote(stack)}" if stack is not None and "=" in stack else ""
    print(f"Next: `fullpipe gate record{more}`, and commit both files.")


@app.command()
def record(
    gate: GateFile = None,
    baseline: Baseline = None,
    only: Only = None,
    subject: Subject = None,
    traces: Annotated[
        bool,
        typer.Option(
            "--traces",
            help="Keep the time series of each case's first seed, too, so that `check` shows where "
            "runs first differ.",
        ),
    ] = False,
    cache: Cache = None,
    no_cache: NoCache = False,
    jobs: Jobs = None,
    code: Code = False,
    allow_programs: Programs = False,
    stack: Stacks = None,
) -> None:
    """Write the baseline: the result of each case now.

    The baseline has one line for each case, no time stamps and no names of machines: commit it. Deterministic
    cases run twice with their first seed, and must not differ. If a case cannot run, nothing is written, and
    the exit code is 2. With --only, the lines of other cases stay as they are.
    """
    from fullpipe.gate import checking

    use_stacks(stack)
    baseline = baseline or BASELINE
    check_file(baseline, "baseline")
    cases = _cases(gate, only, subject, code=code, programs=allow_programs)
    with watching() as watch:
        options = _options(cache, jobs, watch.show, stored=not no_cache)
        done = checking.record(cases, baseline, options, only=only, with_traces=traces)
    if done.failed:
        for title, reason in done.failed.items():
            say(f"fullpipe: {shown(title)}: {shown(reason)}")
        say(f"fullpipe: nothing was recorded, because of {counted(len(done.failed), 'case')}")
        raise typer.Exit(MISTAKE)
    print(f"Recorded: {counted(done.cases, 'case')} in {baseline}")
    for one in done.broken:
        for row in one.rows:
            say(f"fullpipe: {one.title} breaks a promise: {row.measure} is {row.after}, {row.promise}")


@app.command()
def check(
    gate: GateFile = None,
    baseline: Baseline = None,
    only: Only = None,
    subject: Subject = None,
    allow_better: Annotated[
        bool,
        typer.Option(
            "--allow-better",
            help="In cases with a tolerance (`within`), accept a result beyond it if it is better.",
        ),
    ] = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="Fail cases in which repetitions in real time differ too much to decide."
        ),
    ] = False,
    form: Format = "text",
    out: Out = None,
    cache: Cache = None,
    no_cache: NoCache = False,
    jobs: Jobs = None,
    code: Code = False,
    allow_programs: Programs = False,
    stack: Stacks = None,
) -> None:
    """Run the cases again and compare them with the baseline.

    Exit code 0: nothing changed, and every result keeps the limits that the gate file may set
    (`at_least`, `at_most` and others). 1: a case changed, for better or worse, or breaks a limit. 2: a
    case could not run, or the baseline cannot be used. A change that is wanted is recorded by `fullpipe
    gate record`.
    """
    from fullpipe.gate import checking

    use_stacks(stack)
    _check_format(form)
    folder = folder_for(out, "gate", wanted=False)
    if folder is not None:
        refuse_others(folder.path, GATE, lambda: "gate")
    cases = _cases(gate, only, subject, code=code, programs=allow_programs)
    with watching() as watch:
        options = _options(cache, jobs, watch.show, stored=not no_cache)
        answer = checking.check(
            cases, baseline or BASELINE, options, only=only, allow_better=allow_better, strict=strict
        )
    _answered(answer, form)
    if folder is not None:
        _write(answer, cases, folder.create())
    raise typer.Exit(answer.code)


@app.command()
def diff(
    before: Annotated[
        Path | None,
        typer.Argument(
            metavar="BEFORE",
            help="The older baseline; with --against, the gate file, by default gate.toml.",
            show_default=False,
            parser=path,
        ),
    ] = None,
    after: Annotated[
        Path | None,
        typer.Argument(metavar="AFTER", help="The newer baseline.", show_default=False, parser=path),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="git:REV",
            help="Instead of two baselines: build this revision and the working tree, run the cases with "
            "both, and compare.",
            show_default="none",
        ),
    ] = None,
    only: Only = None,
    form: Format = "text",
    cache: Cache = None,
    no_cache: NoCache = False,
    jobs: Jobs = None,
    code: Code = False,
    allow_programs: Programs = False,
) -> None:
    """Compare two baselines, or your code with an earlier revision of it.

    `gate diff OLD.jsonl NEW.jsonl` compares two baselines and runs nothing. `gate diff --against git:REV`
    runs the cases of the gate file with revision REV and with your working tree. The commands that build a
    revision are in the file's table `build`, and run only with --allow-programs. A controller in a Python
    file runs with --code only, and each side runs its own version of the file. Exit code 1: they differ.
    """
    from fullpipe.gate import checking
    from fullpipe.gate.options import ignore

    _check_format(form)
    if against is not None:
        if after is not None:
            raise unusable("--against", "takes a gate file, and no second baseline", "leave AFTER out")
        options = _options(cache, jobs, ignore, stored=not no_cache)
        answer = _against(against, before or FILE, only, options, code=code, programs=allow_programs)
    elif before is None or after is None:
        raise typer.BadParameter("name two baselines, or give --against git:REV", param_hint="BEFORE")
    else:
        answer = checking.diff(before, after)
    _answered(answer, form)
    raise typer.Exit(answer.code)


def _against(
    against: str, path: Path, only: str | None, options: "Options", *, code: bool, programs: bool
) -> "Answer":
    """The answer of the code here, compared with a revision of it."""
    from dataclasses import replace

    from fullpipe.gate import checking, document, revisions, run
    from fullpipe.gate.scenarios import Consent

    gate = document.load(path, Consent(code, programs))
    if gate.build is not None and not programs:
        fix = "read it, and give the option --allow-programs"
        raise mistake("build.command", gate.build.command, f"consent to run it: {path} chose it", fix)
    cases: Sequence[Case] = run.chosen(gate, only)
    words = [] if only is None else ["--only", only]
    words += ["--cache", str(options.store.absolute())] if options.store is not None else ["--no-cache"]
    words += [] if options.jobs is None else ["--jobs", str(options.jobs)]
    words += [name for name, given in (("--code", code), ("--allow-programs", programs)) if given]
    with revisions.recorded(against, gate, words) as recorded:
        variables, adapter = revisions.built(gate.build, path.absolute().parent, "the code here")
        os.environ |= variables
        if adapter is not None:
            use_stacks([adapter])
            # The commands that show cases give it, too.
            cases = _cases(path, only, None, code=code, programs=programs)
        with watching() as watch:
            answer = checking.check(cases, recorded.baseline, replace(options, watch=watch.show), only=only)
        return replace(answer, baseline=recorded.title)


def _cases(
    gate: Path | None, only: str | None, subject: str | None, *, code: bool, programs: bool
) -> "Sequence[Case]":
    from fullpipe.gate import document, run
    from fullpipe.gate.scenarios import Consent

    return run.chosen(document.load(gate or FILE, Consent(code, programs), subject), only)


def _write(answer: "Answer", cases: "Sequence[Case]", folder: Path) -> None:
    """Writes the answer and the reports of changed cases, and prints where."""
    import contextlib

    from fullpipe.gate import output

    errors = console(stderr=True)
    with errors.status("Drawing the reports") if errors.is_terminal else contextlib.nullcontext():
        reports = output.write(answer, cases, folder)
    for report in reports:
        say(f"Report: {report}")


def _options(cache: Path | None, jobs: int | None, watch: object, *, stored: bool) -> "Options":
    from fullpipe.gate.options import Options

    root = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folder = cache or path(root) / "fullpipe" / "gate"
    return Options(folder if stored else None, jobs, watch)  # type: ignore[arg-type]


def _check_format(form: str) -> None:
    if form not in FORMATS:
        raise mistake("form", form, f"one of {', '.join(FORMATS)}", "name one of these")


def _answered(answer: "Answer", form: str) -> None:
    """Prints an answer; in a workflow of GitHub, adds the Markdown to the step's summary."""
    from rich.text import Text

    from fullpipe import files
    from fullpipe.gate import formats

    if form == "text":
        screen = console()
        for part in formats.text(answer):
            # A terminal wraps a long line, and a command can still be copied.
            screen.print(part, soft_wrap=isinstance(part, str | Text))
        return
    print(formats.FORMATS[form](answer), end="")
    if form == "github" and (summary := os.environ.get(_SUMMARY)):
        target = Path(summary)
        files.append(target.parent, target.name, formats.markdown(answer).encode(errors="replace"))
