"""The documents of all verdicts: what they show of earlier evidence, and what becomes evidence."""

import re
from pathlib import Path
from typing import Any

from fullpipe import evidence
from fullpipe_studies import catalogue, document, gallery
from fullpipe_studies.document import Change, Line

DOCS = Path(__file__).resolve().parent.parent / "docs"


def row(verdict: str, reason: str = "x", **more: Any) -> dict[str, Any]:
    world = {"verdict": verdict, "reason": reason, "expected_s": None}
    return {"id": "a.b", "title": "T", "worlds": {"sim": world}, "size": "full", "cause": "", **more}


NOT_RUN = row("not run", "")


def recorded(verdict: str, reason: str = "R.", *, claim: str = "a.b", **more: Any) -> evidence.Line:
    """A line of evidence."""
    made = {"at": None, "command": f"fullpipe study run {claim}", "fullpipe": None}
    return {
        "key": {"claim": claim, "world": "sim"},
        "made": {**made, "fingerprint": {}, "ran_by": []},
        "rule": document.RULE,
        "form": "",
        "verdict": verdict,
        "reason": reason,
        "checks": [],
        "cause": None,
        "change": None,
        "look_at": None,
        **more,
    }


def page(lines: list[evidence.Line], *rows: dict[str, Any]) -> str:
    """The document of these lines and of what was run here."""
    return document.markdown(rows or [NOT_RUN], document.former(lines))


def again(lines: list[evidence.Line], *rows: dict[str, Any]) -> list[evidence.Line]:
    """The lines after something was run."""
    said = {one["id"]: {"at": "2026-11-22T00:00:00Z", "findings": []} for one in rows}
    new = document.recorded(rows, said, document.former(lines))
    keys = [one["key"] for one in new]
    return [*(one for one in lines if one["key"] not in keys), *new]


def test_a_document_explains_its_words() -> None:
    written = document.markdown([row("own expectation met", "a | b\nc")])
    assert "* **Own expectation met**: " in written and "**Reproduced**" not in written
    assert r"| a \| b c |" in written
    short = document.markdown([row("reproduced", size="quick")])
    assert "| reproduced (quick) |" in short and "“quick”" in short and "“quick”" not in written
    for word in ("not run", "not built"):
        assert f"* **{word.capitalize()}**: the claim " in document.markdown([row(word, "")])
    said = document.markdown([row("inconclusive", "two modes: 1 in 2 of 3 runs (expected 3; undecided)")])
    assert "In reasons: “undecided”, the check is neither met nor missed; “two modes”, " in said
    assert document.markdown([row("not built", "")]).endswith("| a.b | T | sim | not built |  |\n")


def test_a_kept_row_is_marked_if_another_rule_judged_it() -> None:
    line = recorded("own expectation met", "a | b")
    assert r"| a.b | T | sim | own expectation met | a \| b |" in page([line])
    old = {**line, "rule": None}
    text = page([old])
    assert "| own expectation met † |" in text and "\n† Judged by" in text
    assert "Of 1 row, 1 is marked †.\n" in text and "* **Own expectation met**: " in text
    other = {**row("inconclusive"), "id": "a.c"}
    both = page([old], NOT_RUN, other)
    assert "Of 2 rows, 1 is marked †. Those without it: 1 inconclusive.\n" in both
    assert "†" not in page([old], row("reproduced"))
    # As results are that were judged before the rule changed.
    (stored,) = again([], row("reproduced", earlier_rule=True))
    assert stored["rule"] is None and "| reproduced † |" in page([stored])
    # A world that the list of claims does not name.
    assert "| a.b | T | quic | reproduced | R. |" in page(
        [recorded("reproduced", key={"claim": "a.b", "world": "quic"})]
    )


def test_the_last_change_of_each_verdict_is_told() -> None:
    first = [recorded("reproduced")]
    changed = row("inconclusive", changed="The interval\ndecides", on="2026-11-22")
    written = again(first, changed)
    line = "\n* 2026-11-22: reproduced → inconclusive: `a.b` sim. The interval decides.\n"
    assert page(written).endswith(line) and page(first, changed).endswith(line)
    for same in (row("reproduced", "other words"), row("reproduced", size="quick")):
        assert "What changed" not in page(again(first, same))
    # A first verdict is no change.
    assert "What changed" not in page(again([], row("reproduced")))
    # It stays if the claim is run with the same verdict.
    assert page(again(written, row("inconclusive", "other"))).endswith(line)
    other = page(again(written, row("not reproduced", on="never")))
    assert other.endswith("\n* inconclusive → not reproduced: `a.b` sim.\n") and "The interval" not in other
    for word, why in (("own expectation met", "The paper gives no result."), ("not reproduced", "")):
        (change,) = document.former(again(first, row(word))).changes.values()
        assert change == Change("reproduced", word, why)
    two = [*first, recorded("reproduced", claim="a.c")]
    rows = [{**row("inconclusive"), "id": one} for one in ("a.b", "a.c")]
    text = page(again(two, *rows), *({**NOT_RUN, "id": one["id"]} for one in rows))
    assert text.endswith("* reproduced → inconclusive: `a.b` sim, `a.c` sim. Its runs do not decide it.\n")


def test_the_cause_of_a_miss_is_below_the_table() -> None:
    assert document.markdown([row("not reproduced")]).endswith("| a.b | T | sim | not reproduced | x |\n")
    missed = row("not reproduced", cause="Why.")
    assert document.markdown([missed]).endswith("| x |\n\n## Causes of misses\n\n* `a.b`: Why.\n")
    written = again([], missed)
    assert "* `a.b`: Why.\n" in page(written)
    assert "Why." not in page(written, row("reproduced"))
    # A kept row has the cause that its claim knows.
    known = {**NOT_RUN, "known_cause": "Newer words"}
    assert "* `a.b`: Newer words.\n" in page([recorded("not reproduced")], known)
    assert "* `a.b`: Newer words.\n" in page(written, known)
    # All checks were met, so it has nothing to explain.
    assert "Newer" not in page([recorded("reproduced")], known)
    assert "Newer" not in document.markdown([known])


def test_a_long_reason_is_a_list_below_the_table() -> None:
    checks = [
        f"{'check ' * 20}{number} | (expected 2{end})" for number, end in enumerate(("", "; undecided", ""))
    ]
    reason = f"{'; '.join(checks)}."
    written = document.markdown([row("not reproduced", reason)])
    assert "[and 2 more](#ab-sim) |\n" in written and "\n### a.b, sim\n" in written
    assert all(f"\n* {one}" in written for one in checks)
    assert page([recorded("not reproduced", reason)]) == written
    assert "more](" not in document.markdown([row("not reproduced", "one; two; three")])


def test_a_gallery_has_the_figures_that_are_beside_it(tmp_path: Path) -> None:
    one = "queue16.fig4"
    lines = [
        Line(one, "T", "sim", "reproduced (quick)", "x", kept=True),
        Line(one, "T", "kernel", "not run", ""),
    ]
    file, studies = tmp_path / "g.md", [catalogue.study("queue16")]
    told: list[str] = []
    text = gallery.markdown(file, lines, studies, document.Former(), "c.md", told.append)
    assert told == [f"{file} has no figure of queue16.fig4"] and "![" not in text
    (tmp_path / "g").mkdir()
    (tmp_path / "g" / "queue16-fig4.png").write_bytes(b"")
    line = recorded("reproduced", claim=one, look_at="Look.")
    text = gallery.markdown(file, lines, studies, document.former([line]), "c.md")
    assert "(g/queue16-fig4.png)" in text and "](c.md)" in text and "\n\nLook.\n\n" in text
    assert "\nSimulation: reproduced (quick). `fullpipe study run queue16.fig4`\n" in text


def test_every_image_is_in_the_gallery() -> None:
    drawn = set(re.findall(r"\(gallery/(\S+)\)", (DOCS / "gallery.md").read_text()))
    assert drawn == {one.name for one in (DOCS / "gallery").iterdir()}
