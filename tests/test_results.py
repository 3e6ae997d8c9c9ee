"""The evidence in `results`: its shape, what is made of it, and how it is read and replaced."""

import importlib.util
import json
import os
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest

import fullpipe as fp
from fullpipe import evidence, files
from fullpipe.errors import OutputError
from fullpipe.runs.worlds import registry

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results"
SCHEMAS = {path.stem: path for path in sorted((RESULTS / "schema").glob("*.json"))}


def script(name: str) -> ModuleType:
    """A script of docs/."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def tables() -> ModuleType:
    return script("tables")


def schema(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(SCHEMAS[name].read_text(encoding="utf-8"))
    return found


def test_every_file_has_a_schema() -> None:
    assert {path.stem for path in RESULTS.glob("*.jsonl")} <= set(SCHEMAS)


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_line_fits_its_schema(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(name))
    validator = jsonschema.Draft202012Validator(schema(name))
    for line in evidence.read(
        RESULTS / f"{name}.jsonl"
    ):  # Which refuses keys that are not unique and sorted.
        validator.validate(line)
        assert evidence.fault(line, schema(name)) is None


def test_no_line_has_a_path_of_a_machine() -> None:
    machine = re.compile(r"(?<![\w.}])/(?:home|root|Users|work|tmp|usr/local)/")
    assert machine.search("does not answer: /home/me/.venv/bin/fullpipe-quic")  # The control.
    found = [
        path.name for path in RESULTS.glob("*.jsonl") if machine.search(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_pages_are_what_the_evidence_makes(tables: ModuleType) -> None:
    for path, text in tables.written(RESULTS).items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is not of results/: make docs"


def test_a_changed_line_changes_its_page(tables: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "schema").symlink_to(RESULTS / "schema")
    for path in RESULTS.glob("*.jsonl"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    lines = evidence.read(tmp_path / "agreement.jsonl")
    # Of Linux hosts: of ideal ones, the page has the targets only.
    grid = {"grid": "router", "hosts": "linux"}
    cell = next(one for one in lines if grid.items() <= one["key"].items() and one["key"]["cell"])
    cell["imported"]["verdict"] = "differs" if cell["imported"]["verdict"] == "close" else "close"
    evidence.replace(tmp_path / "agreement.jsonl", [cell])
    changed = {
        path.name
        for path, text in tables.written(tmp_path).items()
        if path.read_text(encoding="utf-8") != text
    }
    assert changed == {"router.md"}


def test_line_reports_whether_code_is_current(tables: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "schema").symlink_to(RESULTS / "schema")
    build = registry.named("sim").build()
    line = evidence.read(RESULTS / "router.jsonl")[0]
    ages = [({"sim": build}, ""), ({"sim": "other"}, evidence.OLDER), ({}, evidence.IMPORTED)]
    for fingerprint, age in ages:
        (tmp_path / evidence.BUILDS).unlink(missing_ok=True)
        now = {**line, "made": {**line["made"], "fingerprint": fingerprint}}
        evidence.replace(tmp_path / "router.jsonl", [now])
        tables.renew(tmp_path)
        builds = evidence.builds(tmp_path)
        assert builds == ({"sim": {build}} if fingerprint else {})
        assert evidence.age(now, builds) == age


def test_few_old_lines_are_named_and_many_counted() -> None:
    made = {"old": {"fingerprint": {"sim": "a"}}, "new": {"fingerprint": {"sim": "b"}}}
    made["imported"] = {"fingerprint": {}}

    def of(*ages: str) -> str:
        lines = [{"key": {"cell": f"c{at}"}, "made": made[age]} for at, age in enumerate(ages)]
        return evidence.ages_sentence(lines, "cell", {"sim": {"b"}})

    assert of("new") == of() == ""
    assert of("old", "new", "imported").endswith("Measured with older code than today's: c0.")
    assert of(*["old"] * 6, "new").endswith(": c0, c1, c2, c3, c4 and c5.")
    assert of(*["old"] * 7, "new").endswith(": lines of 7 of 8 cells.")
    assert of(*["old"] * 7).endswith(": the whole table.")


def test_every_page_table_is_generated(tables: ModuleType) -> None:
    marked = {
        (os.path.relpath(path, ROOT / "docs"), name)
        for path in (ROOT / "README.md", ROOT / "bench" / "README.md", *(ROOT / "docs").rglob("*.md"))
        for name in re.findall(r"<!-- (\S+):begin -->", path.read_text(encoding="utf-8"))
    }
    assert marked == set(tables.tables(RESULTS))


def test_readme_counts_match_evidence(tables: ModuleType) -> None:
    quic = evidence.read(RESULTS / "conformance.jsonl")
    found = {one.controller: one for one in tables.quic_conform.conformities(quic)}
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    words = r"noq's own BBRv3 passes (.+?), Quinn's BBR (.+?), and our BBRv3, .+?, (.+?)\."
    message = re.search(words, " ".join(text.split()))
    assert message is not None
    names = ("noq:bbr3", "quinn:bbr", "bbr3")
    assert [one.replace("the ", "") for one in message.groups()] == [
        tables.quic_conform.passed(found[name]) for name in names
    ]
    grids = {
        one.line["key"]["hosts"]: [target.measured for target in one.targets[:4]]
        for one in tables.lines.wholes(evidence.read(RESULTS / "agreement.jsonl"))
        if one.line["key"]["grid"] == "agreement"
    }
    for words, hosts in (
        ("simulator with ideal hosts, the default", "ideal"),
        ("simulator with the delays of Linux hosts", "linux"),
    ):
        assert f"| {words} | {' | '.join(f'{100 * one:.1f} %' for one in grids[hosts])} |" in text


# Reading and replacing.

LINE = {"key": {"world": "sim"}, "build": "1f"}


@pytest.fixture
def builds(tmp_path: Path) -> Path:
    (tmp_path / "schema").mkdir()
    (tmp_path / "schema" / "builds.json").write_bytes(SCHEMAS["builds"].read_bytes())
    return tmp_path / "builds.jsonl"


def test_lines_are_replaced_by_key_only(builds: Path) -> None:
    other = {"key": {"world": "kernel"}, "build": "2f"}
    evidence.replace(builds, [LINE, other])
    evidence.replace(builds, [{**LINE, "build": "3f"}])
    text = '{"key":{"world":"kernel"},"build":"2f"}\n{"key":{"world":"sim"},"build":"3f"}\n'
    assert builds.read_text(encoding="utf-8") == text
    assert evidence.builds(builds.parent) == {"kernel": {"2f"}, "sim": {"3f"}}
    evidence.replace(builds, [LINE], lambda line: line["key"]["world"] == "kernel")
    assert evidence.read(builds) == [LINE]


def test_line_of_equal_build_is_current(builds: Path) -> None:
    results = builds.parent
    (results / "schema" / evidence.EQUAL.replace("jsonl", "json")).write_bytes(
        SCHEMAS["equal_builds"].read_bytes()
    )
    made = evidence.made("make equal-builds", {"sim": "3f"}, [])
    pairs = [{"world": "sim", "old": old, "new": new} for old, new in (("1f", "2f"), ("2f", "3f"))]
    lines = [{"key": key, "made": made, "shown_by": "ten runs"} for key in pairs]
    evidence.replace(results / evidence.EQUAL, lines)
    evidence.replace(builds, [{**LINE, "build": "3f"}])
    today = evidence.builds(results)
    for build, age in (("1f", ""), ("2f", ""), ("3f", ""), ("4f", evidence.OLDER)):
        assert evidence.age({"made": {**made, "fingerprint": {"sim": build}}}, today) == age


def test_same_sample_bytes_make_equal_builds(tmp_path: Path) -> None:
    equal = script("equal_builds")
    assert equal.differing(RESULTS) == [], "if this was meant: python docs/equal_builds.py --renew"
    (tmp_path / "schema").symlink_to(RESULTS / "schema")
    lines = evidence.read(RESULTS / equal.SAMPLE)
    for line in lines:
        line["made"]["fingerprint"] = {line["key"]["world"]: "1f"}
    evidence.replace(tmp_path / equal.SAMPLE, lines)
    assert equal.record(tmp_path) == sorted(equal.worlds())
    for world in equal.worlds():
        build = registry.named(world).build()
        assert evidence.equal_to(tmp_path, world, build) == {build, "1f"}
        assert evidence.equal_to(tmp_path, world, "1f") == {build, "1f"}
    lines = [
        line for line in evidence.read(tmp_path / equal.SAMPLE) if line["key"]["world"] in equal.worlds()
    ]
    lines[3]["summary"] = lines[3]["summary"].replace("1", "2", 1)  # One digit of one value.
    lines[4]["seed"] += 1
    evidence.replace(tmp_path / equal.SAMPLE, lines)
    assert equal.differing(tmp_path) == [
        f"{line['key']['world']} {line['key']['name']}" for line in lines[3:5]
    ]
    evidence.replace(tmp_path / equal.SAMPLE, equal.renewed(tmp_path))
    assert equal.differing(tmp_path) == [] and not equal.record(tmp_path)


def test_what_a_benchmark_prints_is_recorded(tables: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    row = {"unit": "ns/packet", "median": 40.0, "low": 39.0, "high": 44.0, "runs": 9, "ratio": 1.0}
    key = {"benchmark": "queues", "case": "cubic, fifo"}
    printed = ["a table\n", json.dumps(key | row), json.dumps(key | row | {"median": 41.0})]
    (line,) = tables.speed.lines(printed, "fullpipe-bench queues")
    assert capsys.readouterr().out == "a table\n"
    assert (line["key"], line["median"], line["runs"]) == (key, 41.0, 9)
    assert evidence.fault(line, schema("speed")) is None
    other = {**line, "key": {**key, "case": "cubic, codel"}, "ratio": 2.5}
    build = registry.named("sim").build()
    text = tables.speed.tables([line, other], {"sim": {build}})["queues"]
    assert "| cubic | 41.0 | 41.0 (+62) |" in text and "Imported" not in text and "Older" not in text


def test_smaller_run_never_replaces_larger(tmp_path: Path) -> None:
    file = tmp_path / "runs.jsonl"
    (tmp_path / "schema").mkdir()
    (tmp_path / "schema" / "runs.json").write_text("{}")

    def line(full: bool, seeds: int, build: str = "1f") -> evidence.Line:
        return {
            "key": {"a": "b"},
            "made": evidence.made("x", {"sim": build}, []),
            "full": full,
            "seeds": seeds,
        }

    def size(one: Any) -> tuple[float, ...]:
        return one["full"], one["seeds"]

    evidence.replace(file, [line(True, 5)], size=size)
    for smaller in (line(False, 5), line(True, 4), line(False, 9)):
        with pytest.raises(fp.ScenarioError, match=evidence.LARGER):
            evidence.replace(file, [smaller], size=size)
        assert evidence.read(file)[0]["seeds"] == 5 and evidence.read(file)[0]["full"]
    for other in (line(True, 5), line(True, 6), line(False, 1, "2f")):
        evidence.replace(file, [other], size=size)
        assert evidence.read(file) == [other]
    evidence.replace(file, [line(False, 0, "2f")])
    assert evidence.read(file)[0]["seeds"] == 0


def test_numbers_have_six_digits(builds: Path) -> None:
    (builds.parent / "schema" / "builds.json").write_text("{}")
    evidence.replace(builds, [{"key": {"a": "b"}, "values": [1 / 3, 95e6, -0.0, 1234567.8, 0.0]}])
    assert '"values":[0.333333,95000000,-0.0,1234570,0]' in builds.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"key": {"world": "sim"}}, "the line has no build"),
        ({**LINE, "more": 1}, "the line has more, which nobody knows"),
        ({**LINE, "build": 1}, "the line has at build no string"),
        ({"key": {"world": True}, "build": "1f"}, "the line has at key.world no string"),
    ],
)
def test_line_violating_schema_is_refused(line: dict[str, Any], message: str, builds: Path) -> None:
    with pytest.raises(fp.ScenarioError, match=message):
        evidence.replace(builds, [line])
    assert not builds.exists()


@pytest.mark.parametrize(
    "text",
    [
        "no JSON",
        "[" * 100_000,
        "[]",
        "{}",
        '{"key":1}',
        '{"key":{"a":{"b":1}}}',
        '{"key":{"a":"1"},"key":{"a":"2"}}',
        '{"key":{"a":"1"},"x":NaN}',
        '{"key":{"a":"2"}}\n{"key":{"a":"1"}}',
        '{"key":{"a":"1"}}\n{"key":{"a":"1"}}',
        '{"key":{"a":"1"}}\n{"key":{"b":"2"}}',
        "\0",
    ],
)
def test_damaged_file_is_refused(text: str, builds: Path) -> None:
    builds.write_text(text, encoding="utf-8")
    for use in (lambda: evidence.read(builds), lambda: evidence.replace(builds, [LINE])):
        with pytest.raises(fp.ScenarioError) as error:
            use()
        assert len(str(error.value)) < 1000 and "\n" not in str(error.value)
    assert builds.read_text(encoding="utf-8") == text


def test_concurrent_write_is_refused(builds: Path) -> None:
    with files.locked(builds.parent, builds.name), pytest.raises(OutputError, match="another process"):
        evidence.replace(builds, [LINE])
