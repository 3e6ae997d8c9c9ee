"""The claims that the lab's gallery shows, written to `lab/src/views/gallery/claims.json`.

    python lab/claims.py            writes the file: scenarios of the studies, simulated numbers
    python lab/claims.py --check    fails if the file is not what would be written
    python lab/claims.py --kernel queue16.fig5      first measures these in the kernel world, which needs root

Scenarios come from the grids in `fullpipe_studies`, titles and papers from its catalogue. The numbers of the
kernel world are those of results/claims.jsonl, or of these very scenarios, kept in `kernel.json` beside the
result. What a text says is held true by the condition beside it.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import fullpipe
from fullpipe import evidence
from fullpipe.measures.run import Run
from fullpipe.scenario import scenario
from fullpipe_studies import catalogue, document

sys.path.insert(0, str(Path(__file__).parent))

from gallery_texts import ENTRIES, Entry, Number

_FOLDER = Path(__file__).parent / "src/views/gallery"
RESULT, KERNEL = _FOLDER / "claims.json", _FOLDER / "kernel.json"
CLAIMS = Path(__file__).parents[1] / "results/claims.jsonl"
# Samples of a run, at most about; more would not be seen.
_SAMPLES = 2_000
_SEED = 1


def documents(entry: Entry) -> dict[str, dict[str, Any]]:
    """The scenario of each run of an entry, by the run's name, with a series that can be drawn."""
    built = catalogue.built(entry.claim)
    assert built is not None, entry.claim
    found = {}
    for name, factors in entry.runs.items():
        grid = built.claim.grid
        given = {key: values[0] for key, values in grid.factors.items()} | dict(factors)
        document = {"name": f"{entry.id} {name}", **grid.document(**given)}
        seconds = float(document["duration"].removesuffix(" s"))
        kept = document.get("record", {}).get("interval")
        if kept is None or seconds / _seconds(kept) > _SAMPLES:
            kept = f"{max(1, round(seconds / _SAMPLES * 1e3))} ms"
        found[name] = _without_empty({**document, "record": {"interval": kept}})
    return found


def _seconds(text: str) -> float:
    number, unit = text.split()
    return float(number) * {"s": 1.0, "ms": 1e-3}[unit]


def _without_empty(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_empty(one) for key, one in value.items() if one not in ({}, [], {"after": []})}
    return [_without_empty(one) for one in value] if isinstance(value, list) else value


def toml(document: Mapping[str, Any]) -> str:
    """A scenario document as a person would write it."""
    lines = [f"{key} = {_value(value)}" for key, value in document.items() if not _nested(value)]
    for key, value in document.items():
        if isinstance(value, Mapping):
            lines += ["", f"[{key}]", *(f"{name} = {_value(one)}" for name, one in value.items())]
        elif _nested(value):
            for each in value:
                lines += ["", f"[[{key}]]", *(f"{name} = {_value(one)}" for name, one in each.items())]
    return "\n".join(lines) + "\n"


def _nested(value: Any) -> bool:
    return isinstance(value, Mapping) or (isinstance(value, list) and isinstance(value[0], Mapping))


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_value(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def value(number: Number, runs: Mapping[str, Run]) -> float:
    """A number of an entry, as `measure.ts` computes it, too."""
    run = runs[number.run]
    if number.of == "loss_pct":
        return 100 * float(run.summary["flows"][number.flow]["loss_ratio"] or 0.0)
    labels = [flow["label"] for flow in run.summary["flows"]]
    series = run.flow_series()
    end_s = max(series["time_s"])
    since, until = number.since * end_s, number.until * end_s

    def column(flow: int, name: str) -> list[tuple[float, Any]]:
        own = series.filter(series["flow"] == labels[flow])
        rows = zip(own["time_s"], own[name], strict=True)
        return [(at, one) for at, one in rows if since <= at <= until and one is not None]

    def grown(flow: int, name: str) -> float:
        rows = column(flow, name)
        return float(rows[-1][1] - rows[0][1]) if rows else 0.0

    match number.of:
        case "goodput_mbps":
            rows = column(number.flow, "delivered_bytes")
            return 8e-6 * float(rows[-1][1] - rows[0][1]) / (rows[-1][0] - rows[0][0])
        case "share_pct":
            grew = [grown(flow, "delivered_bytes") for flow in range(len(labels))]
            return 100 * grew[number.flow] / sum(grew)
        case "rtt_ms":
            return statistics.median(one for _, one in column(number.flow, "srtt_ms"))
        case "rtt_max_ms":
            return max(float(one) for _, one in column(number.flow, "srtt_ms"))
        case "resent":
            return grown(number.flow, "retransmits")
        case "probe_rtt_pct":
            phases = [one for _, one in column(number.flow, "phase")]
            return 100 * phases.count("probe_rtt") / len(phases)
        case "queue_ms":
            links = run.link_series()
            own = links.filter(links["link"] == run.summary["links"][0]["name"])
            rows = zip(own["time_s"], own["queue_delay_ms"], strict=True)
            return statistics.median(
                float(one) for at, one in rows if since <= at <= until and one is not None
            )
    raise AssertionError(number.of)


def simulated(entry: Entry) -> dict[str, float]:
    """The numbers of an entry in the simulator."""
    runs = {name: _run(document) for name, document in documents(entry).items()}
    return {number.name: value(number, runs) for number in entry.numbers}


def _run(document: dict[str, Any], **options: Any) -> Run:
    return fullpipe.run(scenario.from_document(document), **options).groups[0].runs[0]


def measured(entry: Entry) -> dict[str, float]:
    """The numbers of an entry in the kernel world; empty if a run cannot be trusted."""
    runs = {
        name: _run(document, world="kernel", attempts=2)
        for name, document in documents(entry).items()
        if name in entry.kernel
    }
    if any(run.untrustworthy for run in runs.values()):
        return {}
    return {number.name: value(number, runs) for number in entry.numbers if number.run in runs}


def gallery(kernel: Mapping[str, Any], say: Callable[[str], None] = lambda _line: None) -> dict[str, Any]:
    """All that the page shows."""
    shown = []
    for entry in ENTRIES:
        built = catalogue.built(entry.claim)
        assert built is not None, entry.claim
        paper = catalogue.study(built.paper).paper
        numbers = simulated(entry)
        say(f"{entry.id}: {', '.join(f'{name} {one:.4g}' for name, one in numbers.items())}")
        if not entry.holds(numbers):
            raise SystemExit(f"{entry.id}: the numbers do not show what the text says: {numbers}")
        there = kernel.get(entry.id, {})
        shown.append(
            {
                "id": entry.id,
                "claim": entry.claim,
                "paper": paper.title,
                "cite": paper.cite,
                "figure": built.claim.source,
                "title": entry.title or built.about.title,
                "says": built.claim.says,
                "runs": [
                    {"name": name, "toml": toml(document)} for name, document in documents(entry).items()
                ],
                "seed": _SEED,
                "draw": entry.draw,
                "numbers": [
                    {
                        "name": number.name,
                        "run": list(entry.runs).index(number.run),
                        "of": number.of,
                        "flow": number.flow,
                        "since": number.since,
                        "until": number.until,
                        "unit": number.unit,
                        "paper": None if number.paper is None else list(number.paper),
                        "paper_says": number.paper_says,
                        "kernel": _rounded(
                            there.get("numbers", {}).get(number.name, _in_evidence(built.id, number))
                        ),
                        "simulated": _rounded(numbers[number.name]),
                    }
                    for number in entry.numbers
                ],
                "kernel": there.get("kernel"),
                "note": entry.note,
                "see": entry.see,
                "why": entry.why,
                "try": entry.attempt,
            }
        )
    return {"claims": shown}


def _rounded(number: float | None) -> float | None:
    """Six digits: a last bit that differs between machines must not change the file."""
    return None if number is None else float(f"{number:.6g}")


def _in_evidence(claim: str, number: Number) -> float | None:
    """What results/claims.jsonl has of it in the kernel world."""
    if not number.check:
        return None
    key = {"claim": claim, "world": "kernel"}
    line = next((line for line in evidence.read(CLAIMS) if line["key"] == key), None)
    value = None if line is None else document.value(line, number.check)
    if value is None:
        raise SystemExit(f"{CLAIMS} has no value of {number.check!r} of {claim} in the kernel world")
    return number.check_to(value)


def _stored() -> dict[str, Any]:
    stored: dict[str, Any] = json.loads(KERNEL.read_text()) if KERNEL.exists() else {}
    return stored


def main(arguments: Sequence[str] | None = None) -> None:
    """Writes the file, or checks it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail if the file is not current")
    parser.add_argument(
        "--kernel", nargs="+", default=(), metavar="ID", help="measure these in the kernel world"
    )
    asked = parser.parse_args(arguments)
    stored = _stored()
    for entry in ENTRIES:
        if entry.id in asked.kernel:
            numbers = {name: _rounded(one) for name, one in measured(entry).items()}
            print(entry.id, numbers or "cannot be trusted", flush=True)
            if numbers:
                release = Path("/proc/sys/kernel/osrelease").read_text().strip().partition("-")[0]
                stored[entry.id] = {"kernel": f"Linux {release}", "numbers": numbers}
                KERNEL.write_text(json.dumps(stored, indent=1) + "\n")
    text = json.dumps(gallery(stored, print), indent=1, ensure_ascii=False) + "\n"
    if asked.check:
        if not RESULT.exists() or RESULT.read_text() != text:
            raise SystemExit(f"{RESULT} is not current; run `python lab/claims.py`")
        return
    RESULT.write_text(text)


if __name__ == "__main__":
    main()
