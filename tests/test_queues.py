"""Queue disciplines from the command line and from Python, whatever the registry has."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import fullpipe as fp
from conftest import PATH
from fullpipe.cli import app as cli
from fullpipe.cli import options
from fullpipe.measures.measures import columns
from fullpipe.measures.run import Run
from fullpipe.report import tables
from fullpipe.report.figures.summary import figure

ALL = {one["name"]: one for one in fp.queues()}
NAMES = sorted(ALL)
SHORT = ("--duration", "1 s", "--seeds", "1", "--json")


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(cli.app, arguments)


def answer(*arguments: str) -> dict[str, Any]:
    done = invoke(*arguments)
    assert done.exit_code == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def settings() -> Iterator[tuple[str, dict[str, Any]]]:
    for one in ALL.values():
        for setting in one["settings"]:
            yield one["name"], setting


def test_disciplines_are_listed_with_their_settings() -> None:
    listed = invoke("queues").stdout
    for one in ALL.values():
        assert {"name", "summary", "source", "kernel", "settings"} == set(one)
        assert one["name"] in listed and one["source"]
    for _, setting in settings():
        assert {"name", "summary", "kind", "default", "min", "max"} == set(setting)
        assert f":{setting['name']}=" in listed
    assert json.loads(invoke("queues", "--json").stdout) == fp.queues()
    assert ALL["fifo"]["kernel"] == "bfifo"


def test_only_named_items_are_listed() -> None:
    assert json.loads(invoke("queues", "red", "codel:target=1ms", "--json").stdout) == [
        ALL["red"],
        ALL["codel"],
    ]
    listed = json.loads(invoke("controllers", "bbr3", "--json").stdout)
    assert [one["name"] for one in listed] == ["bbr3"]
    refused = invoke("controllers", "bbr3", "elephant")
    assert refused.exit_code == options.MISTAKE
    assert 'controller: "elephant" cannot be used; expected one of reno, ' in refused.stderr


def test_names_are_completed() -> None:
    assert options.complete_queues("") == [one["name"] for one in fp.queues()]
    assert options.complete_queues("fif") == ["fifo"]
    assert options.complete_queues("elephant") == []


def test_the_schema_has_the_key() -> None:
    path = json.loads(invoke("schema").stdout)["properties"]["path"]["properties"]
    assert set(path["queue"]["examples"]) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_compare_and_run_take_every_discipline(name: str, in_empty_folder: Path) -> None:
    compared = answer("compare", "cubic", *PATH, "--queue", name, *SHORT)
    assert compared["scenario"]["path"]["queue"] == name
    (result,) = compared["results"]
    assert result["goodput_bps"]["mean"] > 0
    document = {**compared["scenario"], "duration": "1 s"}
    del document["path"]["queue"]
    Path("it.json").write_text(json.dumps(document), encoding="utf-8")
    ran = answer("run", "it.json", "--queue", name, "--json")
    assert ran["scenario"]["path"]["queue"] == name
    assert ran["results"][0]["goodput_bps"] == result["goodput_bps"]


def test_run_and_compare_take_ecn_alike(in_empty_folder: Path) -> None:
    compared = answer("compare", "cubic", *PATH, "--queue", "codel", "--ecn", *SHORT)
    document = {**compared["scenario"], "duration": "1 s"}
    del document["hosts"]
    Path("it.json").write_text(json.dumps(document), encoding="utf-8")
    without, ran = (answer("run", "it.json", *ecn, "--json") for ecn in ((), ("--ecn",)))
    assert ran["scenario"]["hosts"] == {"ecn": True}
    (result,), (plain,) = ran["results"], without["results"]
    assert result["goodput_bps"] == compared["results"][0]["goodput_bps"]
    assert result["marked_packets"]["mean"] > 0 and not plain.get("marked_packets", {"mean": 0})["mean"]


def test_flow_ecn_overrides_hosts_and_option(in_empty_folder: Path) -> None:
    path = {"rate": "10 Mbit/s", "rtt": "20 ms", "buffer": "100 KB", "queue": "codel"}
    flows = [{"controller": "cubic", "ecn": ecn, "label": f"ecn {ecn}"} for ecn in (True, False)]
    document = {"duration": "3 s", "path": path, "flows": flows, "hosts": {"ecn": False}}
    Path("it.json").write_text(json.dumps(document), encoding="utf-8")
    (plain,), (asked,) = (answer("run", "it.json", *ecn, "--json")["results"] for ecn in ((), ("--ecn",)))
    assert plain["goodput_bps"] == asked["goodput_bps"] and plain["marked_packets"]["mean"] > 0
    with pytest.raises(fp.WorldError, match=r"flows\[1\]\.ecn: Linux negotiates ECN for all connections"):
        fp.run(document, world="kernel")


def test_fifo_is_default_discipline() -> None:
    plain, fifo = (
        fp.compare("cubic", rate="10 Mbit/s", rtt="20 ms", queue=queue, duration="1 s", seeds=1)
        for queue in (None, "fifo")
    )
    assert plain.runs[0].alternative.spec_json == fifo.runs[0].alternative.spec_json
    assert plain.runs[0].summary == fifo.runs[0].summary
    assert plain.runs[0].link_parquet == fifo.runs[0].link_parquet
    assert not {"marked_packets", "early_packets"} & set(plain.runs[0].summary["links"][0])
    assert not {"marked_packets", "early_packets"} & set(plain.to_dict()["results"][0])


def test_unknown_discipline_error_names_option(in_empty_folder: Path) -> None:
    done = invoke("compare", "cubic", *PATH, "--queue", "fifoo", *SHORT)
    assert done.exit_code == 2 and done.stderr.startswith(
        'fullpipe: --queue "fifoo" is not a queue discipline'
    )
    assert done.stderr.rstrip().endswith("did you mean fifo?")
    Path("it.toml").write_text(
        'compare = ["reno"]\n[path]\nrate = "10 Mbit/s"\nrtt = "20 ms"\n', encoding="utf-8"
    )
    done = invoke("run", "it.toml", "--queue", "fifoo", "--json")
    assert done.exit_code == 2 and done.stderr.startswith(
        'fullpipe: --queue "fifoo" is not a queue discipline'
    )
    Path("it.toml").write_text(
        'compare = ["reno"]\n[path]\nrate = "10 Mbit/s"\nrtt = "20 ms"\nqueue = "fifoo"\n', encoding="utf-8"
    )
    done = invoke("run", "it.toml", "--json")
    assert done.exit_code == 2 and "it.toml:5: path.queue: " in done.stderr


HOSTILE = [
    "",
    ":",
    "=",
    "fifo:",
    "fifo:=",
    "fifo:flows=1000000000000",
    "fifo,fifo",
    "fifo\0",
    "x" * 1_000_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:30])
def test_hostile_texts_are_one_short_sentence(text: str) -> None:
    with pytest.raises(fp.ScenarioError) as caught:
        fp.compare("cubic", rate="10 Mbit/s", rtt="20 ms", queue=text)
    message = str(caught.value)
    assert message.startswith("queue: ") and "\n" not in message and len(message) < 1_000


def test_hostile_settings_are_one_short_sentence() -> None:
    for name, setting in settings():
        wrong = ["", "-1", "nan", "1e400", "1000000000000000000000", "5 parsecs", "9" * 1_000_000]
        wrong += ["1000000000000"] if setting["kind"] in ("time", "share", "switch") else []
        if setting["kind"] == "count" and float(setting["max"]) < 1e12:
            wrong.append("1000000000000")
        for value in wrong:
            with pytest.raises(fp.ScenarioError) as caught:
                fp.compare("cubic", rate="10 Mbit/s", rtt="20 ms", queue=f"{name}:{setting['name']}={value}")
            message = str(caught.value)
            assert message.startswith("queue: ") and len(message) < 1_000, message
            assert setting["name"] in message and "write for example" in message, message


def test_a_grid_varies_the_queue(tmp_path: Path) -> None:
    from fullpipe.agreement.grid import document

    file = tmp_path / "queues.toml"
    cell = 'controller = "reno"\nrate = "10 Mbit/s"\nrtt = "20 ms"\nduration = "1 s"\n'
    queues = json.dumps(NAMES)
    file.write_text(f'[[cells]]\nname = "{{queue}}"\n{cell}queue = {queues}\n', encoding="utf-8")
    cells = document.load(str(file)).cells
    assert [cell.document["path"]["queue"] for cell in cells] == NAMES
    assert len({cell.alternative.digest for cell in cells}) == len(NAMES)
    file.write_text(f'[[cells]]\nname = "a"\n{cell}queue = "fifoo"\n', encoding="utf-8")
    with pytest.raises(fp.ScenarioError, match=r"queues\.toml:7: cells\[0\]\.queue: .*did you mean fifo"):
        document.load(str(file))


def with_signals(run: Run, **signals: int) -> dict[str, Any]:
    """The summary of a run on a path whose queue did these."""
    link = {**run.summary["links"][0], **signals}
    spec = run.summary["provenance"]["spec_json"].replace(
        '"queue":{', '"queue":{"discipline":{"kind":"x"},', 1
    )
    return {
        **run.summary,
        "provenance": {**run.summary["provenance"], "spec_json": spec},
        "links": [link, *run.summary["links"][1:]],
    }


def marked() -> fp.Results:
    """Two runs, of which one has marks and early drops."""
    results = fp.compare("cubic", rate="10 Mbit/s", rtt="20 ms", duration="1 s", seeds=2)
    first, second = results.runs
    object.__setattr__(first, "summary", with_signals(first, marked_packets=40, early_packets=3))
    object.__setattr__(second, "summary", with_signals(second))
    results.scenario.document["path"]["queue"] = "x:y=1"
    return fp.Results(results.scenario, results.runs, [])


def test_marks_column_appears_with_marks() -> None:
    results = marked()
    assert "Marks" in [column.heading for column in columns(run.summary for run in results.runs)]
    assert "Marks" not in [column.heading for column in columns([results.runs[1].summary])]
    (result,) = results.to_dict()["results"]
    assert result["marked_packets"]["mean"] == 20 and result["early_packets"]["mean"] == 1.5
    assert results.summary["marked_packets"].to_list() == [20.0]
    assert results.links["marked_packets"].to_list() == [40, 0]
    assert "Marks" in results._repr_html_()
    screen = tables.links(results)
    headings = [column.heading for column in screen.columns]
    assert any("Marked" in heading for heading in headings) and any("Early" in one for one in headings)


def test_queue_panel_names_its_discipline() -> None:
    assert "mean queueing delay, ms (x:y=1)" in str(figure(marked()))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "fifo"])
def test_marks_and_early_drops_are_recorded(name: str) -> None:
    document = {
        "duration": "3 s",
        "hosts": {"ecn": True},
        "path": {"rate": "10 Mbit/s", "rtt": "20 ms", "buffer": "10 bdp", "queue": name},
        "flows": [{"controller": "cubic", "count": 4}],
    }
    results = fp.run(document)
    (link,) = results.runs[0].summary["links"]
    signals = {key: link.get(key, 0) for key in ("early_packets", "marked_packets")}
    assert sum(signals.values()) > 0, "four flows make congestion"
    last = results.link_series().sort("time_s").tail(1).to_dicts()[0]
    assert all(0 <= last[key] <= total for key, total in signals.items())
    assert last["early_packets"] <= last["dropped_packets"]
    (result,) = results.to_dict()["results"]
    assert {key: result[key]["mean"] for key in signals} == signals
