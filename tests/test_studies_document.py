"""The documents of all verdicts: what they show of evidence, and what becomes evidence."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fullpipe import evidence
from fullpipe_studies import catalogue, document, gallery
from fullpipe_studies.catalogue import Change
from fullpipe_studies.checks import Asked, Rule
from fullpipe_studies.claim import Check, Over, Values, covers, geometric, median, more, own, share, within
from fullpipe_studies.document import Row

DOCS = Path(__file__).resolve().parent.parent / "docs" / "reference"
CLAIM = "queue16.fig5"


def imported(verdict: str, reason: str = "R.", *, claim: str = CLAIM, **more: Any) -> evidence.Line:
    """A line from a table of earlier times."""
    made = {"at": None, "command": f"fullpipe study run {claim}", "fullpipe": None}
    old = {"verdict": verdict, "reason": reason, "form": "", "rule": 2, "values": {}}
    return {
        "key": {"claim": claim, "world": "sim"},
        "made": {**made, "fingerprint": {}, "ran_by": []},
        "size": "full",
        **dict.fromkeys(("seeds", "repetitions", "asked", "missing", "awaits", "waits", "fewer"), None),
        "others": [],
        "checks": None,
        "imported": old | more,
        "look_at": None,
    }


def stored(*checks: Check, claim: str = CLAIM, **parts: Any) -> evidence.Line:
    """A line with values."""
    asked = [
        {**one.asked.data(), "own": one.own, "needs": one.needs, "setup": None}
        for one in checks
        if one.asked is not None
    ]
    line = imported("", claim=claim)
    made = {**line["made"], "at": "2026-11-22T00:00:00Z", "fingerprint": {"sim": "1f"}}
    runs = {"seeds": 3, "repetitions": 3, "asked": 3}
    return {**line, "made": made, **runs, "checks": asked, "imported": None, **parts}


MET = within("speed", [1.0, 1.1, 1.2], paper="one", least=0.5)
MISSED = within("speed", [1.0, 1.1, 1.2], paper="one", least=2, shape=True)


def row(line: evidence.Line) -> Row:
    """Its row."""
    return next(one for one in document.rows([line]) if one.line is not None)


def page(*lines: evidence.Line) -> str:
    return document.markdown(document.rows(lines), {"sim": {"1f"}})


def cells(text: str, claim: str = CLAIM, world: str = "sim") -> list[str]:
    """The cells of a row of the table, after the title."""
    rows = (line[2:-2].split(" | ") for line in text.splitlines() if line.startswith("| ["))
    return next(one[3:] for one in rows if one[0].startswith(f"[{claim}]") and one[2] == world)


# What follows from a line.

CHECKS = [
    MET,
    MISSED,
    within("few", [1.0, 2.0], paper="", least=1),
    within("one", 0.25, paper="", least=0.2, over=Over.NOTHING),
    within("median", [1.0, 2.0, 4.0, 7.0, 8.0, 9.0], paper="", least=1, middle=median),
    within("ratio", [0.5, 2.0, 3.0], paper="", least=1, middle=geometric),
    within("no ratio", [0.0, 2.0, 3.0], paper="", least=1, middle=geometric),
    within("modes", [1.0, 1.1, 9.0, 9.1, 9.2], paper="", least=4, most=6),
    within("unlike", Values([1.0, 5.0, 2.0, 6.0, 3.0, 7.0], [1, 1, 2, 2, 3, 3]), paper="", least=3),
    within("never", [1.0, 2.0, float("inf")], paper="", most=3),
    within("lacking", [1.0, 2.0, float("nan")], paper="", most=3),
    within("lacking, too", Values([1.0], [1], without=2), paper="", most=3),
    more("order", [2.0, 3.0, 4.0], [1.0, 1.0, 1.0], paper=""),
    more("unpaired", Values([2.0, 3.0, 4.0], [1, 2, 3]), Values([1.0, 1.5], [1, 3]), paper=""),
    more("zeros", [0.0] * 3, [0.0] * 3, paper=""),
    more("to zero", [1.0] * 3, [0.0] * 3, paper=""),
    more("nothing", [], [1.0], paper=""),
    share("share", [True] * 40, paper="", least=0.5),
    share("few runs", [True] * 3, paper="", least=0.9),
    covers("range", {"a": 1.0, "b": 2.0}, 1.5, paper=""),
    *own(MISSED),
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda one: one.what)
def test_check_is_recomputed_from_stored_data(check: Check) -> None:
    line = json.loads(json.dumps(stored(check), allow_nan=False))
    (again,) = document.finding(line).checks
    assert replace(again, asked=None) == replace(check, asked=None)


def test_another_value_gives_another_verdict() -> None:
    line = stored(MET)
    assert row(line).word == "reproduced" and row(line).reason == "The only check passes."
    line["checks"][0]["values"] = [0.1, 0.11, 0.12]
    assert row(line).word == "not reproduced" and row(line).reason.startswith("speed: 0.11 ± 0.025 (expected")


def test_changed_rule_applies_to_stored_lines() -> None:
    assert MET.asked == Asked.read(MET.asked.data()) if MET.asked else False
    strict = Rule(fewest=4)
    assert document.finding(stored(MET)).verdict.value == "reproduced"
    assert document.finding(stored(MET), strict).verdict.value == "inconclusive"
    (one,) = (one for one in document.rows([stored(MET)], strict) if one.line is not None)
    assert one.word == "inconclusive"


def test_missing_runs_make_verdict_incomplete() -> None:
    assert row(stored(MET, missing="1 of 2 cells")).word == "incomplete"
    assert row(stored(MET, awaits="bbr3", others=["cubic"])).reason == (
        "bbr3 was not run yet. The only check of cubic passes."
    )
    waits = row(stored(waits="x is missing"))
    assert (waits.word, waits.reason) == ("waiting", "x is missing")
    assert "Only 2 of 3 seeds of each scenario" in row(stored(MET, fewer="2 of 3 seeds")).reason
    elsewhere = stored(MET)
    elsewhere["checks"].append({**stored(MISSED)["checks"][0], "setup": "another"})
    assert row(elsewhere).word == "reproduced"
    # One of this claim's that its paper leaves open.
    elsewhere["key"]["claim"] = "queue16.fig7"
    elsewhere["checks"][-1]["setup"] = "losses one at a time"
    (opposite,) = (one for one in document.rows([elsewhere]) if one.line is not None)
    assert opposite.word == "depends on what the paper omits"
    assert (
        opposite.reason == "With “losses one at a time”, it is not reproduced; here: The only check passes."
    )


def test_a_world_that_cannot_carry_a_claim_says_why() -> None:
    (row,) = (one for one in document.rows([]) if (one.claim, one.world) == ("ccwg25.short", "kernel"))
    assert row.word == "cannot run" and "3 Gbit/s" in row.reason and not row.missed
    assert "* **Cannot run**: this world" in document.markdown([row])


# What a page shows.


def test_a_document_explains_its_words() -> None:
    written = page(imported("own expectation met", "a | b\nc"))
    assert "* **Own expectation met**: " in written and "**Reproduced**" not in written
    assert cells(written) == ["own expectation met", r"a \| b c", "imported"]
    short = page(stored(MET, size="quick"))
    assert cells(short)[0] == "reproduced (quick)" and "“quick”" in short and "“quick”" not in written
    assert cells(page(stored(MET, asked=30)))[0] == "reproduced (3 of 30 seeds)"
    assert "* **Not run**: the claim " in written and "**Not built**" not in written
    message = page(imported("inconclusive", "two modes: 1 in 2 of 3 runs (expected 3; undecided)"))
    assert "In reasons: “undecided”, the check is neither met nor missed; “two modes”, " in message
    assert cells(page())[0] == "not run"


def test_row_shows_how_it_was_made() -> None:
    made = f"2026-11-22: `fullpipe study run {CLAIM}`"
    assert cells(page(stored(MET)))[2] == made
    older = stored(MET)
    older["made"]["fingerprint"] = {"sim": "2f"}
    text = page(older, imported("reproduced", claim="queue16.fig6"))
    assert cells(text)[2] == made.replace(":", ", older:", 1)
    assert cells(text, "queue16.fig6")[2] == "imported"
    first = "Imported, from before the code's version was recorded: queue16.fig6."
    assert f"\n{first} Measured with older code than today's: {CLAIM}.\n" in text


def test_row_links_to_its_claim_file() -> None:
    links = re.findall(r"^\| \[(\S+)\]\((\S+)\) ", (DOCS / "claims.md").read_text(), re.MULTILINE)
    assert {claim for claim, _ in links} >= {one.id for study in catalogue.papers() for one in study.claims}
    assert all((DOCS / file).is_file() for _, file in links)


def test_row_by_earlier_rule_is_marked() -> None:
    text = page(imported("own expectation met", rule=1))
    assert cells(text)[0] == "own expectation met by an earlier rule" and "\n“By an earlier rule”: " in text
    assert "By an earlier rule" not in page(imported("own expectation met"))
    # A world that the list of claims does not name.
    other = {**imported("reproduced"), "key": {"claim": CLAIM, "world": "quic"}}
    assert cells(page(other), world="quic")[0] == "reproduced"


def noted(monkeypatch: pytest.MonkeyPatch, **notes: Any) -> None:
    """Changes what is noted about the claim."""
    built = catalogue.built(CLAIM)
    assert built is not None
    claim = replace(built.claim, cause=notes.get("cause", ""))
    other = replace(built, claim=claim, changes=notes.get("changes", {}))
    known = catalogue.built
    monkeypatch.setattr(catalogue, "built", lambda name: other if name == CLAIM else known(name))


def test_last_verdict_change_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    change = Change("reproduced", "inconclusive", "The interval\ndecides", "2026-11-22")
    noted(monkeypatch, changes={"sim": change})
    text = page(imported("inconclusive"))
    assert text.endswith(f"\n* 2026-11-22: reproduced → inconclusive: `{CLAIM}` sim. The interval decides.\n")
    assert "What changed" not in page(imported("reproduced"))
    noted(monkeypatch, changes={"sim": Change("reproduced", "inconclusive")})
    assert page(imported("inconclusive")).endswith(f"\n* reproduced → inconclusive: `{CLAIM}` sim.\n")


def test_noted_changes_match_current_verdicts() -> None:
    shown = document.rows(evidence.read(DOCS.parent.parent / "results" / "claims.jsonl"))
    words = {(one.claim, one.world): one.word for one in shown}
    for study in catalogue.papers():
        for one in study.claims:
            for world, change in one.changes.items():
                assert words[one.id, world] == change.now, f"{one.id}: correct the notes.toml of its paper"


def test_miss_cause_is_below_table(monkeypatch: pytest.MonkeyPatch) -> None:
    noted(monkeypatch)
    assert "Causes of misses" not in page(stored(MISSED))
    noted(monkeypatch, cause="Why")
    assert page(stored(MISSED)).endswith(f"\n## Causes of misses\n\n* `{CLAIM}`: Why.\n")
    assert f"* `{CLAIM}`: Why.\n" in page(imported("not reproduced"))
    # All checks were met, so it has nothing to explain.
    for line in (stored(MET), imported("reproduced")):
        assert "Why." not in page(line)
    assert "Why." not in page()


def test_long_reason_is_listed_below_table() -> None:
    checks = [
        f"{'check ' * 20}{number} | (expected 2{end})" for number, end in enumerate(("", "; undecided", ""))
    ]
    reason = f"{'; '.join(checks)}."
    written = page(imported("not reproduced", reason))
    assert "[and 2 more](#queue16fig5-sim) |" in written and f"\n### {CLAIM}, sim\n" in written
    assert all(f"\n* {one}" in written for one in checks)
    assert "more](" not in page(imported("not reproduced", "one; two; three"))


def test_long_reasons_may_be_separate_document(monkeypatch: pytest.MonkeyPatch) -> None:
    noted(monkeypatch, cause="Why", changes={"sim": Change("reproduced", "not reproduced")})
    parts = [f"{'check ' * 20}{number} (expected 2)" for number in range(3)]
    shown = document.rows([imported("not reproduced", f"{'; '.join(parts)}.")])
    short, rest = document.markdown(shown, rest="rest.md"), document.details(shown)
    assert "; and 2 more |" in short and "Why." not in short and "What changed" not in short
    assert (
        "reproduced → not reproduced" in rest
        and "Why." in rest
        and all(f"\n* {one}" in rest for one in parts)
    )


def test_gallery_shows_available_figures(tmp_path: Path) -> None:
    one = "queue16.fig4"
    rows = document.rows([imported("reproduced", claim=one, form="quick")])
    file, studies = tmp_path / "g.md", [catalogue.study("queue16")]
    reported: list[str] = []
    text = gallery.markdown(file, rows, studies, "c.md", reported.append)
    assert reported == [f"{file} has no figure of queue16.fig4"] and "![" not in text
    (tmp_path / "g").mkdir()
    (tmp_path / "g" / "queue16-fig4.png").write_bytes(b"")
    line = {**imported("reproduced", claim=one), "look_at": "Look."}
    text = gallery.markdown(file, document.rows([line]), studies, "c.md")
    assert "(g/queue16-fig4.png)" in text and "](c.md)" in text and "\n\nLook.\n\n" in text
    assert "\nSimulation: reproduced. `queue16.fig4`\n" in text
    assert "Look." not in gallery.markdown(file, document.rows([line]), studies, "c.md", brief=True)


def test_every_image_is_in_the_gallery() -> None:
    drawn = set(re.findall(r"\(gallery/(\S+)\)", (DOCS / "gallery.md").read_text()))
    assert drawn == {one.name for one in (DOCS / "gallery").iterdir()}
