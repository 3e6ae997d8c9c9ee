"""What `fullpipe advise --from` reads of Prometheus and browsers, and what it refuses of any source."""

import csv
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import command
from fullpipe._native import ScenarioError
from fullpipe.advisor import advise, many, many_page, sources
from fullpipe.advisor.sources import prometheus, rum

OURS = ("cubic", "bbr1")


def read(folder: Path, text: str | bytes) -> sources.Paths:
    """The paths of a source with this text."""
    file = folder / "source"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return sources.read(file)


def numbers(path: sources.Path, **asked: Any) -> dict[str, float]:
    found = path.question({"buffer": "1 bdp", **asked}).numbers()
    return {"rate": found.rate_bps, "rtt": found.rtt_ms, "loss": found.loss, "jitter": found.of("jitter")}


# Prometheus.


def vector(*series: tuple[dict[str, str], Any]) -> str:
    """An answer of /api/v1/query."""
    result = [{"metric": labels, "value": [1_700_000_000.123, value]} for labels, value in series]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": result}})


def metric(name: str, **labels: str) -> dict[str, str]:
    return {"__name__": name, **labels}


def test_vector_yields_path_per_label(tmp_path: Path) -> None:
    home, office = read(
        tmp_path,
        vector(
            (metric("path_rtt_seconds", path="home", job="ping"), "0.0251"),
            (metric("path_rate_bits_per_second", path="home"), "5e7"),
            (metric("path_loss_ratio", path="home"), "0.002"),
            (metric("path_jitter_milliseconds", path="home"), "3"),
            (metric("tcp_min_rtt_microseconds", path="office", instance="a:9100"), "7000"),
            (metric("tcp_delivery_rate_bytes_per_second", path="office", instance="a:9100"), "1250000"),
            (metric("go_goroutines", instance="a:9100"), "12"),
        ),
    )
    assert (home.name, home.weight) == ("home", 1)
    assert numbers(home) == pytest.approx({"rate": 5e7, "rtt": 25.1, "loss": 0.002, "jitter": 3}, rel=1e-3)
    asked = {"candidates": OURS, "buffer": "1 bdp"}
    assert any("counts as random" in note for note in home.beside(asked).notes)
    assert home.beside({**asked, "loss": "0.1 %"}).notes == (
        "the source has loss 0.002000000, but --loss 0.1 % is used",
    )
    assert numbers(office) == pytest.approx({"rate": 1e7, "rtt": 7, "loss": 0, "jitter": 0}, rel=1e-3)
    assert office.beside(asked).notes == ()


def test_unused_metrics_are_named(tmp_path: Path) -> None:
    page = '# TYPE tcp_rtt gauge\ntcp_rtt{flow="a"} 33.119\n# TYPE tcp_delivery_rate gauge\n'
    found = read(tmp_path, page + 'tcp_delivery_rate{flow="a"} 4.5e+06\n')
    assert found.notes == ("metrics not used: tcp_delivery_rate",)
    answers = many.answer(found, {"rate": "5mbit", "candidates": OURS}, seeds=2)
    assert answers.answered[0].advice.inputs.left_out == found.notes
    # Other phases of a metric that is used are not listed.
    phases = "".join(f'probe_icmp_duration_seconds{{phase="{one}"}} 0.02\n' for one in ("setup", "rtt"))
    many_more = "".join(f"{'x' * 99}_{number}_total 1\n" for number in range(1000))
    (note,) = read(tmp_path, f"# TYPE x gauge\n{phases}probe_success 1\n{many_more}").notes
    assert note.startswith("metrics not used: probe_success, xxx") and note.endswith(" and others")
    assert len(note) <= 200


@pytest.mark.parametrize(
    ("value", "why"),
    [("0", r"it is 0 in the source"), ("NaN", r"its samples are not numbers from 0")],
)
def test_missing_quantity_reports_reason(tmp_path: Path, value: str, why: str) -> None:
    rate = (metric("app_delivery_rate_bits_per_second", peer="a"), "3e7")
    (found,) = read(tmp_path, vector((metric("app_rtt_milliseconds", peer="a"), value), rate))
    with pytest.raises(ScenarioError, match=rf"^rtt: .*\({why}\); give --rtt"):
        numbers(found)
    assert numbers(found, rtt="20ms")["rtt"] == 20


def test_non_numeric_samples_are_counted(tmp_path: Path) -> None:
    rates = [(metric("path_rate_bits_per_second", path=name), "3e7") for name in ("good", "bad")]
    rtts = [(metric("rtt_seconds", path=name), value) for name, value in (("good", "0.1"), ("bad", "NaN"))]
    found = read(tmp_path, vector(*rates, *rtts, (metric("rtt_seconds", path="none"), "NaN")))
    assert [path.left_out for path in found] == [(), ("samples that are not numbers from 0: 1",)]
    assert found.notes == ("1 path without a sample that is a number from 0",)


def test_nameless_series_error_explains_query(tmp_path: Path) -> None:
    nameless = ({"instance": "x"}, "0.02")
    with pytest.raises(ScenarioError) as caught:
        read(tmp_path, vector(nameless))
    assert "its series have no names, which functions such as min_over_time drop" in str(caught.value)
    assert str(caught.value).endswith("query the metrics themselves, or add `__name__` with label_replace")
    assert read(tmp_path, vector(nameless, (metric("rtt_seconds"), "0.02"))).notes == (
        "metrics not used: series without a name",
    )


def test_matrix_yields_min_rtt_max_rate(tmp_path: Path) -> None:
    times = [[1_700_000_000 + 15 * at, value] for at, value in enumerate(("0.09", "0.04", "NaN", "0.05"))]
    rates = [[1_700_000_000, "2e6"], [1_700_000_015, "8e6"], [1_700_000_030, "+Inf"]]
    series = [
        {"metric": metric("rtt_seconds", peer="192.0.2.7", port="1"), "values": times},
        {"metric": metric("rtt_seconds", peer="192.0.2.7", port="2"), "values": times[:1]},
        {"metric": metric("delivery_rate_bits_per_second", peer="192.0.2.7"), "values": rates},
    ]
    text = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": series}})
    (found,) = read(tmp_path, text)
    assert (found.name, found.weight) == ("192.0.2.7", 2)
    assert numbers(found) == pytest.approx({"rate": 8e6, "rtt": 40, "loss": 0, "jitter": 0})
    assert found.left_out == ("samples that are not numbers from 0: 2",)


def test_concatenated_responses_are_merged(tmp_path: Path) -> None:
    one = vector((metric("rtt_seconds", path="a"), "0.02"))
    two = vector((metric("path_rate_bits_per_second", path="a"), "1e7"))
    (found,) = read(tmp_path, f"{one}\n{two}\n")
    assert numbers(found)["rate"] == pytest.approx(1e7)
    assert numbers(found)["rtt"] == pytest.approx(20)


PAGE = """\
# HELP tcp_rtt tcp socket perflow round trip
# TYPE tcp_rtt gauge
tcp_rtt{flow="(SRC#192.0.2.1|39366)(DST#198.51.100.7|443)"} 53.376
tcp_rtt{flow="(SRC#192.0.2.1|39368)(DST#198.51.100.7|443)"} 51.5 1700000000000
# TYPE probe_icmp_duration_seconds gauge
probe_icmp_duration_seconds{phase="resolve",instance="b \\"x\\" \\\\ y"} 0.001
probe_icmp_duration_seconds{phase="rtt",instance="b \\"x\\" \\\\ y"} 0.012
download_bits_per_second{instance="b \\"x\\" \\\\ y"} 9.5e+07 # {trace_id="1"} 0.5
node_cpu_seconds_total{cpu="0",mode="idle"} 1000
"""


def test_an_exporters_page_gives_paths(tmp_path: Path) -> None:
    flow, probed = read(tmp_path, PAGE)
    assert (flow.name, flow.weight) == ("198.51.100.7", 2)
    assert numbers(flow, rate="10mbit")["rtt"] == pytest.approx(51.5)
    assert probed.name == 'b "x" \\ y'
    assert numbers(probed) == pytest.approx({"rate": 9.5e7, "rtt": 12, "loss": 0, "jitter": 0})


def test_page_without_help_is_recognized(tmp_path: Path) -> None:
    (found,) = read(
        tmp_path, "speedtest_ping_latency_milliseconds 15.5\nspeedtest_upload_bits_per_second 2e7\n"
    )
    assert found.name == "all"
    assert numbers(found) == pytest.approx({"rate": 2e7, "rtt": 15.5, "loss": 0, "jitter": 0})


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("node_network_speed_bytes", None),
        ("my_rtt_seconds", "rtt"),
        ("job:rtt_seconds", "rtt"),
        ("start_seconds", None),
        ("spurtt_seconds", None),
        ("xrtt_seconds", None),
        ("packet_loss_percent", "loss"),
        ("gloss_ratio", None),
        ("fifo_queue_limit_bytes", "buffer"),
        ("tcp_rtt", "rtt"),
        ("tcp_rtt_hist_ms", None),
    ],
)
def test_only_full_words_match_metrics(name: str, field: str | None) -> None:
    known = prometheus._known(name, {})
    assert (known and known[0].name) == field


# Browsers.


def rows(*given: dict[str, Any]) -> str:
    """A CSV file of these rows."""
    names = list(dict.fromkeys(name for row in given for name in row))
    text = io.StringIO()
    out = csv.DictWriter(text, names, lineterminator="\n")
    out.writeheader()
    out.writerows(given)
    return text.getvalue()


# A new connection with TLS: TCP took 24 ms, TLS as long again; then 500 KB in 200 ms.
NEW = {
    "connectStart": 10.0,
    "secureConnectionStart": 34.0,
    "connectEnd": 58.0,
    "responseStart": 100.0,
    "responseEnd": 300.0,
    "transferSize": 500_000,
    "rtt": 50,
    "downlink": 10,
}


def test_connection_and_response_times_yield_path(tmp_path: Path) -> None:
    (found,) = read(tmp_path, rows({"url": "https://example.org/a,b", **NEW}))
    assert numbers(found) == pytest.approx({"rate": 20e6, "rtt": 24, "loss": 0, "jitter": 0})
    assert found.says["flow_size"] == "500000 B"
    assert found.name == "16..32 ms, 16..32 Mbit/s"


@pytest.mark.parametrize(
    ("changed", "rtt_ms", "rate_mbps"),
    [
        ({"secureConnectionStart": 0}, 48, 20),  # Without TLS.
        ({"secureConnectionStart": 10}, 48, 20),  # QUIC: TLS begins at once.
        ({"connectEnd": 10, "secureConnectionStart": 10}, 50, 20),  # The connection was there.
        ({"connectStart": "", "secureConnectionStart": ""}, 50, 20),
        ({"connectEnd": 0, "secureConnectionStart": 0}, 50, 20),
        ({"transferSize": 99_999}, 24, 10),  # Too short to say a rate.
        ({"transferSize": 0}, 24, 10),  # From the cache.
        ({"responseEnd": 100}, 24, 10),
        ({"connectStart": "NaN", "responseStart": "null"}, 50, 10),
        ({"connectStart": -5, "responseEnd": "Infinity"}, 50, 10),
        ({"connectStart": "1e400", "responseEnd": "1e400"}, 50, 10),
    ],
)
def test_timings_follow_their_specifications(
    tmp_path: Path, changed: dict[str, Any], rtt_ms: float, rate_mbps: float
) -> None:
    (found,) = read(tmp_path, rows({**NEW, **changed}))
    assert numbers(found)["rtt"] == pytest.approx(rtt_ms)
    assert numbers(found)["rate"] == pytest.approx(rate_mbps * 1e6)


def test_network_rows_form_median_path(tmp_path: Path) -> None:
    given = [{"network": "AS64500", "rtt": rtt, "downlink": rtt / 10} for rtt in (100, 50, 75)]
    given += [{"network": "AS64501", "rtt": 300, "downlink": 1.5, "weight": 20}]
    given += [{"network": "AS64501", "rtt": "", "downlink": ""}]
    first, second = read(tmp_path, rows(*given))
    assert (first.name, first.weight, second.name, second.weight) == ("AS64500", 3, "AS64501", 20)
    assert numbers(first) == pytest.approx({"rate": 7.5e6, "rtt": 75, "loss": 0, "jitter": 0})
    assert "1 row of the source say neither" in second.notes[-1]


def test_ungrouped_rows_bin_by_factor_two(tmp_path: Path) -> None:
    given = [{"rtt": rtt, "downlink": downlink} for rtt in (40, 50, 60, 200) for downlink in (5, 6, 1.5)]
    found = {one.name: one for one in read(tmp_path, rows(*given))}
    assert {name: one.weight for name, one in found.items()} == {
        "32..64 ms, 4..8 Mbit/s": 6,
        "32..64 ms, 1..2 Mbit/s": 3,
        "128..256 ms, 4..8 Mbit/s": 2,
        "128..256 ms, 1..2 Mbit/s": 1,
    }
    assert numbers(found["32..64 ms, 4..8 Mbit/s"])["rtt"] == pytest.approx(50)


def test_flow_size_is_byte_weighted_median(tmp_path: Path) -> None:
    given = [{"rtt": 50, "downlink": 5, "transferSize": size} for size in (1000, 1000, 30_000, 40_000)]
    (found,) = read(tmp_path, rows(*given))
    assert found.says["flow_size"] == "40000 B"


TIMINGS = """\
name;startTime;connectStart;connectEnd;secureConnectionStart;responseStart;responseEnd;transferSize;network
https://cdn.example/0,1.js;10.5;20.5;120;60.5;200;1000;500000;AS64500
https://cdn.example/1.js;11.5;21.25;121;61.75;201;1001;30000;AS64501
"""


@pytest.mark.parametrize(
    ("change", "form"),
    [
        (lambda text: text, "semicolons"),
        (lambda text: text.replace(";", "\t"), "tabs"),
        (lambda text: text.replace(";", "|"), "bars"),
        (lambda text: "sep=;\n" + text, "a directive"),
        (lambda text: text.replace(".5", ",5").replace(".25", ",25").replace(".75", ",75"), "commas"),
        (lambda text: text.replace("\n", "\r\n"), "CR LF"),
        (lambda text: "\n" + text, "an empty line"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_browser_export_accepts_table_separators(
    tmp_path: Path, change: Callable[[str], str], form: str
) -> None:
    first, second = read(tmp_path, change(TIMINGS))
    assert (first.name, second.name) == ("AS64500", "AS64501"), form
    assert first.says == {"rate": "5000000 bit/s", "rtt": "40000 us", "flow_size": "500000 B"}
    assert second.says == {"rtt": "40500 us", "flow_size": "30000 B"}


def test_ambiguous_thousands_comma_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError) as caught:
        read(tmp_path, "rtt;downlink\n50;5.5\n1,234;5,5\n")
    assert "source:3" in str(caught.value)
    assert "separators of thousands; it is rtt 1,234; write 1234 or 1.2340" in str(caught.value)


def test_rounded_zero_rtt_is_explained(tmp_path: Path) -> None:
    (found,) = read(tmp_path, "downlink,rtt,network\n10,0,FR\n")
    with pytest.raises(ScenarioError, match="it is 0 in the source, because browsers round it to 25 ms"):
        numbers(found)


@pytest.mark.parametrize("form", ["lines", "list"])
def test_json_accepts_lines_lists_and_nesting(tmp_path: Path, form: str) -> None:
    objects = [{"name": "https://example.org/", **NEW}, {"connection": {"rtt": 100, "downlink": 2, "x": [1]}}]
    text = "\n".join(map(json.dumps, objects)) if form == "lines" else json.dumps(objects, indent=1)
    first, second = read(tmp_path, text)
    assert numbers(first)["rtt"] == pytest.approx(24)
    assert numbers(second) == pytest.approx({"rate": 2e6, "rtt": 100, "loss": 0, "jitter": 0})


def test_million_rows_form_few_paths(tmp_path: Path) -> None:
    lines = ["rtt,downlink,transferSize"]
    lines += [f"{25 * (1 + at % 16)},{0.5 * (1 + at % 20)},{1000 + at % 977}" for at in range(1000)] * 1000
    found = read(tmp_path, "\n".join(lines))
    assert sum(one.weight for one in found) == 1_000_000
    assert len(found) < 40


def test_every_exported_path_is_answered(tmp_path: Path) -> None:
    given = [{"network": name, "rtt": 40, "downlink": 5} for name in ("a", "b", "b")]
    answers = many.answer(read(tmp_path, rows(*given)), {"buffer": "1 bdp", "candidates": OURS}, budget_s=300)
    assert [one.path.name for one in answers.answered] == ["a", "b"]
    assert sum(answers.share(name) for name in (*OURS, None)) == pytest.approx(1)


def test_file_answers_are_written_with_map(tmp_path: Path) -> None:
    given = [
        {"network": "</script><b>", "rtt": 20, "downlink": 5},
        {"network": "far", "rtt": 300, "downlink": 2},
    ]
    file = tmp_path / "rum.csv"
    file.write_text(rows(*given, given[1]))
    words = [
        "advise",
        "--from",
        str(file),
        "--budget",
        "150",
        "--candidates",
        "cubic",
        "--candidates",
        "bbr1",
    ]
    out = tmp_path / "answers"
    done = command(*words, "--for", "throughput", "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == f"Map: {out / 'index.html'}"
    reported = json.loads((out / "answers.json").read_text())
    assert [(one["name"], one["weight"]) for one in reported["paths"]] == [("</script><b>", 1), ("far", 2)]
    with (out / "answers.csv").open(newline="") as table:
        listed = list(csv.DictReader(table))
    assert [one["winner"] or None for one in listed] == [one["winner"] for one in reported["paths"]]
    index = (out / "index.html").read_text()
    assert "&lt;/script&gt;&lt;b&gt;" in index and "</script><b>" not in index
    assert reported["answer"] in index
    assert (out / "map.png").read_bytes().startswith(b"\x89PNG")
    answered = [
        many.Answered(path, advise(path.question({"buffer": "1 bdp", "candidates": OURS}), budget_s=0.1))
        for path in sources.read(file)
    ]
    answers = many.Answers(tuple(answered))
    ((far, near),) = many_page.spec(answers)["datasets"].values()
    assert (far["name"], near["name"]) == ("far", "</script><b>"), "the heaviest is drawn first"
    assert far["area"] == 2 * near["area"]
    assert {far["winner"], near["winner"]} <= {*OURS, "no clear winner"}


def test_output_directory_for_one_path_refused(tmp_path: Path) -> None:
    done = command("advise", "--rate", "5mbit", "--rtt", "20ms", "--out", str(tmp_path / "new"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "give --from" in done.stderr
    assert not (tmp_path / "new").exists()


# Any source, damaged or hostile.

DEEP = "[" * 200_000
START = '{"status":"success","data":{"resultType":"vector","result":'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # Prometheus' API.
        (
            '{"status":"error","errorType":"bad_data","error":"parse \\u001b[31m error"}',
            "it says 'parse \\x1b[31m",
        ),
        ('{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}', "not 'scalar'"),
        (
            '{"status":"success","data":{"resultType":"matrix","result":[{"metric":{}}]}}',
            "`metric` and `values`",
        ),
        ('{"status":"success","data":[],"resultType":1}', "resultType vector or matrix"),
        (START + '{"a":1}}}', "a list of series"),
        (START + "[7]}}", "`metric` and `value`"),
        (START + '[{"metric":{},"value":[1]}]}}', "`metric` and `value`"),
        (START + '[{"metric":{"__name__":"up"},"value":[1,"1"]}]}}', "there is up"),
        (START + '[{"metric":{"__name__":"rtt_seconds"},"value":[1,"NaN"]}]}}', "whose names say"),
        (START + '[{"metric":{"__name__":7},"value":[1,"1"]}]}}', "whose names say"),
        (
            START + '[{"metric":{"__name__":"rtt_seconds"},"value":[1,' + "9" * 3000 + "]}]}}",
            "whose names say",
        ),
        (START + "[]}}", "whose names say"),
        (START + '[{"metric":', "damaged or cut off"),
        (START + DEEP, "nested too deeply"),
        (START + "[]}} trailing", "damaged or cut off"),
        (START + "[]}} 7", "an answer of Prometheus'"),
        (START + "[" + "{}," * 3_000_000 + "{}]}}", "at most 320 MiB of memory"),
        # A page.
        ("# TYPE up gauge\nup 1\n", "there is up"),
        ("# HELP x y\n", "whose names say"),
        ('# TYPE rtt_seconds gauge\nrtt_seconds{path="a 1\n', "whose names say"),
        ("# TYPE rtt_seconds gauge\nrtt_seconds" + " " * 5_000_000 + "\n", "whose names say"),
        ("# TYPE rtt_seconds gauge\nrtt_seconds{" + "a" * 5_000_000 + "\n", "whose names say"),
        (
            "# TYPE rtt_seconds gauge\n" + "".join(f'rtt_seconds{{path="{at}"}} 1\n' for at in range(10_001)),
            "at most 10000 paths",
        ),
        # Browsers.
        ("downlink,rtt\n", "none in 0 rows"),
        ("downlink,rtt\nfast,slow\n,\n", "none in 2 rows"),
        ('downlink,rtt\n"' + "x" * 200_000 + "\n", "CSV (field larger"),
        ("downlink,rtt,network\n" + "".join(f"1,2,{at}\n" for at in range(10_001)), "at most 10000 paths"),
        ('[{"downlink": 1}, 7]', "JSON objects"),
        ('{"downlink": 1}\n{"downlink": ', ":2"),
        ('{"downlink": true, "rtt": [1]}', "none in 1 row"),
        ('{"downlink": ' + DEEP, "nested too deeply"),
        ('{"downlink": 1' + "0" * 5000 + "}", "damaged"),
        # iperf3.
        (
            '{"start":{"version":"iperf"},"end":{"sum_received":{"bits_per_second":1' + "0" * 400 + "}}}",
            "bits_per",
        ),
        ('{"start":{"version":"iperf"},"end":{"sum_received":{"bits_per_second":true}}}', "bits_per_second"),
        ('{"start":{"version":"iperf"},"end":' + DEEP, "JSON as `iperf3 -J` writes it"),
        # ss.
        (
            "ESTAB 0 0 a:1 b:2\n\t cwnd:10 minrtt:1 delivered:999 delivery_rate " + "9" * 400 + "bps\n",
            "one path",
        ),
        (
            "ESTAB 0 0 a:1 b:2\n\t cwnd:10 minrtt:" + "1" * 400 + " delivered:999 delivery_rate 9bps\n",
            "one path",
        ),
        ("cwnd: minrtt:\n\t" + "1" * 3_000_000 + "\n", "one path"),
        ("cwnd: minrtt:\n" + ("\t" + "1" * 16_000 + "\n") * 500, "one path"),
        # A table.
        ("rate,rtt\n" + "1mbit,2 ms\n" * 1_000_000, "at most 10000 paths"),
        ("rate,rtt\n" + "1," * 3_000_000, "at most 2 cells"),
        ("rate,rtt,weight\n1mbit,2 ms,1e999\n", "a number from 0 in weight"),
        # Nothing known.
        ("\0" * 1000, "text in UTF-8 or UTF-16"),
        ("{}", "a CSV file of paths"),
        ("[" * 1000, "a CSV file of paths"),
        ("\n" * 1_000_000, "a CSV file of paths"),
    ],
)
def test_unreadable_source_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        read(tmp_path, text)
    sentence = str(caught.value)
    assert message in sentence
    assert len(sentence) < 500
    assert sentence.isprintable()


def test_truncated_source_is_read_or_refused(tmp_path: Path) -> None:
    """Cut off anywhere, and with any byte changed, a source gives paths or a sentence."""
    whole = [
        vector(
            (metric("rtt_seconds", path="a"), "0.02"), (metric("download_bits_per_second", path="a"), "9e6")
        ),
        PAGE,
        rows(NEW, NEW),
        json.dumps([NEW]),
        "name,rate,rtt\nhome,5mbit,20 ms\n",
    ]
    for text in whole:
        data = text.encode()
        cuts = [data[:at] for at in range(len(data))]
        changed = [data[:at] + bytes([data[at] ^ 0x15]) + data[at + 1 :] for at in range(len(data))]
        for damaged in cuts + changed:
            try:
                found = read(tmp_path, damaged)
            except ScenarioError as error:
                assert len(str(error)) < 1000
                continue
            assert found and all(path.name for path in found)


@pytest.mark.parametrize(
    "text",
    [
        "name,rate,rtt\n\x1b[2Jhome\x07,5mbit,20 ms\n",
        json.dumps([{**NEW, "network": "\x1b[2Jhome\x07"}]),
        vector((metric("rtt_seconds", path="\x1b[2Jhome\x07"), "0.02")),
    ],
)
def test_source_names_are_sanitized_for_terminal(tmp_path: Path, text: str) -> None:
    (found,) = read(tmp_path, text)
    assert found.name == "\ufffd[2Jhome\ufffd"
    (long,) = read(tmp_path, text.replace("home", "home" * 1000))
    assert len(long.name) == 80


def test_unsimulatable_path_reports_reason(tmp_path: Path) -> None:
    paths = read(tmp_path, "name,rate,rtt\nhome,20mbit,20 ms\noffice,5 Tbit/s,10 ms\n")
    answers = many.answer(paths, {"buffer": "1 bdp", "candidates": OURS}, budget_s=0.1)
    assert [one.path.name for one in answers.answered] == ["home"]
    (refused,) = answers.refused
    assert refused.path.name == "office" and refused.why.startswith("rate: ")
    assert str(answers).endswith("1 of 2 paths could be answered.")
    assert [one["name"] for one in answers.to_dict()["not_answered"]] == ["office"]
    # A wrong option is no fault of the file.
    with pytest.raises(ScenarioError) as caught:
        many.answer(paths[:1], {"buffer": "much", "candidates": OURS}, budget_s=600)
    assert caught.value.field == "buffer"


def test_weights_stay_numbers_in_sum(tmp_path: Path) -> None:
    paths = read(tmp_path, "name,rate,rtt,weight\na,5mbit,20 ms,1e308\nb,5mbit,20 ms,1e308\n")
    answers = many.answer(paths, {"buffer": "1 bdp", "candidates": OURS}, budget_s=0.1)
    assert sum(answers.share(name) for name in (*OURS, None)) == pytest.approx(1)


def test_every_reader_requires_regular_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/dev/zero")
    for path in (tmp_path / "pipe", tmp_path / "link", Path("/dev/zero"), tmp_path):
        with pytest.raises(ScenarioError, match="regular file"):
            sources.read(path)


def _pcap(*packets: bytes, claimed: int | None = None) -> bytes:
    head = b"\xd4\xc3\xb2\xa1\x02\x00\x04\x00" + bytes(8) + b"\xff\xff\x00\x00\x01\x00\x00\x00"
    return head + b"".join(
        bytes(8)
        + (claimed or len(one)).to_bytes(4, "little")
        + (claimed or len(one)).to_bytes(4, "little")
        + one
        for one in packets
    )


@pytest.mark.parametrize(
    "data",
    [
        _pcap(),
        _pcap()[:10],
        _pcap(b"\xff" * 60),
        _pcap(b"\x00" * 60)[:-30],
        _pcap(b"short", claimed=0xFFFFFFF0),
        _pcap(bytes(12) + b"\x08\x00\x4f" + b"\xff" * 40),
        b"\x0a\x0d\x0d\x0a" + b"\xff" * 100,
    ],
)
def test_a_damaged_capture_is_a_sentence(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "capture").write_bytes(data)
    done = command("advise", "--from", str(tmp_path / "capture"))
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.startswith("fullpipe: ") and "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_documented_columns_match_readers() -> None:
    page = (Path(__file__).parents[1] / "docs" / "how-to" / "advisor.md").read_text(encoding="utf-8")
    for name in rum._OWN | {"connectend", "secureconnectionstart", "rtt", "network", "weight"}:
        assert f"`{name}`" in page.lower(), name
    endings = {ending.partition("_per_second")[0] for ending, *_ in prometheus._ENDINGS}
    for ending in endings:
        stem = ending.rpartition("_")[0] if ending.endswith(("bits", "bytes", "seconds")) else ending
        assert f"`{stem}" in page or f"`{ending}`" in page, ending
    for label in prometheus._LABELS:
        assert f"`{label}`" in page, label


def test_small_or_incomplete_path_is_named(tmp_path: Path) -> None:
    (small,) = read(tmp_path, "name,rate,rtt\nlan,10mbit,0.1ms\n")
    with pytest.raises(ScenarioError, match=r"^lan: --buffer "):
        small.question({"buffer": "0.5 bdp", "candidates": OURS})
    (rest,) = read(tmp_path, "name,rate\nparis,10mbit\n")
    with pytest.raises(ScenarioError, match="does not give it for paris; give --rtt"):
        rest.question({"candidates": OURS})


def test_many_stream_result_is_recognized(tmp_path: Path) -> None:
    connected = [{"socket": number, "local_host": "192.0.2.1"} for number in range(200)]
    message = {
        "start": {"connected": connected, "version": "iperf 3.18"},
        "end": {"sum_received": {"bits_per_second": 5e7}, "streams": [{"sender": {"min_rtt": 40_000}}]},
    }
    text = json.dumps(message)
    assert text.index("iperf") > 8192
    (path,) = read(tmp_path, text)
    assert numbers(path) == {"rate": 5e7, "rtt": 40.0, "loss": 0.0, "jitter": 0.0}


def test_peer_is_second_address(tmp_path: Path) -> None:
    more = "\t cubic rtt:5/1 minrtt:5 cwnd:10 delivery_rate 20Mbps delivered:5000 bytes_sent:7000000\n"
    lines = "".join(
        f"ESTAB 0 0 10.0.0.1:443 192.0.2.{host}:51000 uid:1000 ino:12345 sk:1001 <->\n{more}"
        for host in (7, 8)
    )
    assert [path.name for path in read(tmp_path, lines)] == ["192.0.2.7", "192.0.2.8"]


def test_a_quantity_is_said_once(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="either rate or rate_mbps; not both"):
        read(tmp_path, "rate,rate_mbps,rtt\n50mbit,20,5ms\n")


def test_weights_have_a_sum(tmp_path: Path) -> None:
    paths = read(tmp_path, "name,weight,rate_mbps,rtt_ms\nx,0,10,5\n")
    with pytest.raises(ScenarioError, match="a sum above zero"):
        many.answer(paths, {"buffer": "1 bdp", "candidates": OURS}, seeds=2)


def test_a_spreadsheet_computes_no_name(tmp_path: Path) -> None:
    paths = read(tmp_path, "name,rate,rtt\n=1+1,1mbit,20ms\n")
    text = many.answer(paths, {"buffer": "1 bdp", "candidates": OURS}, seeds=2).to_csv()
    assert text.splitlines()[1].startswith("'=1+1,")


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="there is no /proc")
def test_read_failure_is_an_error() -> None:
    with pytest.raises(ScenarioError, match="a file that can be read"):
        sources.read(Path("/proc/self/mem"))
