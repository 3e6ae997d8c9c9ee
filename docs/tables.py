"""Makes the tables in the documentation from the evidence in `results/`: `make docs`.

    python docs/tables.py

Each table lies between two lines of its page, `<!-- name:begin -->` and `<!-- name:end -->`. The script
overwrites the whole table and never reads the old one.
"""

import importlib
import sys
from dataclasses import replace
from pathlib import Path

from fullpipe import evidence, files
from fullpipe.advisor import kernel_lines, nearest_cells
from fullpipe.agreement.grid import lines
from fullpipe.report.grid import tables as grid_tables
from fullpipe.report.grid import write
from fullpipe.runs.worlds import registry
from fullpipe_studies import catalogue, contradictions, controls, costs, document, gallery
from fullpipe_studies.evaluate import recorded
from fullpipe_studies.run import cost_file

ROOT = Path(__file__).resolve().parent.parent
# The scripts of bench know their own tables.
sys.path.insert(0, str(ROOT / "bench"))
router, quic_conform, programs_conform, gate_repeats, speed, drops, stacks, kernel_prove, probe = map(
    importlib.import_module,
    (
        "router",
        "quic_conform",
        "programs_conform",
        "gate_repeats",
        "record",
        "drops",
        "stacks",
        "kernel_prove",
        "probe",
    ),
)

# The pages with tables of grids.
GRIDS = {
    "agreement": "explanation/fidelity.md",
    "queues": "reference/queues.md",
    "quic": "explanation/quic.md",
    "router": "explanation/router.md",
    "bbr3": "how-to/bbr3-on-your-kernel.md",
}

OTHER_PATHS = "[all paths](../reference/grids.md)"

# Those that run with ideal hosts, too: one table shows both.
TWICE = ("agreement", "router")

# Where the cells are that such a page does not show.
OTHERS = "[all cells](../reference/grids.md)"

# A part of the names of cells whose way back is thin; they have a table of their own.
THIN = "ACKs at"

FILES = (
    "advice",
    "agreement",
    "conformance",
    "drops",
    "evaluations",
    "gate",
    "kernel",
    "probe",
    "router",
    "speed",
    "stacks",
)


def tables(results: Path) -> dict[tuple[str, str], str]:
    """Each table by its page and its name there."""
    builds = evidence.builds(results)
    lines_of = {name: evidence.read(results / f"{name}.jsonl") for name in FILES}
    older = evidence.ages_sentence(lines_of["router"], "controller", builds)
    over_quic = {
        suite: quic_conform.of_suite(lines_of["conformance"], suite) for suite in quic_conform.OF_SUITE
    }
    advice = kernel_lines.newest(lines_of["advice"])
    programs = [one for one in lines_of["conformance"] if one["key"]["world"] == programs_conform.WORLD]
    speeds = speed.tables(lines_of["speed"], builds)
    of_drops = drops.tables(lines_of["drops"], evidence.ages_sentence(lines_of["drops"], "cell", builds))
    (short, cases), (loss,) = (
        quic_conform.tables(made, suite, evidence.ages_sentence(made, "subject", builds))
        for suite, made in ((one, quic_conform.linked(found, one)) for one, found in over_quic.items())
    )
    return {
        ("explanation/quic.md", "quic-conform-short"): short,
        ("explanation/quic.md", "quic-conform"): cases,
        ("explanation/quic.md", "quic-conform-loss"): loss,
        ("how-to/stacks.md", "stacks"): stacks.table(
            lines_of["stacks"],
            lines_of["conformance"],
            evidence.ages_sentence(lines_of["stacks"], "controller", builds),
        ),
        ("how-to/programs-conform.md", "programs"): programs_conform.table(
            programs, evidence.ages_sentence(programs, "subject", builds)
        ),
        ("explanation/advisor-kernel.md", "advice"): kernel_lines.shown(
            advice, evidence.ages_sentence(advice, "number", builds)
        ).to_markdown(OTHER_PATHS),
        ("how-to/probe.md", "truth"): probe.table(
            lines_of["probe"], evidence.ages_sentence(lines_of["probe"], "number", builds)
        ),
        **agreement(lines_of["agreement"], builds),
        **{("../bench/README.md", name): text for name, text in speeds.items()},
        ("../bench/README.md", "gate-repeats"): gate_repeats.table(
            lines_of["gate"], evidence.ages_sentence(lines_of["gate"], "controller", builds)
        ),
        ("../README.md", "verdicts"): verdicts(results),
        ("explanation/router.md", "bursts"): router.table(lines_of["router"], older),
        **{
            ("how-to/bbr3-on-your-kernel.md", name): text
            for name, text in kernel_prove.tables(
                lines_of["kernel"], evidence.ages_sentence(lines_of["kernel"], "controller", builds)
            ).items()
        },
        **{("reports/bbr3-rate-drop.md", name): text for name, text in of_drops.items()},
        ("reports/rfc9743.md", "evaluations"): recorded.table(
            lines_of["evaluations"], evidence.ages_sentence(lines_of["evaluations"], "controller", builds)
        ),
    }


def agreement(found: list[evidence.Line], builds: evidence.Builds) -> dict[tuple[str, str], str]:
    """The tables of grids. Of those that run with ideal hosts, too, it is that of Linux hosts."""
    made: dict[tuple[str, str], str] = {}
    wholes = [
        replace(every, cells=[one for one in every.cells if THIN not in one["key"]["cell"]])
        for every in lines.wholes(found)
    ]
    ideal = {one.line["key"]["grid"]: one for one in wholes if one.line["key"]["hosts"] == "ideal"}
    for whole in wholes:
        key = whole.line["key"]
        twice = key["grid"] in TWICE
        if key["grid"] in GRIDS and not (twice and key["hosts"] == "ideal"):
            beside = ideal.get(key["grid"]) if twice else None
            cells = [*whole.cells, *(beside.cells if beside is not None else ())]
            older = evidence.ages_sentence(cells, "cell", builds)
            made[GRIDS[key["grid"]], "agreement"] = write.markdown(whole, older, OTHERS, ideal=beside)
    return made


def advice(results: Path) -> str:
    """All paths on which the advisor was checked, for the site."""
    found = kernel_lines.newest(evidence.read(results / "advice.jsonl"))
    return kernel_lines.shown(
        found, evidence.ages_sentence(found, "number", evidence.builds(results))
    ).to_markdown()


def quic_cases(results: Path) -> str:
    """Every case over QUIC, for the site's page in reference/."""
    made, builds = evidence.read(results / "conformance.jsonl"), evidence.builds(results)
    made = quic_conform.of_suite(made, quic_conform.BBR3)
    text = quic_conform.every_case(made, evidence.ages_sentence(made, "subject", builds))
    return text.replace("](quic/", "](../explanation/quic/")


def programs_cases(results: Path) -> str:
    """What programs did in each case, with every repetition, for the site."""
    made, builds = evidence.read(results / "conformance.jsonl"), evidence.builds(results)
    made = [one for one in made if one["key"]["world"] == programs_conform.WORLD]
    return programs_conform.table(made, evidence.ages_sentence(made, "subject", builds), every=True)


def grids(results: Path) -> str:
    """All cells of all grids, for the site."""
    found, builds = evidence.read(results / "agreement.jsonl"), evidence.builds(results)
    parts = []
    for whole in lines.wholes(found):
        key = whole.line["key"]
        title = f"{key['grid']}: {' and '.join(key['worlds'])}, {key['hosts']} hosts"
        older = evidence.ages_sentence(whole.cells, "cell", builds)
        parts.append(f"## {title}\n\n{write.markdown(whole, older)}")
    return "\n".join(parts)


def thin_ways(results: Path) -> str:
    """The cells with a thin way back, with both models of hosts beside the kernel, for the site."""
    found, builds = evidence.read(results / "agreement.jsonl"), evidence.builds(results)
    cells = [one for one in found if THIN in (one["key"]["cell"] or "")]
    cells.sort(key=lambda one: int(one["number"]))
    rows = {(one["key"]["cell"], one["key"]["hosts"]): lines.row(one) for one in cells}
    heads = ["goodput", "mean RTT", "retransmissions"]
    text = [
        *([ages, ""] if (ages := evidence.ages_sentence(cells, "cell", builds)) else []),
        f"| cell | {' | '.join(f'{head}, ideal | linux | kernel' for head in heads)} | ideal | linux |",
        "|" + "---|" * 12,
    ]
    for name in dict.fromkeys(one["key"]["cell"] for one in cells):
        ideal, linux = rows[name, "ideal"], rows[name, "linux"]
        values = [
            shown
            for measure in ("goodput_bps", "rtt_mean_ms", "retransmits")
            for shown in (
                grid_tables.mean(ideal.values[measure]),
                grid_tables.mean(linux.values[measure]),
                grid_tables.ranged(linux.values[measure]),
            )
        ]
        text.append(f"| {' | '.join([name, *values, ideal.verdict, linux.verdict])} |")
    return "\n".join(text) + "\n"


_OURS = "own expectation "


def verdicts(results: Path) -> str:
    """How many claims have which verdict."""
    rows = document.rows(evidence.read(results / "claims.jsonl"))
    imported = sum(one.line is not None and one.line["imported"] is not None for one in rows)
    ours = [one for one in rows if one.word.startswith(_OURS)]
    return (
        f"{len(rows)} verdicts, each on one question in one world. For {len(rows) - len(ours)} the paper has"
        f" an answer: {document.counts([one for one in rows if one not in ours])}. *In shape*: direction, "
        "ordering or crossover holds, but a number is off or undecided. *Depends on what the paper omits*: a "
        f"set-up that the paper leaves open gives the opposite. The other {len(ours)} verdicts are "
        "on what the paper did not measure. There we wrote down an expectation before the run: "
        f"{document.counts(ours).replace(_OURS, '')}. {imported} of these verdicts were computed by an "
        "earlier version of Fullpipe and not checked with this one; the list of verdicts leaves out our "
        "numbers for them.\n"
    )


def reasons(results: Path) -> str:
    """The long reasons of verdicts, and how verdicts changed, for the site."""
    rows = document.rows(evidence.read(results / "claims.jsonl"))
    return f"{document.details(rows)}\n{controlled(results, every=True)}"


def evaluations(results: Path) -> str:
    """The reports by the criteria of RFC 9743, for the site."""
    return recorded.markdown(evidence.read(results / recorded.FILE))


def controlled(results: Path, *, every: bool) -> str:
    """What claims' checks say of wrong controllers."""
    return controls.markdown(evidence.read(results / controls.FILE), evidence.builds(results), every=every)


def figures(results: Path) -> str:
    """The figures, with what to look at in each, for the site."""
    rows = document.rows(evidence.read(results / "claims.jsonl"))
    return gallery.markdown(ROOT / "docs" / "reference" / "gallery.md", rows, catalogue.papers(), "claims.md")


def claims(results: Path) -> dict[Path, str]:
    """The verdicts on the papers' claims, and their figures."""
    table, figures = ROOT / "docs" / "reference" / "claims.md", ROOT / "docs" / "reference" / "gallery.md"
    lines = evidence.read(results / "claims.jsonl")
    rows = document.rows(lines)
    more = [controlled(results, every=False), contradictions.markdown(lines)]
    return {
        table: document.markdown(rows, evidence.builds(results), figures.name, "reasons.md", more),
        figures: gallery.markdown(figures, rows, catalogue.papers(), table.name, brief=True),
    }


def written(results: Path) -> dict[Path, str]:
    """Every file that is made of evidence, with its text of now."""
    pages: dict[Path, str] = {}
    for (page, name), table in tables(results).items():
        path = (ROOT / "docs" / page).resolve()
        text = pages.get(path) or path.read_text(encoding="utf-8")
        begin, end = f"<!-- {name}:begin -->\n", f"<!-- {name}:end -->\n"
        before, (_, after) = text.partition(begin)[0], text.partition(begin)[2].split(end)
        pages[path] = f"{before}{begin}{table}{end}{after}"
    pages |= claims(results)
    cells = nearest_cells.of(evidence.read(results / "agreement.jsonl"))
    return pages | {
        ROOT / "python" / "fullpipe" / "advisor" / nearest_cells.FILE.name: nearest_cells.text(cells)
    }


def expected() -> dict[Path, str]:
    """What the claims cost, which follows from their scenarios."""
    # The module may be the installed one.
    return {ROOT / "packages" / "studies" / "fullpipe_studies" / costs.FILE.name: cost_file()}


def renew(results: Path) -> None:
    """Notes the code of today of each world that some line is of: tables say which lines are older.

    A world that is not here, as `quic` without its program, keeps what was noted before.
    """
    lines_of = (evidence.read(results / f"{name}.jsonl") for name in (*FILES, "claims", "controls"))
    needed = {world for found in lines_of for line in found for world in line["made"]["fingerprint"]}
    here = sorted(needed - set(registry.optional(there=False)))
    if here:
        today = [{"key": {"world": name}, "build": registry.named(name).build()} for name in here]
        evidence.replace(results / evidence.BUILDS, today)


def main() -> None:
    """Writes what has changed, and says it."""
    renew(ROOT / "results")
    for path, text in (written(ROOT / "results") | expected()).items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            files.write_named(path, text.encode())
            print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
