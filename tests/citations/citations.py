"""Reports requirements of BBRv3's draft that no code or no test cites.

    python tests/citations/citations.py check                 the sources against the table; needs no draft
    python tests/citations/citations.py check --draft FILE    the table against a draft: new, gone, changed
    python tests/citations/citations.py extract --draft FILE  writes the table from a draft
    python tests/citations/citations.py list [WORD...]        each requirement and where it is cited
    python tests/citations/citations.py list --draft FILE     how each of a draft begins

A requirement is a sentence with an RFC 2119 keyword, a function of the pseudocode, or an assignment in one.
The table, requirements.csv, names each and has a hash of its text, white space and comments left out; it has
no text of the draft. It lists sections, too, to know them and to see which changed, and the prose of 5.3 to
5.6, which is normative: each paragraph, item or figure that is neither pseudocode nor requirements only. The
draft is draft-ietf-ccwg-bbr.md of https://github.com/ietf-wg-ccwg/draft-ietf-ccwg-bbr.

Comments cite, in one of three forms:

    // draft 5.3.3.9: StartProbeBW_DOWN                     a function
    // draft 5.3.3.9: StartProbeBW_DOWN.{ack_phase, state}  assignments in it, or one: IsTimeToGoDown.full_bw
    // draft 3.7#0a1b2c: why                                a sentence, by the first digits of its hash

Several may follow each other, with commas. The second assignment of a variable is `ack_phase.2`. In Rust,
a function's citation counts also for the first assignment of each variable whose own name the cited code
contains: the function that follows the comment, or else the rest of the block around it. In a test the name
must stand in an assertion. Any other assignment needs a citation of its own.

What is not implemented or not tested stands in exceptions.toml with the reason.

prose.csv settles each row of prose by one word and what that needs:

    as the pseudocode   functions of the pseudocode that say the same ("steps": those of the section)
    cited               code and a test cite it by its hash
    explains            it demands nothing: a reason, an aim, an introduction
    differs             numbers of the items of docs/explanation/bbr3.md that settle the difference
"""

import argparse
import csv
import hashlib
import io
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).with_name("requirements.csv")
EXCEPTIONS = Path(__file__).with_name("exceptions.toml")
SETTLEMENTS = Path(__file__).with_name("prose.csv")
# The page whose numbered items settle differences of prose and pseudocode.
PAGE = Path("docs/explanation/bbr3.md")
# Where citations are looked for. Folders that are missing count as empty.
SOURCES = (
    "crates/cc/src",
    "crates/sim/src",
    "crates/sim/tests",
    "crates/conformance",
    "python/fullpipe/conformance",
)

TEST_FOLDERS = {"tests", "conformance"}

CODE, TEST = "implementation", "test"
HASH_DIGITS, SHORT_DIGITS = 12, 6
# The kinds of rows that are no requirements: a section, so that it is known and a change of its text is seen,
# and a paragraph of the sections whose prose is normative.
SECTION, PROSE = "section", "prose"
NORMATIVE_PROSE = re.compile(r"5\.[3-6](\..*)?")
AS_PSEUDOCODE, CITED, EXPLAINS, DIFFERS = "as the pseudocode", "cited", "explains", "differs"
KEYWORDS = re.compile(
    r"\b(MUST NOT|MUST|SHALL NOT|SHALL|SHOULD NOT|SHOULD|NOT RECOMMENDED|RECOMMENDED|REQUIRED|OPTIONAL|MAY)\b"
)


class InputError(Exception):
    """A file that cannot be used: which, and why."""


# ---- the draft ----


@dataclass(frozen=True)
class Requirement:
    """One row of the table."""

    section: str
    # Of the pseudocode; "steps" where it names none, empty for a sentence.
    function: str
    # The variable that is assigned, without its owner (BBR, C, ...), ".2" for the second time; or empty.
    target: str
    kind: str
    hash: str
    # As far as a draft was read.
    text: str = field(default="", compare=False)

    @property
    def is_required(self) -> bool:
        return self.kind not in (SECTION, PROSE)

    @property
    def id(self) -> str:
        """As comments cite it."""
        if self.kind == SECTION:
            return self.section
        if not self.function:
            return f"{self.section}#{self.hash[:SHORT_DIGITS]}"
        return f"{self.section}: {self.function}" + (f".{self.target}" if self.target else "")


def hashed(text: str) -> str:
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:HASH_DIGITS]


def without_comments(pseudocode: str) -> str:
    return re.sub(r"/\*.*?\*/", "", pseudocode, flags=re.S)


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not a text in UTF-8") from error


def requirements_of(draft: Path) -> list[Requirement]:
    """All requirements of a draft in kramdown, in its order."""
    lines = read_text(draft).splitlines()
    try:
        lines = lines[lines.index("--- middle") + 1 :]
    except ValueError:
        raise InputError(
            f'{draft}: not the source of an Internet-Draft: it has no line "--- middle"'
        ) from None
    found: list[Requirement] = []
    targets: Counter[tuple[str, str, str]] = Counter()
    texts: dict[str, list[str]] = {}
    for section, is_code, block in blocks(lines):
        texts.setdefault(section, []).extend(block)
        required = list(pseudocode(section, block, targets) if is_code else sentences(section, block))
        found += required
        count = 1 if is_code else len(split_sentences(block))
        if NORMATIVE_PROSE.fullmatch(section) and len(required) < count:
            text = " ".join(block)
            found.append(Requirement(section, "", "", PROSE, hashed(text), text))
    if not any(requirement.kind == "assign" for requirement in found):
        raise InputError(f"{draft}: no pseudocode found")
    return found + [
        Requirement(section, "", "", SECTION, hashed(without_comments(" ".join(text))))
        for section, text in texts.items()
    ]


def blocks(lines: list[str]) -> Iterator[tuple[str, bool, list[str]]]:
    """Paragraphs and blocks of code, each with its section's number."""
    numbers: list[int] = []
    is_appendix = is_code = False
    block: list[str] = []

    def section() -> str:
        first = [chr(ord("A") + numbers[0] - 1) if is_appendix else str(numbers[0])] if numbers else ["0"]
        return ".".join(first + [str(number) for number in numbers[1:]])

    for line in lines:
        heading = None if is_code else re.match(r"(#+) ", line)
        is_fence = line.startswith("~~~")
        is_item = not is_code and re.match(r"\s*(\*|\d+\.) ", line) is not None
        if heading or is_fence or is_item or line == "--- back" or (not is_code and not line.strip()):
            if block:
                yield section(), is_code, block
            block = [line] if is_item else []
        else:
            block.append(line)
        if is_fence:
            is_code = not is_code
        elif line == "--- back":
            is_appendix, numbers = True, []
        elif heading:
            level = len(heading[1])
            numbers = (numbers + [0] * level)[:level]
            numbers[-1] += 1
    if block:
        yield section(), is_code, block


def split_sentences(block: list[str]) -> list[str]:
    return re.split(r"(?<=[.!?])\s+(?=[A-Z(*\"])", " ".join(" ".join(block).split()))


def sentences(section: str, block: list[str]) -> Iterator[Requirement]:
    for sentence in split_sentences(block):
        if keyword := KEYWORDS.search(sentence):
            yield Requirement(section, "", "", keyword[1].lower(), hashed(sentence), sentence)


def pseudocode(
    section: str, block: list[str], targets: Counter[tuple[str, str, str]]
) -> Iterator[Requirement]:
    """The functions of a block and their assignments; `targets` counts those seen so far."""
    lines = [line for line in without_comments("\n".join(block)).splitlines() if line.strip()]
    indents = [len(line) - len(line.lstrip()) for line in lines]
    function, body = "steps", list[str]()
    pending: list[Requirement] = []

    def ended() -> Iterator[Requirement]:
        if function != "steps":
            yield Requirement(section, function, "", "function", hashed(" ".join(body)))
        yield from pending

    statement = ""
    for place, line in enumerate(lines):
        header = re.fullmatch(r"([A-Z]\w*)\([^()]*\):?", line.strip())
        deeper = place + 1 < len(lines) and indents[place + 1] > indents[place]
        if header and indents[place] == min(indents) and deeper:
            yield from ended()
            function, body, pending, statement = header[1], [line], [], ""
            continue
        body.append(line)
        statement = f"{statement} {line.strip()}".strip()
        is_open = statement.count("(") > statement.count(")") or statement[-1] in "=*/,"
        if is_open and place + 1 < len(lines):
            continue
        if target := assigned(statement):
            targets[section, function, target] += 1
            count = targets[section, function, target]
            numbered = target if count == 1 else f"{target}.{count}"
            pending.append(Requirement(section, function, numbered, "assign", hashed(statement)))
        statement = ""
    yield from ended()


def assigned(statement: str) -> str | None:
    """The variable that a statement assigns."""
    match = re.match(r"([A-Za-z_][\w.]*)\s*(?:[+-]?=(?!=)|\+\+$)", statement)
    return match[1].rpartition(".")[2] if match else None


# ---- the table and the exceptions ----

COLUMNS = ["id", "kind", "hash"]
ID = re.compile(
    r"(?P<section>[\dA-Z][\d.]*)"
    r"(?:#(?P<digits>[0-9a-f]+)|: (?P<function>\w+)(?:\.(?P<target>\w+(?:\.\d+)?))?)?"
)


def parse_id(text: str) -> re.Match[str] | None:
    return ID.fullmatch(text)


def write_table(requirements: list[Requirement]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([item.id, item.kind, item.hash] for item in requirements)
    return out.getvalue()


def read_table(path: Path) -> dict[str, Requirement]:
    rows = list(csv.reader(io.StringIO(read_text(path))))
    if not rows or rows[0] != COLUMNS:
        raise InputError(f"{path}:1: expected the columns {', '.join(COLUMNS)}")
    table: dict[str, Requirement] = {}
    for number, row in enumerate(rows[1:], start=2):
        match = parse_id(row[0]) if len(row) == len(COLUMNS) else None
        if match is None or not re.fullmatch(rf"[0-9a-f]{{{HASH_DIGITS}}}", row[2]):
            raise InputError(
                f"{path}:{number}: expected an id, a kind and a hash of {HASH_DIGITS} digits: {row}"
            )
        requirement = Requirement(
            match["section"], match["function"] or "", match["target"] or "", row[1], row[2]
        )
        if requirement.id != row[0]:
            raise InputError(f"{path}:{number}: the id {row[0]} does not follow from the hash {row[2]}")
        if requirement.id in table:
            raise InputError(f"{path}:{number}: {requirement.id} is there twice")
        table[requirement.id] = requirement
    return table


def read_exceptions(path: Path) -> dict[str, dict[str, str]]:
    """For each side the ids that need no citation there, and why."""
    try:
        document = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: {error}") from error
    found: dict[str, dict[str, str]] = {CODE: {}, TEST: {}}
    entries = document.pop("exception", [])
    if document or not isinstance(entries, list):
        raise InputError(f"{path}: expected [[exception]] only")
    for number, entry in enumerate(entries, start=1):
        where = f"{path}: exception {number}"
        if not isinstance(entry, dict):
            raise InputError(f"{where}: expected a table")
        ids, reason, side = (entry.get(key) for key in ("ids", "reason", "side"))
        if set(entry) - {"ids", "reason", "side"} or not isinstance(ids, list) or not ids:
            raise InputError(f"{where}: expected ids, reason and, for one side only, side")
        if not isinstance(reason, str) or len(reason.split()) < 3:
            raise InputError(f"{where}: a reason is missing")
        if side not in (None, CODE, TEST):
            raise InputError(f'{where}: side is "{CODE}" or "{TEST}", not {side!r}')
        for one in [side] if side else [CODE, TEST]:
            for item in ids:
                if not isinstance(item, str) or item in found[one]:
                    raise InputError(f"{where}: {item!r} is no id, or was excepted before")
                found[one][item] = reason
    return found


# What settles a row of prose: the word, and functions or numbers of items.
Settlement = tuple[str, list[str]]


def read_settlements(path: Path) -> dict[str, Settlement]:
    rows = list(csv.reader(io.StringIO(read_text(path))))
    if not rows or rows[0] != ["id", "settlement", "by"]:
        raise InputError(f"{path}:1: expected the columns id, settlement, by")
    found: dict[str, Settlement] = {}
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != 3 or row[0] in found:
            raise InputError(f"{path}:{number}: expected a new id, a settlement and by what: {row}")
        found[row[0]] = row[1], row[2].split()
    return found


def items_of(page: Path) -> dict[str, str]:
    """The text of each numbered item of the page that begins with a section of the draft."""
    items = re.findall(r"^(\d+)\. (\*\*\d.*(?:\n +.*)*)", read_text(page), re.MULTILINE)
    return dict(items)


# ---- the sources ----


@dataclass
class Citation:
    """What one comment cites."""

    file: str
    line: int
    side: str
    section: str
    # Cited by name: the function, or what follows the section's number.
    ids: list[str] = field(default_factory=list)
    # Of these functions; the words of the cited code decide which assignments count.
    functions: list[str] = field(default_factory=list)
    words: frozenset[str] = frozenset()

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


COMMENT = re.compile(r"^\s*(?://[/!]?|#) draft (?P<section>[\dA-Z][\d.]*\d|\d)(?P<rest>.*)$")
NAMED = re.compile(r"(?P<function>steps|[A-Z]\w*)(?:\.(?P<one>\w+(?:\.\d+)?)|\.\{(?P<many>[\w., ]+)\})?")


def parse_comment(line: str, known: frozenset[str]) -> tuple[str, list[str], list[str]] | None:
    """Section, cited ids and cited functions; None if the line cites nothing."""
    match = COMMENT.match(line)
    if match is None:
        return None
    section, rest = match["section"], match["rest"]
    if sentence := re.match(r"#([0-9a-f]+)\b", rest):
        ids = [f"{section}#{sentence[1]}"]
        for other in re.findall(r" #([0-9a-f]{6})\b", rest):
            ids.append(f"{section}#{other}")
        return section, ids, []
    ids, functions = [], []
    rest = rest.removeprefix(":").lstrip()
    while name := NAMED.match(rest):
        function = name["function"]
        after = rest[name.end() :]
        # A word of prose: "A mark counts". An unknown name that looks like a function's is a mistake.
        if function not in known and not re.search(r"[a-z0-9][A-Z]", function):
            break
        targets = [name["one"]] if name["one"] else re.split(r", *", name["many"]) if name["many"] else []
        ids += [f"{section}: {function}.{target}" for target in targets]
        if not targets:
            ids.append(f"{section}: {function}")
            functions.append(function)
        if not after.startswith(", "):
            break
        rest = after[2:]
    return section, ids or [section], functions


def blanked(source: str) -> str:
    """Rust without comments, strings and characters, each line and column where it was."""
    pattern = re.compile(
        r'//[^\n]*|/\*.*?\*/|r#".*?"#|"(?:\\.|[^"\\])*"|\'(?:\\.[^\']*|[^\\\'\n])\'', flags=re.S
    )
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), source)


def enclosed(text: str, begin: int, pair: str = "{}") -> int:
    """Where the bracket at `begin` is closed."""
    depth = 0
    for place in range(begin, len(text)):
        depth += (text[place] == pair[0]) - (text[place] == pair[1])
        if depth == 0:
            return place
    return len(text)


ITEM = re.compile(r"\s*(?:#\[[^\n]*\]\s*)*(?:pub(?:\([a-z]+\))?\s+)?(?:const\s+|unsafe\s+)*fn\s")


def cited_code(code: str, begin: int) -> str:
    """The function that follows, or the rest of the block."""
    if ITEM.match(code, begin):
        body = code.find("{", begin)
        return code[begin : enclosed(code, body) + 1] if body >= 0 else ""
    depth = 0
    for place in range(begin, len(code)):
        depth += (code[place] == "{") - (code[place] == "}")
        if depth < 0:
            return code[begin:place]
    return code[begin:]


def assertions(code: str) -> str:
    found = []
    for match in re.finditer(r"\b(?:debug_)?(?:prop_)?assert\w*!\s*\(", code):
        found.append(code[match.end() : enclosed(code, match.end() - 1, "()")])
    return " ".join(found)


def test_spans(code: str) -> list[tuple[int, int]]:
    """Where modules of tests stand in a file."""
    spans = []
    for match in re.finditer(r"#\[cfg\(test\)\]\s*(?:pub(?:\([a-z]+\))? )?mod \w+\s*\{", code):
        spans.append((match.start(), enclosed(code, match.end() - 1)))
    return spans


def test_files(root: Path, files: list[Path]) -> set[Path]:
    """Files that a module declares for tests only, and those in folders of tests."""
    found = set()
    for path in files:
        if TEST_FOLDERS & set(path.relative_to(root).parts):
            found.add(path)
        if path.suffix != ".rs":
            continue
        folder = path.parent if path.stem in ("lib", "main", "mod") else path.with_suffix("")
        for match in re.finditer(r"#\[cfg\(test\)\]\s*(?:pub(?:\([a-z]+\))? )?mod (\w+);", read_text(path)):
            found |= {folder / f"{match[1]}.rs", *(folder / match[1]).rglob("*.rs")}
    return found


def citations_in(root: Path, table: dict[str, Requirement]) -> list[Citation]:
    files = sorted(
        path
        for folder in SOURCES
        for path in (root / folder).rglob("*")
        if path.suffix in (".rs", ".py") and "target" not in path.parts
    )
    tests = test_files(root, files)
    known = frozenset(requirement.function for requirement in table.values())
    return [
        one for path in files for one in citations_of(path, str(path.relative_to(root)), path in tests, known)
    ]


def citations_of(path: Path, name: str, is_test: bool, known: frozenset[str]) -> Iterator[Citation]:
    source = read_text(path)
    is_rust = path.suffix == ".rs"
    code = blanked(source) if is_rust else source
    spans = test_spans(code) if is_rust else []
    begin = 0
    for number, line in enumerate(source.splitlines(keepends=True), start=1):
        end = begin + len(line)
        if parsed := parse_comment(line, known):
            section, ids, functions = parsed
            side = TEST if is_test or any(first <= begin < last for first, last in spans) else CODE
            cited = cited_code(code, end) if is_rust else ""
            words = frozenset(re.findall(r"\w+", assertions(cited) if side == TEST else cited))
            yield Citation(name, number, side, section, ids, functions, words)
        begin = end


# ---- the report ----


def coverage(table: dict[str, Requirement], citations: list[Citation]) -> dict[str, dict[str, list[str]]]:
    """For each side and requirement the places that cite it."""
    places: dict[str, dict[str, list[str]]] = {CODE: {}, TEST: {}}
    for citation in citations:
        counted = set(citation.ids)
        for requirement in table.values():
            of_function = (
                citation.section == requirement.section and requirement.function in citation.functions
            )
            if of_function and requirement.target.lower() in {word.lower() for word in citation.words}:
                counted.add(requirement.id)
        for one in counted:
            places[citation.side].setdefault(one, []).append(citation.place)
    return places


def unsettled(
    table: dict[str, Requirement], places: dict[str, dict[str, list[str]]], root: Path
) -> Iterator[str]:
    """What is wrong with the settlements of prose, a line each."""
    settlements, items = read_settlements(SETTLEMENTS), items_of(root / PAGE)
    prose = {one: row.section for one, row in table.items() if row.kind == PROSE}
    functions = {(row.section, row.function) for row in table.values()}
    anywhere = {name for _, name in functions} - {"steps"}
    yield from (f"{one}: prose without a settlement" for one in prose if one not in settlements)
    for one, (word, by) in settlements.items():
        wrong = []
        section = prose.get(one)
        if section is None:
            wrong.append("the draft has no such prose")
        elif word not in (AS_PSEUDOCODE, CITED, EXPLAINS, DIFFERS):
            wrong.append(f"{word!r} is no settlement")
        elif (word in (AS_PSEUDOCODE, DIFFERS)) != bool(by):
            wrong.append(f"{word!r} needs {'nothing' if by else 'functions or items'} after it")
        elif word == AS_PSEUDOCODE:
            unknown = [name for name in by if name not in anywhere and (section, name) not in functions]
            wrong += [f"the pseudocode has no {name}" for name in unknown]
        elif word == DIFFERS:
            named = re.compile(rf"(?<![\d.]){re.escape(section)}(?!\.?\d)")
            wrong += [f"{PAGE.name} has no item {item}" for item in by if item not in items]
            wrong += [
                f"item {item} does not name {section}"
                for item in by
                if item in items and not named.search(items[item])
            ]
        elif word == CITED:
            wrong += [f"no {side} cites it" for side in places if one not in places[side]]
        yield from (f"{SETTLEMENTS.name}: {one}: {why}" for why in wrong)


def complaints(table: dict[str, Requirement], exceptions: dict[str, dict[str, str]], root: Path) -> list[str]:
    """What is wrong, a line each."""
    citations = citations_in(root, table)
    required = [one for one in table if table[one].is_required]
    found = []
    named: dict[str, list[Citation]] = {}
    for citation in citations:
        for one in citation.ids:
            if one not in table:
                found.append(f"{citation.place}: cites {one}, which the draft does not have")
            elif citation.side == CODE and table[one].is_required:
                named.setdefault(one, []).append(citation)
    for one, cited in named.items():
        # The parts of a function may be in several files; an assignment is in one place.
        in_file = Counter(citation.file for citation in cited)
        if (table[one].kind != "function" and len(cited) > 1) or max(in_file.values()) > 1:
            found.append(f"{one}: cited more than once: {', '.join(citation.place for citation in cited)}")
    places = coverage(table, citations)
    for side in (CODE, TEST):
        for one in exceptions[side]:
            if one not in required:
                found.append(f"{EXCEPTIONS.name}: {one} is no requirement")
            elif one in places[side]:
                found.append(f"{EXCEPTIONS.name}: {one} is cited in {places[side][one][0]}")
        for one in required:
            if one not in places[side] and one not in exceptions[side]:
                found.append(f"{one}: no {side} cites it")
    return [*found, *unsettled(table, places, root)]


def changes(old: dict[str, Requirement], new: dict[str, Requirement], root: Path) -> list[str]:
    """What became of the requirements, and who cites those that changed."""
    places = coverage(old, citations_in(root, old))

    def cited(one: str) -> str:
        where = [*places[CODE].get(one, []), *places[TEST].get(one, [])]
        return f" (cited in {', '.join(where)})" if where else ""

    found = [f"new: {begin(new[one])}" for one in new if one not in old]
    found += [f"gone: {one}{cited(one)}" for one in old if one not in new]
    found += [f"changed: {one}{cited(one)}" for one in old if one in new and old[one] != new[one]]
    return found


def begin(requirement: Requirement) -> str:
    """Its id, and how its text begins."""
    words = requirement.text.split()
    return requirement.id + (f" ({' '.join(words[:12])} ...)" if words else "")


def table_of(draft: Path) -> dict[str, Requirement]:
    table: dict[str, Requirement] = {}
    for requirement in requirements_of(draft):
        # The same sentence twice in a section is one requirement.
        if table.setdefault(requirement.id, requirement) != requirement:
            raise InputError(f"{draft}: {requirement.id} names two requirements")
    return table


def run(arguments: argparse.Namespace) -> int:
    """Carries out a command; returns the exit status."""
    if arguments.command == "extract":
        new = table_of(arguments.draft)
        old = read_table(TABLE) if TABLE.exists() else {}
        print("\n".join(changes(old, new, arguments.root)) or "nothing changed")
        TABLE.write_text(write_table(list(new.values())), encoding="utf-8")
        return 0
    table = read_table(TABLE)
    if arguments.command == "list":
        listed = table_of(arguments.draft) if arguments.draft else table
        places = coverage(listed, citations_in(arguments.root, listed))
        for one, row in listed.items():
            if row.kind != SECTION and all(word in one for word in arguments.word):
                cited = (f"\n    {side}: {place}" for side in places for place in places[side].get(one, []))
                print(begin(row), *cited)
        return 0
    if arguments.draft:
        found = changes(table, table_of(arguments.draft), arguments.root)
    else:
        found = complaints(table, read_exceptions(EXCEPTIONS), arguments.root)
    for line in found:
        print(line)
    if not found:
        count = sum(requirement.is_required for requirement in table.values())
        prose = sum(requirement.kind == PROSE for requirement in table.values())
        print(
            f"{count} requirements, {prose} paragraphs of prose: "
            + ("as in the draft" if arguments.draft else "all cited or excepted, and settled")
        )
    return 1 if found else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout (default: this one)")
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser("check", help="report what is not cited, or what a draft changed")
    check.add_argument("--draft", type=Path, metavar="FILE", help="compare the table with this draft")
    extract = commands.add_parser("extract", help="write the table from a draft")
    extract.add_argument("--draft", type=Path, metavar="FILE", required=True)
    listing = commands.add_parser("list", help="print where each requirement is cited")
    listing.add_argument("--draft", type=Path, metavar="FILE", help="the requirements of this draft")
    listing.add_argument("word", nargs="*", help="only ids that contain all of these")
    try:
        return run(parser.parse_args())
    except InputError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
