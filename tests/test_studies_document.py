"""The documents of all verdicts: what they keep of former ones, and that table and gallery agree."""

import re
from pathlib import Path
from typing import Any

import pytest

from fullpipe.report.figures import theme
from fullpipe.text import capitalised
from fullpipe_studies import catalogue, document, gallery
from fullpipe_studies.claim import DECIDED
from fullpipe_studies.document import Change, Line

DOCS = Path(__file__).resolve().parent.parent / "docs"


def row(verdict: str, reason: str = "x", **more: Any) -> dict[str, Any]:
    world = {"verdict": verdict, "reason": reason, "expected_s": None}
    return {"id": "a.b", "title": "T", "worlds": {"sim": world}, "size": "full", "cause": "", **more}


NOT_RUN = row("not run", "")


def again(text: str, *rows: dict[str, Any]) -> str:
    """The document that is written over another one."""
    return document.markdown(rows or [NOT_RUN], document.former(text))


def by_another_rule(text: str) -> str:
    assert DECIDED in text
    return text.replace(DECIDED, "A mean within the limits is enough.")


def test_a_document_explains_its_words() -> None:
    written = document.markdown([row("own expectation met", "a | b\nc")])
    assert "* **Own expectation met**: " in written and "**Reproduced**" not in written
    assert r"| a \| b c |" in written
    assert document.former(written).lines == {
        ("a.b", "sim"): Line("a.b", "T", "sim", "own expectation met", "a | b c")
    }
    short = document.markdown([row("reproduced", size="quick")])
    assert "| reproduced (quick) |" in short and "“quick”" in short and "“quick”" not in written
    for word in ("not run", "not built"):
        assert f"* **{word.capitalize()}**: the claim " in document.markdown([row(word, "")])
    said = document.markdown([row("inconclusive", "two modes: 1 in 2 of 3 runs (expected 3; undecided)")])
    assert "In reasons: “undecided”, the check is neither met nor missed; “two modes”, " in said
    assert document.markdown([row("not built", "")]).endswith("| a.b | T | sim | not built |  |\n")


def test_a_kept_row_is_marked_by_the_rule_that_judged_it() -> None:
    written = document.markdown([row("own expectation met", "a | b")])
    kept = again(written)
    assert r"| a.b | T | sim | own expectation met ‡ | a \| b |" in kept
    assert "\n‡ Kept from" in kept and "†" not in kept
    assert "Of 1 row, 1 is marked ‡. All: 1 own expectation met.\n" in kept
    assert again(kept) == kept
    old = again(by_another_rule(kept))
    assert "| own expectation met † |" in old and "\n† Judged by" in old and "‡" not in old
    assert "Of 1 row, 1 is marked †.\n" in old and "* **Own expectation met**: " in old
    # The document has today's rule now, which did not judge that row.
    assert again(old) == old
    both = again(old, NOT_RUN, {**row("inconclusive"), "id": "a.c"})
    assert "Of 2 rows, 1 is marked †. Those without †: 1 inconclusive.\n" in both
    assert "| inconclusive |" in again(both, NOT_RUN, {**row("inconclusive"), "id": "a.c"})
    assert "†" not in again(old, row("reproduced"))
    # As results are that were judged before the rule changed.
    stored = document.markdown([row("reproduced", earlier_rule=True)])
    assert "| reproduced † |" in stored and again(stored) == stored


def test_a_document_tells_the_last_change_of_each_verdict_however_often_it_is_written() -> None:
    first = document.markdown([row("reproduced")])
    written = again(first, row("inconclusive", changed="The interval\ndecides", on="2026-11-22"))
    assert written.endswith("\n* 2026-11-22: reproduced → inconclusive: `a.b` sim. The interval decides.\n")
    assert "What changed" not in again(first, row("reproduced", "other words"))
    assert "What changed" not in again(first, row("reproduced", size="quick"))
    assert "What changed" not in first
    # A first verdict is no change.
    assert "What changed" not in again(document.markdown([NOT_RUN]), row("reproduced"))
    # It stays if the claim is not run here, and if it is with the same verdict.
    changes = written.partition("## What changed")[2]
    for later in (again(written), again(again(written)), again(written, row("inconclusive", "other"))):
        assert later.endswith(f"## What changed{changes}")
    other = again(written, row("not reproduced", on="never"))
    assert other.endswith("\n* inconclusive → not reproduced: `a.b` sim.\n") and "The interval" not in other
    for word, why in (("own expectation met", "The paper gives no result."), ("not reproduced", "")):
        (change,) = document.former(again(first, row(word))).changes.values()
        assert change == Change("reproduced", word, why)


def test_changes_alike_are_one_line_and_those_of_older_documents_are_read() -> None:
    rows = [row("reproduced"), {**row("reproduced"), "id": "a.c"}]
    written = again(
        document.markdown(rows), *({**one, **row("inconclusive"), "id": one["id"]} for one in rows)
    )
    line = "* reproduced → inconclusive: `a.b` sim, `a.c` sim. Its runs do not decide it.\n"
    assert written.endswith(line)
    older = written.replace(
        line,
        "* `a.b`, sim: reproduced → inconclusive. Its runs do not decide it.\n"
        "* `a.c`, sim: reproduced → inconclusive.\n",
    )
    assert document.former(older).changes == {
        ("a.b", "sim"): Change("reproduced", "inconclusive", "Its runs do not decide it."),
        ("a.c", "sim"): Change("reproduced", "inconclusive", ""),
    }


def test_the_cause_of_a_miss_is_below_the_table() -> None:
    assert document.markdown([row("not reproduced")]).endswith("| a.b | T | sim | not reproduced | x |\n")
    written = document.markdown([row("not reproduced", cause="Why.")])
    assert written.endswith("| x |\n\n## Causes of misses\n\n* `a.b`: Why.\n")
    assert document.former(written).causes == {"a.b": "Why."}
    assert "* `a.b`: Why.\n" in again(again(written))
    assert "Why." not in again(written, row("reproduced"))


def test_a_kept_row_has_the_cause_that_its_claim_knows() -> None:
    known = {**NOT_RUN, "known_cause": "Newer words"}
    missed = document.markdown([row("not reproduced")])
    assert "* `a.b`: Newer words.\n" in again(missed, known)
    assert "* `a.b`: Newer words.\n" in again(document.markdown([row("not reproduced", cause="Why.")]), known)
    # All checks were met, so it has nothing to explain.
    assert "Newer" not in again(document.markdown([row("reproduced")]), known)
    assert "Newer" not in document.markdown([known])


def test_a_long_reason_is_a_list_below_the_table() -> None:
    checks = [
        f"{'check ' * 20}{number} | (expected 2{end})" for number, end in enumerate(("", "; undecided", ""))
    ]
    reason = f"{'; '.join(checks)}."
    written = document.markdown([row("not reproduced", reason)])
    assert "[and 2 more](#ab-sim) |\n" in written and "\n### a.b, sim\n" in written
    assert all(f"\n* {one}" in written for one in checks)
    assert document.former(written).lines["a.b", "sim"].reason == reason
    kept = again(written)
    assert document.former(kept).lines["a.b", "sim"].reason == reason
    assert "more](" not in document.markdown([row("not reproduced", "one; two; three")])


@pytest.mark.parametrize("text", ["", "# Gallery\n\nX"])
def test_a_gallery_may_replace_a_gallery_or_nothing(text: str) -> None:
    assert gallery.former(text) == gallery.Former()
    assert gallery.former(f"# Notes\n{text}") is None


def test_a_gallery_keeps_the_figures_of_claims_that_were_not_run(tmp_path: Path) -> None:
    study = catalogue.study("queue16")
    one = "queue16.fig4"
    lines = [
        Line(one, "T", "sim", "reproduced (quick)", "x", document.KEPT),
        Line(one, "T", "kernel", "not run", ""),
    ]
    told: list[str] = []
    file = tmp_path / "g.md"
    gallery.save(file, lines, [(study, tmp_path)], say=told.append)
    (sentence,) = told
    assert "no figure of queue16.fig4" in sentence and "![" not in file.read_text()
    (tmp_path / "g").mkdir()
    (tmp_path / "g" / "queue16-fig4.png").write_bytes(b"")
    gallery.save(file, lines, [(study, tmp_path)], table="c.md")
    text = file.read_text()
    assert "(g/queue16-fig4.png)" in text and "](c.md)" in text
    assert "\nSimulation: reproduced (quick) ‡. `fullpipe study run queue16.fig4 --quick`\n" in text
    # What is said about a kept figure, and the command of its runs, are kept with it.
    look_at = catalogue.find([one])[0].claim.look_at
    older = text.replace(look_at, "Look.").replace("--quick`", "--quick --seeds 2`")
    gallery.save(file, lines, [(study, tmp_path)], gallery.former(older), "c.md")
    assert file.read_text() == older


def shown(text: str) -> dict[str, str]:
    """The verdicts of a gallery, by claim."""
    return {
        claim: verdicts
        for verdicts, claim in re.findall(r"^(.+)\. `fullpipe study run ([\w.-]+)[^`]*`$", text, re.MULTILINE)
    }


def test_the_documents_of_the_repository_agree() -> None:
    table, figures = ((DOCS / name).read_text() for name in ("claims.md", "gallery.md"))
    verdicts: dict[str, list[str]] = {}
    for claim, world, verdict in re.findall(
        r"^\| (\w+\.\w+) \| .+? \| (\w+) \| ([^|]+) \|", table, re.MULTILINE
    ):
        if verdict not in ("not run", "not built"):
            verdicts.setdefault(claim, []).append(f"{theme.world_title(world)}: {verdict}")
    expected = {claim: capitalised(", ".join(each)) for claim, each in verdicts.items()}
    again = "write both again: fullpipe study claims --write docs/claims.md --gallery docs/gallery.md"
    assert shown(figures) == expected, again
    assert document.former(table).gallery == "gallery.md"
    drawn = set(re.findall(r"\(gallery/(\S+)\)", figures))
    assert drawn == {one.name for one in (DOCS / "gallery").iterdir()}
