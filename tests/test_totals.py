"""Totals over flows with unlike lifetimes, and completion times, in real runs of the simulator."""

import io

import fullpipe as fp
from conftest import SCENARIOS
from fullpipe.measures import measures
from fullpipe.measures.measures import different_lifetimes, flow_alone, goodput_bps
from fullpipe.report import tables
from fullpipe.report.answers import answers

PATH = {"rate": "10 Mbit/s", "rtt": "20 ms"}


def test_successive_flows_do_not_exceed_link() -> None:
    flows = [
        {"controller": "cubic", "label": "early", "stop": "10 s"},
        {"controller": "cubic", "label": "late", "start": "10 s"},
    ]
    results = fp.run({"duration": "20 s", "path": PATH, "flows": flows})
    total = results.groups[0].measures["goodput_bps"]
    assert total is not None
    assert 9e6 < total.mean < 10e6
    assert "together" in answers(results)["sim"]
    summary = results.runs[0].summary
    assert different_lifetimes(summary)
    assert goodput_bps(flow_alone(summary, "late")) > 9e6, "a flow's own goodput is over its own lifetime"


def test_staggered_flows_do_not_exceed_link() -> None:
    summary = fp.run(SCENARIOS / "five-bbr.toml").runs[0].summary
    assert sum(flow["goodput_bps"] for flow in summary["flows"]) > 100e6, "what was reported before"
    assert 90e6 < goodput_bps(summary) < 100e6


def test_equal_lifetimes_total_is_sum() -> None:
    flows = [{"controller": name, "start_jitter": "0 s"} for name in ("bbr1", "cubic")]
    summary = fp.run({"duration": "3 s", "path": PATH, "flows": flows}).runs[0].summary
    assert not different_lifetimes(summary)
    total = sum(flow["goodput_bps"] for flow in summary["flows"])
    assert abs(goodput_bps(summary) - total) < 1e-6 * total


def test_request_completion_times_are_in_tables() -> None:
    from rich.console import Console

    from fullpipe.report.report import html

    flows = [{"controller": "cubic", "requests": {"size": "20 KB", "pause": "100 ms"}}]
    results = fp.run({"duration": "3 s", "path": PATH, "flows": flows}, seeds=2)
    took = sorted(results.runs[0].summary["flows"][0]["transfers_ms"])
    flow = results.runs[0].summary["flows"][0]["fct_ms"]
    assert (flow["min"], flow["max"]) == (took[0], took[-1])
    assert results.summary["fct_mean_ms"][0] > 20
    assert results.flows["fct_p95_ms"].null_count() == 0
    printed = results.to_dict()["results"][0]["fct_ms"]
    assert set(printed) == {"mean", "p50", "p95", "ci95"}
    for table in (tables.comparison(results), tables.flows(results)):
        console = Console(width=200, record=True, file=io.StringIO())
        console.print(table)
        assert "FCT mean" in console.export_text()
    meaning = "FCT: flow completion time, from the start of a transfer to its last byte."
    assert meaning in tables.run_notes(results) and meaning in html(results, [])
    assert "FCT mean" in html(results, [])


def test_bulk_flows_have_no_completion_columns() -> None:
    from fullpipe.measures.measures import columns

    summary = fp.run({"duration": "1 s", "path": PATH, "compare": ["reno"]}).runs[0].summary
    assert summary["fct_ms"] is None
    assert [column.heading for column in columns([summary])][-1] == "Loss"


def test_total_and_unequal_lifetimes_are_noted() -> None:
    flows = [{"controller": "reno"}, {"controller": "reno", "start": "1 s"}]
    path = {"rate": "5 Mbit/s", "rtt": "10 ms"}
    results = fp.run({"name": "two", "duration": "2 s", "path": path, "flows": flows})
    total, lifetimes = tables.flow_notes(results)
    assert total.startswith("All flows of two, sim: ") and total.endswith(" Mbit/s of goodput.")
    assert "do not add up" in lifetimes
    assert tables.how_often(results) == "Runs of each alternative: sim 1 seed."


def test_media_of_the_other_direction_counts_for_nothing() -> None:
    """Two packets of four are lost forward; in the other direction, all are."""

    def of(lost: int, **more: bool) -> dict[str, object]:
        missed = {"frames": {"lost_packets": lost}, "missed_frames": lost / 4}
        return {"segments_sent": 4, "retransmits": 0, **missed, **more}

    both = {"flows": [of(2), of(4, reverse=True)]}
    assert (measures.loss_ratio(both), measures.missed_frames(both)) == (0.5, 0.5)
    # The control: of one direction, both count.
    assert measures.loss_ratio({"flows": [of(2), of(4)]}) == 0.75
