"""`fullpipe advise`: its ranking, what it reads, and what it refuses."""

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import command
from fullpipe import evidence
from fullpipe._native import ScenarioError
from fullpipe.advisor import (
    Question,
    advise,
    answer,
    crossings,
    goals,
    many,
    nearest_cells,
    ranking,
    recipes,
    sources,
)
from fullpipe.advisor import advice as answers
from fullpipe.advisor import candidates as there
from fullpipe.advisor.goals import Trial
from fullpipe.advisor.question import competitors, parsed, shown, written
from fullpipe.advisor.trials import EXTRAS, Bench, Trials
from fullpipe.measures.statistics import Estimate

OURS = ("reno", "cubic", "bbr1")


def trial(score: float) -> Trial:
    """A trial whose score by throughput is this."""
    return Trial(
        goodput_bps=score * 1e6,
        rtt_p95_ms=50,
        loss_ratio=0,
        fct_ms=100,
        harm=0.5,
        used=score,
        short=0.8,
        ideal_fct_ms=50,
    )


def ranked(**scores: list[float]) -> ranking.Ranking:
    """The ranking that these scores give."""
    return ranking.ranked(goals.BULK, {name: [trial(one) for one in own] for name, own in scores.items()})


def test_candidate_over_one_percent_is_behind() -> None:
    found = ranked(a=[0.90, 0.91, 0.92, 0.90], b=[0.85, 0.86, 0.86, 0.85])
    assert (found.winner, found.settled) == ("a", True)
    assert found.place("b").behind.mean == pytest.approx(0.0525)


def test_candidates_within_one_percent_tie() -> None:
    found = ranked(a=[0.900, 0.901, 0.902, 0.900], b=[0.899, 0.900, 0.901, 0.899], c=[0.5, 0.5, 0.5, 0.51])
    assert (found.winner, found.leaders, found.settled) == (None, ("a", "b"), True)


def test_candidates_whose_seeds_disagree_are_undecided() -> None:
    found = ranked(a=[0.9, 0.5, 0.9, 0.6], b=[0.5, 0.9, 0.6, 0.8])
    assert (found.winner, found.leaders, found.settled) == (None, ("a", "b"), False)


def test_overlapping_ranges_compare_by_seed() -> None:
    """Seeds differ by far more than the candidates do; compared seed by seed, b is always behind."""
    found = ranked(a=[0.50, 0.70, 0.60, 0.90], b=[0.45, 0.66, 0.55, 0.86])
    assert found.winner == "a"


def test_more_seeds_run_until_settled() -> None:
    question = Question(rate="20mbit", rtt="40ms", competitors=(("cubic", 3),), candidates=OURS)
    bench = Bench.of("sim")
    few = ranking.rank(bench, question, goals.named("delay", sized=False), until_s=0.0)
    assert few.seeds == ranking.FIRST, "the first round runs in any case"
    calls: list[int] = []

    class Counting(Bench):
        def run(
            self, questions: Sequence[Question], seeds: Sequence[int], extras: frozenset[str] = EXTRAS
        ) -> list[Trials]:
            calls.append(len(seeds))
            odd, even = ([trial(0.9 if seed % 2 == part else 0.5) for seed in seeds] for part in (1, 0))
            return [{"reno": odd, "cubic": even}]

    two = replace(question, candidates=("reno", "cubic"))
    found = ranking.rank(Counting(bench.world), two, goals.BULK, until_s=float("inf"))
    assert (found.seeds, found.settled) == (ranking.MOST, False)
    assert calls == [4, 4, 8, 16, 32, 64, 128]


@pytest.mark.parametrize(
    ("path", "goal", "winner"),
    [
        # Random loss stops a controller that halves on it, and not one with a model.
        ({"rate": "50mbit", "rtt": "80ms", "loss": "1 %"}, "throughput", "bbr1"),
        # A buffer of eight BDPs is filled by those that wait for a loss.
        ({"rate": "20mbit", "rtt": "40ms", "buffer": "8 bdp"}, "delay", "bbr1"),
        # BBR takes nearly everything from a CUBIC flow in a shallow buffer.
        ({"rate": "50mbit", "rtt": "40ms", "buffer": "0.3 bdp"}, "neighbours", "cubic"),
    ],
)
def test_known_cases_have_known_winner(path: dict[str, str], goal: str, winner: str) -> None:
    found = advise(Question(**path, candidates=("cubic", "bbr1")), goal=goal)
    assert found.winner == winner


def test_every_answer_format_agrees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crossings, "nearest", lambda *_, **__: ([], []))
    question = Question(rate="20mbit", rtt="40ms", buffer="8 bdp", candidates=OURS)
    found = advise(question, goal="delay", seeds=4)
    reported = json.loads(found.to_json())
    assert reported["winner"] == found.winner == reported["ranking"][0]["controller"]
    assert found.answer.startswith("Run bbr1 (Linux's bbr): ")
    opening = ["Given: rate 20mbit, rtt 40ms, buffer 8 bdp, candidates reno, cubic, bbr1, goal delay."]
    opening += [line for line in str(found).splitlines() if line.startswith("Assumed: loss none, ")]
    assert str(found).splitlines()[:3] == [*opening, found.answer]
    assert list(reported)[:5] == ["path", "given", "measured", "assumed", "left_out"]
    assert reported["answer"] == found.answer
    assert reported["seeds"] == found.ranking.seeds
    first = reported["ranking"][0]["measures"]
    assert first["goodput"]["unit"] == "Mbit/s"
    assert 15 < first["goodput"]["mean"] < 20
    assert first["goodput"]["ci95"][0] <= first["goodput"]["mean"] <= first["goodput"]["ci95"][1]


def test_range_is_answered_throughout() -> None:
    question = Question(
        rate="50mbit", rtt=parsed("rtt", "20..80 ms"), buffer=parsed("buffer", "20 KB..2 MB"), candidates=OURS
    )
    found = advise(question, goal="throughput", budget_s=600)
    assert len(found.paths) == len(found.rankings) == 48
    rtts = [path.numbers().rtt_ms for path in found.paths]
    assert 20 <= min(rtts) < 25
    assert 65 < max(rtts) <= 80
    wins = [sum(one.winner == part.candidate for one in found.rankings) for part in found.parts]
    assert [part.wins * len(found.rankings) for part in found.parts] == pytest.approx(wins)
    assert found.winner is None
    assert found.answer.startswith("No clear winner over the range. Clearly best: of 48 paths in it, ")


def test_range_without_winner_names_who_is_never_worse() -> None:
    question = Question(
        rate="50mbit", rtt="40ms", buffer=parsed("buffer", "20..60 KB"), candidates=("bbr1", "cubic")
    )
    found = advise(question, goal="throughput", seeds=2)
    assert found.winner is None
    assert found.parts[0].leads == 1 > found.parts[0].wins
    assert ". Best or as good on all of them: bbr1 (Linux's bbr). Least regret: bbr1 (" in found.answer
    # Its lines are printed, so that its harm is in the first sentence, too.
    assert found.answer.endswith(" of a cubic neighbour's fair share.")
    assert found.lines == tuple(recipes.of("bbr1", answers.hosts_of(question)))


def test_unknown_name_is_reported_before_their_number() -> None:
    with pytest.raises(ScenarioError, match='"bbr2" is not available; expected one of reno, cubic, '):
        advise(Question(rate="50mbit", rtt="40ms", candidates=("bbr2",)), goal="throughput")


def test_buffer_in_bdp_follows_each_point() -> None:
    question = Question(rate=parsed("rate", "10..40 mbit"), rtt="40 ms", buffer=parsed("buffer", "1..4 bdp"))
    for place in (0.0, 1.0):
        path = question.at([place, 0.5]).numbers()
        assert path.buffer_bytes == pytest.approx(2 * path.bdp_bytes, rel=0.01)


def test_harm_is_what_a_neighbour_loses() -> None:
    question = Question(rate="20mbit", rtt="40ms", buffer="1 bdp", candidates=("bbr1", "cubic"))
    (found,) = Bench.of("sim").run([question], range(1, 4))
    harm = {name: sum(one.harm or 0 for one in own) / len(own) for name, own in found.items()}
    assert 0.35 < harm["cubic"] < 0.65, "CUBIC shares with itself"
    assert harm["bbr1"] > harm["cubic"]


def test_incomplete_short_flows_have_no_time() -> None:
    question = Question(
        rate="100 kbit/s",
        rtt="40ms",
        buffer="20 packets",
        loss="70 %",
        flow_size="1 MB",
        candidates=("reno", "cubic"),
    )
    (found,) = Bench.of("sim").run([question], [1])
    assert [one.fct_ms for one in found["cubic"]] == [None]
    assert found["cubic"][0].quick == 0


@pytest.mark.parametrize(
    ("quantity", "value", "message"),
    [
        ("rate", 45.4e6, "45 Mbit/s"),
        ("rtt", 0.25, "250 us"),
        ("buffer", 45_600, "46 KB"),
        ("loss", 0.0012, "0.12 %"),
    ],
)
def test_values_are_shown_in_usual_units(quantity: str, value: float, message: str) -> None:
    assert shown(quantity, value) == message
    base = Question(rate="10mbit", rtt="10ms", buffer="100 KB", candidates=OURS)
    assert replace(base, **{quantity: written(quantity, value)}).numbers().of(quantity) == pytest.approx(
        value, rel=0.01
    )


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"rtt": parsed("rtt", "80..20 ms")}, "rtt"),
        ({"rate": "fast"}, "rate"),
        ({"loss": "200 %"}, "loss"),
        ({"policer": "x"}, "policer"),
        ({"queue": "nothing"}, "queue"),
        ({"tcp_memory": "none"}, "tcp_memory"),
        ({"flow_size": "-1 B"}, "flow_size"),
        ({"candidates": ("cubic",)}, "candidates"),
        ({"candidates": ("cubic", "nobody")}, "candidates"),
        ({"competitors": (("nobody", 1),)}, "competitors"),
    ],
)
def test_a_mistake_names_what_was_given(given: dict[str, Any], named: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        advise(Question(**{"rate": "10mbit", "rtt": "10ms", "candidates": OURS, **given}))
    assert caught.value.field == named


def test_range_from_zero_suggests_positive_range() -> None:
    question = Question(rate="10mbit", rtt="10ms", loss=parsed("loss", "0..1 %"), candidates=OURS)
    with pytest.raises(ScenarioError, match=r"0\.01\.\.1%"):
        advise(question)


@pytest.mark.parametrize("given", ["1..2..3 ms", "..20 ms", "20 ms.."])
def test_half_a_range_is_refused(given: str) -> None:
    with pytest.raises(ScenarioError, match="a range of two"):
        parsed("rtt", given)


def test_lower_bound_may_omit_unit() -> None:
    assert str(parsed("rtt", "20..80 ms")) == "20 ms..80 ms"
    assert str(parsed("rtt", "0.5 s..1 s")) == "0.5 s..1 s"
    assert parsed("rtt", "20 ms") == "20 ms"


@pytest.mark.parametrize(
    ("given", "range_"),
    [
        ("40ms±10", "30 ms..50 ms"),
        ("40 ± 10 ms", "30 ms..50 ms"),
        ("40ms+-10ms", "30 ms..50 ms"),
        ("0.3 s +/- 0.1", "0.2 s..0.4 s"),
        ("50mbit ± 10 %", "45 mbit..55 mbit"),
        ("1%±0.5%", "0.5 %..1.5 %"),
    ],
)
def test_value_with_deviation_is_a_range(given: str, range_: str) -> None:
    assert str(parsed("rtt", given)) == range_


@pytest.mark.parametrize("given", ["40ms±40", "40ms±0", "40ms±1s", "1e999 ms±1", "40 ± 10 ± 5 ms", "±5 ms"])
def test_impossible_deviation_is_refused(given: str) -> None:
    with pytest.raises(ScenarioError, match="rtt"):
        advise(Question(rate="10mbit", rtt=parsed("rtt", given), candidates=OURS))


def test_competitors_have_a_number() -> None:
    assert competitors(["cubic:3", "bbr1", "bbr1:probe_gain=1.5"]) == (
        ("cubic", 3),
        ("bbr1", 1),
        ("bbr1:probe_gain=1.5", 1),
    )
    with pytest.raises(ScenarioError, match="1 to 1000"):
        competitors(["cubic:0"])


# What the machine has.


@pytest.mark.parametrize(
    ("rows", "qdisc"),
    [
        ([{"kind": "fq", "root": True}], "fq"),
        ([{"kind": "mq", "root": True}, {"kind": "fq"}, {"kind": "fq"}], "fq"),
        ([{"kind": "mq", "root": True}, {"kind": "fq"}, {"kind": "fq_codel"}], "fq_codel"),
        ([{"kind": "mq", "root": True}], "mq"),
        ([], "of new devices"),
        ("no list", "of new devices"),
    ],
)
def test_qdisc_is_that_of_the_default_routes_device(
    rows: Any, qdisc: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    routes = tmp_path / "route"
    ending = "0\t0\t{}\t{}\t0\t0\t0"
    routes.write_text(
        "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
        f"slow\t00000000\t0100000A\t0003\t{ending.format(200, '00000000')}\n"
        f"eth7\t00000000\t0100000A\t0003\t{ending.format(100, '00000000')}\n"
        f"eth8\t0000000A\t00000000\t0001\t{ending.format(0, '00FFFFFF')}\n"
    )
    tc = tmp_path / "tc"
    tc.write_text(f"#!/bin/sh\n[ \"$*\" = '-j qdisc show dev eth7' ] && echo '{json.dumps(rows)}'\n")
    tc.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(there, "default_qdisc", lambda: "of new devices")
    assert there.qdisc(routes) == qdisc
    assert there.qdisc(tmp_path / "none") == "of new devices"


def test_candidates_come_from_kernel_and_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.release", lambda: "6.1")
    modules = tmp_path / "6.1" / "kernel" / "net" / "ipv4"
    modules.mkdir(parents=True)
    (modules / "tcp_vegas.ko.xz").touch()
    (modules / "tcp_dctcp.ko").touch()
    available = tmp_path / "available"
    available.write_text("reno cubic unknown\n")
    found = there.here(available, tmp_path)
    assert [(one.name, one.loaded) for one in found] == [("reno", True), ("cubic", True), ("vegas", False)]
    assert there.here(tmp_path / "none", tmp_path) == []


def test_recipes_use_linux_names() -> None:
    lines = {one.where: one for one in recipes.of("bbr1", recipes.Hosts())}
    assert lines["one program"].text == 'setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "bbr", 3)'
    assert "tcp_congestion_control = bbr" in lines["after every boot"].text
    assert lines["one program"].checked
    assert recipes.of("copa", recipes.Hosts()) == [], "nothing that people run has it"


def test_nearest_cells_match_controllers_and_path() -> None:
    path = Question(rate="100mbit", rtt="20ms", buffer="4 bdp").numbers()
    (distance, nearest), *_ = nearest_cells.nearest(path, ("cubic",))
    assert (distance, nearest.name) == (pytest.approx(0, abs=1e-6), "cubic, 100 Mbit/s, 20 ms, 4 bdp")
    assert "0.0 % apart" in nearest_cells.sentence(path, ("cubic",))
    assert "stands alone" in nearest_cells.sentence(path, ("copa",))
    far = Question(rate="40gbit", rtt="1ms", buffer="4 bdp").numbers()
    assert "No path like this one" in nearest_cells.sentence(far, ("cubic",))


def test_cells_have_ideal_hosts_and_path() -> None:
    lines = evidence.read(Path(__file__).parents[1] / "results" / "agreement.jsonl")
    found = nearest_cells.of(lines)
    assert found == list(nearest_cells.cells())
    name = "cubic, 10 Mbit/s, 100 ms"
    ideal = next(one for one in found if one.name == name)
    linux = next(one for one in lines if (one["key"]["cell"], one["key"]["hosts"]) == (name, "linux"))
    assert ideal.goodput_apart == next(
        one["measures"]["goodput_bps"]["difference"]
        for one in lines
        if one["key"] == {**linux["key"], "hosts": "ideal"}
    )
    assert nearest_cells.of([linux]) == []


# What people have.

SS = """\
State  Recv-Q Send-Q Local Address:Port  Peer Address:Port Process
ESTAB  0      0      192.0.2.1:443       198.51.100.7:55630
\t cubic wscale:7,7 rto:240 rtt:41.2/1.1 mss:1448 cwnd:62 bytes_sent:1000000 bytes_retrans:2500 \
delivery_rate 45.2Mbps delivered:691 minrtt:39.8 snd_wnd:65536
ESTAB  0      0      192.0.2.1:443       198.51.100.7:55632
\t bbr wscale:7,7 rtt:41.2/1.1 mss:1448 cwnd:62 bytes_sent:9000000 bbr:(bw:51000000bps,mrtt:39.9) \
delivery_rate 20000000bps delivered:6000 app_limited minrtt:39.9
ESTAB  0      0      [2001:db8::1]:443   [2001:db8::2]:40000
\t cubic rtt:10/1 mss:1448 cwnd:10 bytes_sent:900 delivery_rate 1000bps delivered:3 minrtt:10
"""


def test_ss_yields_path_per_active_peer(tmp_path: Path) -> None:
    (tmp_path / "ss").write_text(SS)
    (found,) = sources.read(tmp_path / "ss")
    # The second connection is limited by its application, and so takes no share.
    assert (found.name, found.weight) == ("198.51.100.7", 10_000_000)
    assert found.says == {"rate": "45200000 bit/s", "rtt": "39800 us"}
    assert found.notes == ("0.025 % of the bytes were sent again",)


IPERF = {
    "start": {"version": "iperf 3.12", "connecting_to": {"host": "192.0.2.9"}},
    "end": {
        "streams": [{"sender": {"min_rtt": 20100}}, {"sender": {"min_rtt": 19900}}],
        "sum_sent": {"retransmits": 12},
        "sum_received": {"bits_per_second": 93.5e6},
    },
}


def test_iperf3_yields_rate_and_rtt(tmp_path: Path) -> None:
    (tmp_path / "iperf").write_text(json.dumps(IPERF, indent=1))
    (found,) = sources.read(tmp_path / "iperf")
    assert found.says == {"rate": "93500000 bit/s", "rtt": "19900 us"}
    assert (found.name, found.notes) == ("192.0.2.9", ("12 segments were sent again",))


def test_table_yields_path_per_row(tmp_path: Path) -> None:
    (tmp_path / "paths.csv").write_text(
        "\ufeffname,rate_mbps,rtt,loss_pct,weight\nhome,5,20 ms,,10\n\n,4,45..60 ms,0.5,3\n",
        encoding="utf-8",
    )
    home, other = sources.read(tmp_path / "paths.csv")
    assert (home.name, home.says, home.weight) == ("home", {"rate": "5 Mbit/s", "rtt": "20 ms"}, 10)
    assert (other.name, other.says["loss"], other.says["rtt"]) == ("row 4", "0.5 %", "45 ms..60 ms")
    found = many.answer([home, other], {"buffer": "1 bdp", "candidates": OURS}, seeds=2)
    assert [one.path.name for one in found.answered] == ["home", "row 4"]
    assert sum(found.share(name) for name in (*OURS, None)) == pytest.approx(1)
    assert found.to_csv().splitlines()[1].startswith("home,10,")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a CSV file of paths"),
        ("hello\nworld\n", "a CSV file of paths"),
        ("rate,rtt\n", "at least one path"),
        ("rate,rtt,speed\n1,2,3\n", "either rate or speed; not both"),
        ("rate,rate,rtt\n1,1,2\n", "each column once"),
        ("rate,rtt\n1,2,3\n", "at most 2 cells; it has 3"),
        ("rate_mbps,rtt\nfast,20 ms\n", ':2: rate_mbps: "fast"'),
        ("rate_mbps,rtt\n-1,20 ms\n", ':2: rate_mbps: "-1"'),
        ("rate_mbps,rtt,weight\n1,20 ms,inf\n", "a number from 0 in weight"),
        ('rate,rtt\n"' + "x" * 200_000 + "\n", "CSV (field larger"),
        ('{"start": {"version": "iperf 3.1"}, ', "JSON as `iperf3 -J` writes it"),
        ('{"start": {"version": "iperf 3.1"}, "error": "busy"}', "iperf3 reports 'busy'"),
        (
            '{"start": {"version": "iperf 3.1"}, "end": {"sum_received": 3}}',
            "end.sum_received.bits_per_second",
        ),
        (
            '{"start": {"version": "iperf"}, "end": {"sum_received": {"bits_per_second": NaN}}}',
            "bits_per_second",
        ),
        ('{"start": {"version": "iperf"}, "x": ' + "[" * 100_000, "JSON as `iperf3 -J` writes it"),
        ("cwnd:1 minrtt:x\n", "at least one path"),
        ("rate,rtt\n" + "1mbit,2 ms\n" * 10_001, "at most 10000 paths"),
    ],
)
def test_a_damaged_source_is_a_sentence(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "file").write_text(text)
    with pytest.raises(ScenarioError) as caught:
        sources.read(tmp_path / "file")
    assert message in str(caught.value)
    assert len(str(caught.value)) < 500


def test_only_bounded_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(sources.MOST_BYTES + 1)
    (tmp_path / "binary").write_bytes(b"\xff\x00\xfe" * 10)
    for path, message in (
        (tmp_path / "pipe", "regular file"),
        (Path("/dev/zero"), "regular file"),
        (tmp_path, "regular file"),
        (large, "at most 32 MiB"),
        (tmp_path / "binary", "UTF-8"),
        (tmp_path / "none", "can be read"),
    ):
        with pytest.raises(ScenarioError, match=message):
            sources.read(path)


def test_options_override_and_complete_source(tmp_path: Path) -> None:
    (tmp_path / "paths.csv").write_text("rate\n10mbit\n")
    (path,) = sources.read(tmp_path / "paths.csv")
    with pytest.raises(ScenarioError, match="give --rtt"):
        path.question({"rtt": None})
    assert path.question({"rtt": "20 ms", "rate": "1mbit"}).numbers().rate_bps == 1e6
    assert path.question({"rtt": "20 ms", "rate": None}).numbers().rate_bps == 10e6


def test_range_points_are_evenly_spread() -> None:
    points = [answers._spread(number, 2) for number in range(1, 49)]
    for part in range(4):
        for axis in (0, 1):
            inside = [point for point in points if part / 4 <= point[axis] < (part + 1) / 4]
            assert 10 <= len(inside) <= 14


# Maps.


def _map(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    words = [
        "map",
        "--x",
        "rate=2mbit..8mbit",
        "--y",
        "rtt=10..40 ms",
        "--buffer",
        "100 KB",
        "--for",
        "throughput",
    ]
    words += [
        "--candidates",
        "cubic",
        "--candidates",
        "bbr1",
        "--steps",
        "2",
        "--seeds",
        "1",
        "--out",
        str(folder),
    ]
    return command(*words, *more)


def test_map_is_plotted_and_reused(tmp_path: Path) -> None:
    first = _map(tmp_path / "map")
    assert first.returncode == 0, first.stderr
    reported = json.loads((tmp_path / "map" / "map.json").read_text())
    assert [len(reported[axis]["values"]) for axis in ("x", "y")] == [2, 2]
    assert reported["x"]["values"] == pytest.approx([2e6, 8e6])
    assert len(reported["points"]) == 4
    page = (tmp_path / "map" / "index.html").read_text()
    assert "Who is best where" in page
    assert reported["answer"] in page
    assert (tmp_path / "map" / "map.png").read_bytes().startswith(b"\x89PNG")
    rows = (tmp_path / "map" / "map.csv").read_text().splitlines()
    assert rows[0] == "rate_bps,rtt_ms,winner,leaders,ahead,ahead_low,ahead_high,cubic,bbr1"
    assert len(rows) == 5
    log = (tmp_path / "map" / "log.jsonl").read_text()
    assert _map(tmp_path / "map").stdout == first.stdout
    assert (tmp_path / "map" / "log.jsonl").read_text() == log, "nothing ran a second time"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--x", "rate=1mbit"], "--x"),
        (["--x", "colour=1..2"], "--x"),
        (["--y", "rate=1mbit..2mbit"], "--y"),
        (["--steps", "1"], "--steps"),
        (["--steps", "101"], "--steps"),
        (["--seeds", "0"], "--seeds"),
        (["--buffer", "1 KB..1 MB"], "--buffer"),
        (["--for", "fun"], "--for"),
        (["--engine", "abacus"], "--engine"),
    ],
)
def test_invalid_map_names_option(tmp_path: Path, more: list[str], message: str) -> None:
    done = _map(tmp_path / "map", *more)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"fullpipe: {message} "), done.stderr
    assert not (tmp_path / "map").exists()


def test_the_command_answers_and_refuses(tmp_path: Path) -> None:
    words = ["advise", "--rate", "2mbit", "--rtt", "40ms", "--buffer", "20 KB"]
    done = command(*words, "--seeds", "2", "--json")
    assert done.returncode == 0, done.stderr
    assert {"answer", "winner", "ranking", "crossings", "apply", "trust"} <= set(json.loads(done.stdout))
    (tmp_path / "paths.csv").write_text("name,rate,rtt\nhome,2mbit,20 ms\noffice,8mbit,10 ms\n")
    many = command("advise", "--from", str(tmp_path / "paths.csv"), "--seeds", "2")
    assert "2 paths: " in many.stdout, many.stderr
    bare = command("advise")
    assert (bare.returncode, bare.stdout) == (2, "")
    assert "--rate" in bare.stderr


def test_paths_without_kernel_comparison_are_reported() -> None:
    path = Question(rate="50mbit", rtt="80ms", buffer="1 bdp", candidates=("bbr3", "cubic")).numbers()
    message = nearest_cells.sentence(path, ("bbr3", "cubic"), ("a policer",))
    assert message.endswith(" bbr3 was not compared with a kernel. None of these paths has a policer.")
    assert "not compared" not in nearest_cells.sentence(path, ("cubic", "reno"))
    # Rates that change and limited buffers of hosts are other paths than those that are asked about.
    assert not any("TCP memory" in one.name or " to " in one.name for one in nearest_cells.cells())


def test_open_difference_is_not_reported_none() -> None:
    goal = goals.named("throughput", sized=False)

    def place(name: str, standing: Any, low: float, high: float) -> ranking.Place:
        behind = Estimate((low + high) / 2, low, high, low, high, 4)
        return ranking.Place(name, (), Estimate(0.73, 0.72, 0.74, 0.72, 0.74, 4), behind, standing)

    def message(low: float, high: float) -> str:
        places = (place("a", "first", 0.0, 0.0), place("b", "undecided", low, high))
        return answer._on_a_path(ranking.Ranking(goal, places, 4))

    assert "it is not settled whether their scores differ by more than 1 %" in message(0.0038, 0.0087)
    assert "cannot be told apart" in message(-0.002, 0.02)
