"""Every requirement of BBRv3's draft is cited, and the script that says so notices what is not."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "tests" / "citations" / "citations.py"


def loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("citations", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["citations"] = module
    spec.loader.exec_module(module)
    return module


citations = loaded()

# Not the draft's words: a document of its form.
DRAFT = """\
--- abstract
A flow MUST NOT count what is above the middle.
--- middle
# First
## Sums
A flow MUST add. It may rest. It SHOULD NOT
guess.

* An item MAY follow.

Get takes the larger of both,
whatever they are.

It counts from one.

1. The sum has at most seven digits.

~~~~
  Sum | digits
  one | 7
~~~~

~~~~
  Add(one):
    C.sum = C.sum + one   /* the sum */
    if (C.sum == 7)
      C.sum =
        0
    C.count++

  Get()
    return max(C.sum,
               C.count)
~~~~
--- back
# More
It MUST end.
"""
# The paragraphs of DRAFT that are not requirements only, and how they are settled.
PROSE = {
    "It may rest": "explains",
    "Get takes": "as the pseudocode,Get Add",
    "It counts": "differs,2",
    "1. The sum": "cited",
    "Sum |": "differs,1 2",
}
PAGE = """\
1. **1.1**: the figure.
2. **1.0.1, 1.1**: one,
   and the figure.
3. **1.1.1**: another section.
"""
IDS = [
    "1.1#6db1ae",
    "1.1#217520",
    "1.1#c4d486",
    "1.1: Add",
    "1.1: Add.sum",
    "1.1: Add.sum.2",
    "1.1: Add.count",
    "1.1: Get",
    "A#03c81b",
]
CODE = """\
impl Adder {
    // draft 1.1: Add, Add.{sum.2, count}
    fn add(&mut self) {
        self.sum += 1;
    }

    fn get(&self) -> u64 {
        // draft 1.1: Get. A word of prose.
        self.sum
    }
}

#[cfg(test)]
mod tests {
    // draft 1.1: Add, Add.sum.2, Get
    #[test]
    fn adds() {
        let adder = Adder::new("{ \\" // count");
        assert_eq!((adder.sum, adder.count), (1, '{'));
    }
}
"""
OTHERS = """\
[[exception]]
ids = ["1.1#6db1ae", "1.1#217520", "1.1#c4d486", "A#03c81b"]
reason = "They are words only."
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout whose code cites everything."""
    source = tmp_path / "crates" / "cc" / "src" / "adder.rs"
    source.parent.mkdir(parents=True)
    source.write_text(CODE)
    (tmp_path / "draft.md").write_text(DRAFT)
    monkeypatch.setattr(citations, "TABLE", tmp_path / "requirements.csv")
    monkeypatch.setattr(citations, "EXCEPTIONS", tmp_path / "exceptions.toml")
    monkeypatch.setattr(citations, "SETTLEMENTS", tmp_path / "prose.csv")
    monkeypatch.setattr(citations, "NORMATIVE_PROSE", re.compile(r"1\.1"))
    (tmp_path / "exceptions.toml").write_text(OTHERS)
    page = tmp_path / citations.PAGE
    page.parent.mkdir(parents=True)
    page.write_text(PAGE)
    rows = [f"{prose(tmp_path, begin)},{how}{',' * (1 - how.count(','))}\n" for begin, how in PROSE.items()]
    (tmp_path / "prose.csv").write_text("id,settlement,by\n" + "".join(rows))
    cited = prose(tmp_path, "1. The sum")
    test = "    #[test]\n"
    source.write_text(
        CODE.replace(test, f"    // draft {cited}\n{test}")
        + f"\n// draft {cited}\nconst LIMIT: u64 = 9_999_999;\n"
    )
    assert called(monkeypatch, tmp_path, "extract", "--draft", str(tmp_path / "draft.md")) == 0
    return tmp_path


def prose(root: Path, begin: str) -> str:
    """The id of the paragraph of the draft in which this stands."""
    rows = citations.requirements_of(root / "draft.md")
    (found,) = [row.id for row in rows if row.kind == "prose" and begin in " ".join(row.text.split())]
    return str(found)


def resettle(root: Path, begin: str, how: str) -> list[str]:
    """What is wrong if the paragraph has this row instead, or none."""
    one = prose(root, begin)
    path = citations.SETTLEMENTS
    kept = [line for line in path.read_text().splitlines() if not line.startswith(f"{one},")]
    assert len(kept) == len(PROSE)
    path.write_text("\n".join([*kept, *([f"{one},{how}"] if how else [])]) + "\n")
    return [line.replace(one, "ID") for line in complaints(root)]


def called(monkeypatch: pytest.MonkeyPatch, root: Path, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["citations.py", "--root", str(root), *arguments])
    status: int = citations.main()
    return status


def complaints(root: Path) -> list[str]:
    table = citations.read_table(citations.TABLE)
    found: list[str] = citations.complaints(table, citations.read_exceptions(citations.EXCEPTIONS), root)
    return found


def edit(root: Path, old: str, new: str) -> list[str]:
    source = root / "crates" / "cc" / "src" / "adder.rs"
    assert source.read_text().count(old) == 1
    source.write_text(source.read_text().replace(old, new))
    return complaints(root)


def test_every_requirement_has_code_and_test() -> None:
    result = subprocess.run([sys.executable, SCRIPT, "check"], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "all cited or excepted" in result.stdout


def test_every_folder_that_is_searched_exists() -> None:
    assert [folder for folder in citations.SOURCES if not (ROOT / folder).is_dir()] == []


def test_table_contains_only_hashes() -> None:
    for line in citations.TABLE.read_text().splitlines()[1:]:
        name, kind, digits = line.split(",")
        assert citations.parse_id(name) and kind.replace(" ", "").isalpha() and len(digits) == 12


def test_sentences_functions_and_assignments_are_found(checkout: Path) -> None:
    table = citations.read_table(citations.TABLE)
    assert [one for one in table if table[one].is_required] == IDS
    rows = [one for one in table if table[one].kind == "prose"]
    assert rows == [prose(checkout, begin) for begin in PROSE]
    assert [one for one in table if table[one].kind == "section"] == ["1.1", "A"]
    kinds = [table[one].kind for one in IDS]
    assert kinds == [
        "must",
        "should not",
        "may",
        *["function", "assign", "assign", "assign", "function"],
        "must",
    ]


def test_a_cited_requirement_is_no_complaint(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert complaints(checkout) == []
    assert called(monkeypatch, checkout, "check") == 0
    assert called(monkeypatch, checkout, "check", "--draft", str(checkout / "draft.md")) == 0


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (", Add.{sum.2, count}", ", Add.sum.2", "1.1: Add.count: no implementation cites it"),
        ("self.sum += 1", "self.total += 1", "1.1: Add.sum: no implementation cites it"),
        ("// draft 1.1: Get. A", "// Get. A", "1.1: Get: no implementation cites it"),
        (", Add.sum.2, Get", ", Get", "1.1: Add.sum.2: no test cites it"),
        # Of a test only assertions count, and neither comments nor strings.
        ("(adder.sum, adder.count), (1", "adder.sum, (1", "1.1: Add.count: no test cites it"),
        # Citations of what the draft does not have.
        ("1.1: Get. A", "1.1: GetAll. A", "crates/cc/src/adder.rs:8: cites 1.1: GetAll,"),
        ("Add.{sum.2, count}", "Add.{sum.3, count}", "crates/cc/src/adder.rs:2: cites 1.1: Add.sum.3,"),
        ("1.1: Get. A", "1.2: Get. A", "crates/cc/src/adder.rs:8: cites 1.2: Get,"),
        ("// draft 1.1: Get. A", "// draft 9: a", "crates/cc/src/adder.rs:8: cites 9,"),
        ("// draft 1.1: Get. A", "// draft 1.1#abc123: a", "crates/cc/src/adder.rs:8: cites 1.1#abc123,"),
        # Twice.
        ("1.1: Get. A", "1.1: Get, Add.count. A", "1.1: Add.count: cited more than once"),
        ("1.1: Get. A", "1.1: Get, Add. A", "1.1: Add: cited more than once"),
    ],
)
def test_missing_unknown_duplicate_citations_are_errors(
    checkout: Path, old: str, new: str, expected: str
) -> None:
    found = edit(checkout, old, new)
    assert any(line.startswith(expected) for line in found), found


def test_exception_requires_uncited_requirement(checkout: Path) -> None:
    citations.EXCEPTIONS.write_text(
        OTHERS
        + '[[exception]]\nids = ["1.1: Get", "1.1: Set"]\nside = "test"\nreason = "Because it is so."\n'
    )
    found = complaints(checkout)
    assert [line.partition(" is ")[0] for line in found] == [
        "exceptions.toml: 1.1: Get",
        "exceptions.toml: 1.1: Set",
    ]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        # White space and comments change nothing.
        ("= C.sum + one   /* the sum */", "=  C.sum + one", []),
        ("C.sum + one", "C.sum + 2 * one", ["changed: 1.1: Add (", "changed: 1.1: Add.sum ("]),
        ("    C.count++\n", "", ["gone: 1.1: Add.count (", "changed: 1.1: Add ("]),
        ("It MUST end.", "It MUST end soon.", ["new: A#", "gone: A#", "changed: A"]),
        ("It may rest", "It may sleep", ["changed: 1.1"]),
        # Of prose one paragraph, and what it says now.
        ("counts from one", "counts from two", ["new: 1.1#165d2a (It counts from two. ...)", "gone: 1.1#"]),
        ("whatever they are", "if there are two", ["new: 1.1#", "gone: 1.1#"]),
        ("* An item MAY follow.", "* An item MAY follow. Or none.", ["new: 1.1#"]),
        ("one | 7", "one | 8", ["new: 1.1#", "gone: 1.1#"]),
    ],
)
def test_changed_draft_is_compared_with_table(
    checkout: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    old: str,
    new: str,
    expected: list[str],
) -> None:
    draft = checkout / "draft.md"
    assert old in DRAFT
    draft.write_text(DRAFT.replace(old, new))
    capsys.readouterr()
    status = called(monkeypatch, checkout, "check", "--draft", str(draft))
    printed = capsys.readouterr().out
    assert status == bool(expected)
    for begin in expected:
        assert any(line.startswith(begin) for line in printed.splitlines()), printed
    if "C.sum + 2" in new:
        assert "crates/cc/src/adder.rs:2" in printed, "who has to look again"


@pytest.mark.parametrize(
    ("begin", "how", "expected"),
    [
        ("It may rest", "", "ID: prose without a settlement"),
        ("It may rest", "settles,", "prose.csv: ID: 'settles' is no settlement"),
        ("It may rest", "explains,Get", "prose.csv: ID: 'explains' needs nothing after it"),
        ("It counts", "differs,", "prose.csv: ID: 'differs' needs functions or items after it"),
        ("It counts", "differs,2 4", "prose.csv: ID: bbr3.md has no item 4"),
        ("It counts", "differs,3", "prose.csv: ID: item 3 does not name 1.1"),
        ("Get takes", "as the pseudocode,Get Set", "prose.csv: ID: the pseudocode has no Set"),
        ("Get takes", "as the pseudocode,steps", "prose.csv: ID: the pseudocode has no steps"),
        ("Get takes", "cited,", "prose.csv: ID: no implementation cites it"),
    ],
)
def test_unsettled_prose_is_an_error(checkout: Path, begin: str, how: str, expected: str) -> None:
    assert expected in resettle(checkout, begin, how)


def test_settlement_requires_prose_of_draft(checkout: Path) -> None:
    with citations.SETTLEMENTS.open("a") as file:
        file.write("1.1#abcdef,explains,\n1.1: Get,explains,\n")
    assert complaints(checkout) == [
        "prose.csv: 1.1#abcdef: the draft has no such prose",
        "prose.csv: 1.1: Get: the draft has no such prose",
    ]


@pytest.mark.parametrize(
    ("after", "side"), [("    #[test]\n", "test"), ("const LIMIT: u64 = 9_999_999;\n", "implementation")]
)
def test_cited_prose_needs_code_and_test(checkout: Path, after: str, side: str) -> None:
    one = prose(checkout, "1. The sum")
    indent = " " * (len(after) - len(after.lstrip()))
    found = edit(checkout, f"{indent}// draft {one}\n{after}", after)
    assert found == [f"prose.csv: {one}: no {side} cites it"]


@pytest.mark.parametrize("text", ["", "id,settlement\n", "id,settlement,by\n1.1#abcdef,explains\n"])
def test_malformed_settlements_are_an_error(checkout: Path, text: str) -> None:
    citations.SETTLEMENTS.write_text(text)
    with pytest.raises(citations.InputError, match=r"prose\.csv:[12]: expected"):
        complaints(checkout)


def test_draft_is_listed_with_its_words(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(monkeypatch, checkout, "list", "--draft", str(checkout / "draft.md"), "1.1#") == 0
    assert "(It counts from one. ...)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("", "expected the columns id, kind, hash"),
        ("id,kind\n", "expected the columns"),
        ("id,kind,hash\n1.1: Add,function\n", ":2: expected an id, a kind and a hash of 12 digits"),
        ("id,kind,hash\n1.1: Add,function,xyz\n", ":2: expected an id"),
        ("id,kind,hash\n; rm,function,0123456789ab\n", ":2: expected an id"),
        (
            "id,kind,hash\n1.1#abcdef,must,0123456789ab\n",
            ":2: the id 1.1#abcdef does not follow from the hash",
        ),
        ("id,kind,hash\n" + 2 * "1.1: Add,function,0123456789ab\n", ":3: 1.1: Add is there twice"),
    ],
)
def test_malformed_table_error_names_line(
    checkout: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    table: str,
    message: str,
) -> None:
    citations.TABLE.write_text(table)
    assert called(monkeypatch, checkout, "check") == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("exceptions", "message"),
    [
        ("[[exception", "exceptions.toml: "),
        ("exception = [1]", "exception 1: expected a table"),
        ("exception = 1", "expected [[exception]] only"),
        ("[[exceptions]]\nids = []", "expected [[exception]] only"),
        ('[[exception]]\nids = ["1.1: Get"]', "exception 1: a reason is missing"),
        ('[[exception]]\nids = ["1.1: Get"]\nreason = "no"', "exception 1: a reason is missing"),
        ('[[exception]]\nids = []\nreason = "a b c"', "exception 1: expected ids"),
        ('[[exception]]\nids = [1]\nreason = "a b c"', "exception 1: 1 is no id"),
        ('[[exception]]\nids = ["1.1: Get"]\nreason = "a b c"\nside = "x"', "exception 1: side is"),
        ('[[exception]]\nids = ["a", "a"]\nreason = "a b c"', "'a' is no id, or was excepted before"),
    ],
)
def test_malformed_exceptions_are_an_error(
    checkout: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    exceptions: str,
    message: str,
) -> None:
    citations.EXCEPTIONS.write_text(exceptions)
    assert called(monkeypatch, checkout, "check") == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "draft.md: No such file or directory"),
        (b"", "has no line"),
        (b"\xff\xfe", "not a text in UTF-8"),
        (b"--- middle\n# A\nIt MUST be.\n", "no pseudocode found"),
    ],
)
def test_invalid_draft_error_keeps_table(
    checkout: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    content: bytes | None,
    message: str,
) -> None:
    draft = checkout / "draft.md"
    if content is None:
        draft.unlink()
    else:
        draft.write_bytes(content)
    before = citations.TABLE.read_text()
    for command in ("check", "extract"):
        assert called(monkeypatch, checkout, command, "--draft", str(draft)) == 2
        assert message in capsys.readouterr().err
    assert citations.TABLE.read_text() == before


def test_a_missing_table_is_an_error(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    citations.TABLE.unlink()
    assert called(monkeypatch, checkout, "check") == 2
    assert "requirements.csv: No such file or directory" in capsys.readouterr().err
