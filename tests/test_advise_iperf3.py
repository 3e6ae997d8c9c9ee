"""What `fullpipe advise` reads of iperf3's results, and where the inputs of its answers come from."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import command
from fullpipe._native import ScenarioError
from fullpipe.advisor import Question, advise, many, sources
from fullpipe.advisor.question import parsed
from fullpipe.scenario import scenario

OURS = ("cubic", "bbr1")
HOST = "198.51.100.7"


def sender(rate: float = 20e6, rtt_us: int = 42_000, **more: Any) -> dict[str, Any]:
    """What iperf3 reports of a connection that it sent on."""
    base = {"bits_per_second": rate, "max_snd_wnd": 3_000_000, "min_rtt": rtt_us, "mean_rtt": rtt_us + 900}
    return base | {"sender": True} | more


def result(rate: float = 20e6, *senders: dict[str, Any], seconds: float = 10, **start: Any) -> dict[str, Any]:
    """A result of `iperf3 -J`; `start` are more keys of its `start`."""
    received = {"seconds": seconds, "bytes": int(rate * seconds / 8), "bits_per_second": rate, "sender": True}
    streams = [{"sender": one} for one in senders or (sender(rate),)]
    test = {"protocol": "TCP", "num_streams": len(streams), "reverse": 0} | start.pop("test_start", {})
    return {
        "start": {"connected": [], "version": "iperf 3.12", "connecting_to": {"host": HOST}}
        | {"tcp_mss_default": 1448, "target_bitrate": 0, "sock_bufsize": 0, "test_start": test}
        | start,
        "intervals": [],
        "end": {
            "streams": streams,
            "sum_sent": received | {"retransmits": 3},
            "sum_received": received,
            "sender_tcp_congestion": "cubic",
        },
    }


def read(folder: Path, text: str | bytes) -> sources.Paths:
    file = folder / "source"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return sources.read(file)


def stream(whole: dict[str, Any]) -> str:
    """A result as `--json-stream` writes it."""
    events = [("start", whole["start"]), ("interval", {"sum": {}}), ("end", whole["end"])]
    return "".join(json.dumps({"event": name, "data": data}) + "\n" for name, data in events)


# What limits a test is not the path's rate.


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (result(2.1e6, target_bitrate=2_000_000), "-b limited the sender to 2 Mbit/s"),
        (result(2.1e6, test_start={"target_bitrate": 2_000_000}), "-b limited the sender"),
        (result(4e6, sender(2e6), sender(2e6), target_bitrate=2_000_000), "-b limited each of 2 connections"),
        (result(5e6, fq_rate=5_000_000), "--fq-rate limited the sender to 5 Mbit/s"),
        (result(2.2e6, seconds=0.05), "only 13.8 KB arrived"),
        (result(1e9, seconds=0.3), "7.1 round trips"),
        (result(1e9, sender(rtt_us=0, sender=False), seconds=0.3), "the test lasted 0.3 s"),
        (result(12e6, sender(12e6), sock_bufsize=65_536), "-w limited the window to 65.5 KB"),
        (result(12e6, sender(12e6, max_snd_wnd=65_536)), "the receiver limited the window to 65.5 KB"),
        (result(0.0), "nothing arrived"),
        (result(20e6) | {"error": "interrupt - the client has terminated"}, "the test did not end"),
    ],
)
def test_externally_limited_test_requires_rate(tmp_path: Path, given: dict[str, Any], why: str) -> None:
    (path,) = read(tmp_path, json.dumps(given))
    asked = {"candidates": OURS, "rtt": "42ms"}
    with pytest.raises(ScenarioError) as caught:
        path.question(asked)
    assert caught.value.field == "rate"
    assert why in str(caught.value) and str(caught.value).endswith("give --rate, e.g. --rate 50mbit")
    # With a rate from the user, it goes on, and what the file lacks does not count.
    assert path.question({**asked, "rate": "20mbit"}).rate == "20mbit"
    assert path.beside({**asked, "rate": "20mbit"}).left_out == ()


@pytest.mark.parametrize(
    "given",
    [
        result(20e6, target_bitrate=100_000_000),  # Not reached: the path limited it.
        result(20e6, sender(mean_rtt=200_000, max_snd_wnd=400_000)),  # A queue grew: the path was full.
        result(20e6, sock_bufsize=4_000_000),
    ],
)
def test_unreached_limit_keeps_measured_rate(tmp_path: Path, given: dict[str, Any]) -> None:
    (path,) = read(tmp_path, json.dumps(given))
    assert path.question({"candidates": OURS}).rate == "20000000 bit/s"


@pytest.mark.parametrize("protocol", ["UDP", "SCTP"])
def test_non_tcp_test_is_always_refused(tmp_path: Path, protocol: str) -> None:
    with pytest.raises(ScenarioError, match=f"it is over {protocol}"):
        read(tmp_path, json.dumps(result(test_start={"protocol": protocol})))


def test_old_udp_result_is_detected(tmp_path: Path) -> None:
    old = result()
    del old["start"]["test_start"]
    old["end"]["streams"] = [{"udp": {"bits_per_second": 1e6}}]
    with pytest.raises(ScenarioError, match="it is over UDP"):
        read(tmp_path, json.dumps(old))


# Round-trip times.


@pytest.mark.parametrize("count", [1, 4])
def test_loaded_rtt_has_note(tmp_path: Path, count: int) -> None:
    given = result(20e6, *(sender(20e6 / count, 75_273 + at) for at in range(count)))
    (path,) = read(tmp_path, json.dumps(given))
    beside = path.beside({"candidates": OURS})
    assert path.says["rtt"] == "75273 us"
    assert any("smoothed sample during the test" in note for note in beside.notes)
    assert not any("smoothed" in note for note in path.beside({"candidates": OURS, "rtt": "40ms"}).notes)


def test_receiver_result_has_no_rtt(tmp_path: Path) -> None:
    given = result(20e6, sender(rtt_us=4, sender=False), test_start={"reverse": 1})
    given["end"]["sum_sent"]["sender"] = False
    (path,) = read(tmp_path, json.dumps(given))
    assert "rtt" not in path.says
    with pytest.raises(ScenarioError, match=r"the other host sent.*add --get-server-output") as caught:
        path.question({"candidates": OURS})
    assert "Linux" not in str(caught.value)
    assert path.beside({"candidates": OURS, "rtt": "20ms"}).left_out == ()
    # A server's result cannot have it.
    server = given | {"start": given["start"] | {"accepted_connection": {"host": HOST}}}
    server["start"]["test_start"] = server["start"]["test_start"] | {"reverse": 0}
    (path,) = read(tmp_path, json.dumps(server))
    assert path.caveats["rtt"].endswith("use the client's result")
    # With --get-server-output, that of the sender is in the result.
    given["server_output_json"] = {"end": {"streams": [{"sender": sender(rtt_us=40_000)}]}}
    (path,) = read(tmp_path, json.dumps(given))
    assert path.says["rtt"] == "40000 us"


def test_few_rtts_noted_only_when_used(tmp_path: Path) -> None:
    (path,) = read(tmp_path, json.dumps(result(20e6, sender(rtt_us=115_224), seconds=5)))
    asked = {"candidates": OURS}
    few = "the test lasted only 43 round trips: the path may be faster"
    assert few in path.beside(asked).notes
    for given in ({"rtt": "60ms"}, {"rate": "20mbit"}):
        assert few not in path.beside({**asked, **given}).notes


def test_rate_note_disappears_with_explicit_rate(tmp_path: Path) -> None:
    (path,) = read(tmp_path, json.dumps(result(20e6, target_bitrate=100_000_000, tcp_mss=500)))
    beside = path.beside({"candidates": OURS, "rtt": "42ms"})
    assert any("was not reached" in note for note in beside.notes)
    assert any("headers take 9 %" in note for note in beside.notes)
    given = path.beside({"candidates": OURS, "rtt": "42ms", "rate": "20mbit"})
    assert given.notes == ("3 segments were sent again by cubic",)


def test_bidirectional_test_yields_two_paths(tmp_path: Path) -> None:
    given = result(20e6, sender(), sender(5e6, 9, sender=False))
    other = given["end"]["sum_received"] | {"bits_per_second": 5e6, "sender": False}
    given["end"] |= {"sum_sent_bidir_reverse": other, "sum_received_bidir_reverse": other}
    there, back = read(tmp_path, json.dumps(given))
    assert (there.name, there.says["rate"]) == (f"{HOST}, from here", "20000000 bit/s")
    assert (back.name, back.says) == (f"{HOST}, to here", {"rate": "5000000 bit/s"})


def test_sending_server_has_no_arrival_count(tmp_path: Path) -> None:
    given = result(0.0, sender(), accepted_connection={"host": "192.0.2.1"}, test_start={"reverse": 1})
    given["end"]["sum_sent"] |= {"bits_per_second": 20e6}
    (path,) = read(tmp_path, json.dumps(given))
    assert "no count of what arrived" in path.caveats["rate"]


# Forms of a file.


WHOLE = json.dumps(result(), indent=1)


@pytest.mark.parametrize(
    "text",
    [
        stream(result()),
        stream(result()) + WHOLE,  # --json-stream-full-output
        f"user@host:~$ iperf3 -c {HOST} -J\n{WHOLE}\nuser@host:~$ ",
        f"warning: UDP block size\n{WHOLE}\niperf3: interrupt - the client has terminated\n",
        f"[{WHOLE}]",
        "\r\n\t" + WHOLE.replace("\n", "\r\n"),
        WHOLE + '\n{"start":{"connected":[',  # A second one that was cut off.
    ],
)
def test_other_result_forms_are_read(tmp_path: Path, text: str) -> None:
    (path,) = read(tmp_path, text)
    assert path.says == {"rate": "20000000 bit/s", "rtt": "42000 us"}
    assert path.name == HOST


@pytest.mark.parametrize("between", ["\n", "", "\n- - -\n"])
def test_several_results_are_a_path_each(tmp_path: Path, between: str) -> None:
    texts = [json.dumps(result(rate), indent=1) for rate in (10e6, 20e6)]
    found = read(tmp_path, between.join(texts))
    assert [path.name for path in found] == [f"{HOST}, test 1", f"{HOST}, test 2"]
    assert [path.says["rate"] for path in found] == ["10000000 bit/s", "20000000 bit/s"]
    streams = read(tmp_path, stream(result(10e6)) + stream(result(20e6)))
    assert [path.says["rate"] for path in streams] == ["10000000 bit/s", "20000000 bit/s"]


def test_tests_keep_numbers_from_file(tmp_path: Path) -> None:
    texts = [result(), result(test_start={"protocol": "UDP"}), result() | {"title": "site A"}, result()]
    found = read(tmp_path, "\n".join(map(json.dumps, texts)))
    assert found.notes[0].startswith("test 2: it is over UDP")
    assert [path.name for path in found] == [f"{HOST}, test 1", "site A", f"{HOST}, test 4"]


def test_failed_test_reports_iperf3_error(tmp_path: Path) -> None:
    message = "unable to connect to server: Connection refused"
    refused = {
        "start": {"connected": [], "version": "iperf 3.12"},
        "intervals": [],
        "end": {},
        "error": message,
    }
    with pytest.raises(ScenarioError) as caught:
        read(tmp_path, json.dumps(refused))
    assert str(caught.value).endswith(f"iperf3 reports '{message}'; correct that, and run iperf3 again")
    with pytest.raises(ScenarioError, match="over TCP, without -u"):
        read(tmp_path, json.dumps(result(test_start={"protocol": "UDP"})))


def test_unusable_test_is_skipped(tmp_path: Path) -> None:
    texts = [result(test_start={"protocol": "UDP"}), result(), result(2e6, target_bitrate=2_000_000)]
    found = many.answer(read(tmp_path, "\n".join(map(json.dumps, texts))), {"candidates": OURS}, seeds=2)
    assert [one.path.says["rate"] for one in found.answered] == ["20000000 bit/s"]
    left_out = found.to_dict()["paths"][0]["left_out"]
    assert any(one.startswith("test 1: it is over UDP") for one in left_out)
    assert "-b limited" in found.refused[0].why


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[ ID] Interval           Transfer     Bitrate\n[  5]   0.00-1.00   sec  1.65 GBytes\n", "with -J"),
        ('{"event":"start","data":{}}\n', "it has no end"),
        (WHOLE[: len(WHOLE) // 2], "damaged or cut off"),
        ('{"start":{"connected":[]},"intervals":[],"end":{},"error":"unable to connect"}', "unable to conn"),
        ('{"start":{"connected":[\n' * 1000, "damaged or cut off"),
    ],
)
def test_file_without_result_is_an_error(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        read(tmp_path, text)
    assert expected in str(caught.value) and len(str(caught.value)) < 500


ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be")
BIG_ENDIAN_MARK = b"\xfe\xff"


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_text_of_windows_programs_is_read(tmp_path: Path, encoding: str) -> None:
    ss = "ESTAB 0 0 a:1 192.0.2.7:2\n\t cwnd:10 minrtt:1 delivered:999 delivery_rate 9000bps\n"
    texts = [
        WHOLE,
        ss,
        "name,rate,rtt\n\u00b5,5mbit,20ms\n",
        "rtt,downlink\n50,5\n",
        "path_rtt_seconds 0.1\n",
    ]
    for text in texts:
        data = text.encode(encoding)
        assert read(tmp_path, data) == read(tmp_path, text)
        if encoding == "utf-16-be":
            assert read(tmp_path, BIG_ENDIAN_MARK + data) == read(tmp_path, text)


def test_truncated_utf_16_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="text in UTF-8 or UTF-16"):
        read(tmp_path, b"\xff\xfe{")


@pytest.mark.parametrize(
    ("head", "value"),
    [
        ('{"start":{"connected":[', "[[[[]]]]"),
        ('{"start":{"connected":[', '"abc"'),
        ('{"status":"success","resultType":[', '{"a":1}'),
        ('[{"rtt":1,"downlink":[', "[1]"),
    ],
)
def test_crafted_json_needs_a_bounded_memory(tmp_path: Path, head: str, value: str) -> None:
    file = tmp_path / "source"
    room = (32 << 20) - len(head) - 10
    file.write_text(head + f"{value}," * (room // (len(value) + 1)))
    code = (
        "import sys; from pathlib import Path; from fullpipe.advisor import sources, terminal\n"
        "from fullpipe._native import ScenarioError\n"
        "try: sources.read(Path(sys.argv[1]))\n"
        # Not `ru_maxrss`, which begins with that of the process that started this one.
        "except ScenarioError:\n"
        " peak = Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0]\n"
        " print(int(peak) >> 10)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 640, "MiB"


# What the user gives, what a file has, what is assumed.


def answered(folder: Path, text: str, **asked: Any) -> many.Answers:
    return many.answer(read(folder, text), {"candidates": OURS, **asked}, seeds=2)


TABLE = "name,rate,rtt,buffer,loss\nhome,5mbit,20ms,50KB,1%\n"


@pytest.mark.parametrize(
    ("text", "asked", "measured"),
    [
        (WHOLE, {"rtt": "40ms", "rate": "5mbit"}, set()),
        (TABLE, {"buffer": "30KB"}, {"rate", "rtt", "loss"}),
        (TABLE, {"buffer": "1 bdp", "loss": "0"}, {"rate", "rtt"}),
        ("rtt,downlink,transferSize\n20,5,90000\n", {"flow_size": "30 KB"}, {"rate", "rtt"}),
        ('path_rtt_seconds{path="a"} 0.02\n', {"rate": "5mbit", "rtt": "30ms"}, set()),
    ],
)
def test_explicit_values_override_file(
    tmp_path: Path, text: str, asked: dict[str, Any], measured: set[str]
) -> None:
    (one,) = answered(tmp_path, text, **asked).answered
    for name, value in asked.items():
        assert getattr(one.advice.question, name) == value
        assert one.advice.inputs.given[name] == value
    assert set(one.advice.inputs.measured) == measured


def test_defaults_do_not_override_file(tmp_path: Path) -> None:
    (one,) = answered(tmp_path, TABLE, buffer=None, loss=None, competitors=(), ecn=False).answered
    measured = {name: value.replace(" ", "") for name, value in one.advice.inputs.measured.items()}
    assert measured == {"rate": "5mbit", "rtt": "20ms", "buffer": "50KB", "loss": "1%"}
    assert set(one.advice.inputs.given) == {"candidates"}
    assert one.advice.inputs.assumed["jitter"] == "none"


@pytest.mark.parametrize(
    ("asked", "differs"),
    [
        ({"rtt": "40ms"}, True),
        ({"rtt": "20 ms"}, False),
        ({"rtt": "20100 us"}, False),
        ({"rate": "4mbit"}, True),
        ({"rate": "5000 kbit/s"}, False),
        ({"buffer": "60 KB"}, True),
        ({"rtt": parsed("rtt", "10..30ms")}, False),
        ({"rtt": parsed("rtt", "30..40ms")}, True),
    ],
)
def test_conflicting_values_are_noted(tmp_path: Path, asked: dict[str, Any], differs: bool) -> None:
    (path,) = read(tmp_path, TABLE)
    notes = path.beside({"candidates": OURS, **asked}).notes
    (name,) = asked
    assert notes == (
        (f"the source has {name} {path.says[name]}, but --{name} {asked[name]} is used",) * differs
    )


def test_every_answer_format_lists_inputs(tmp_path: Path) -> None:
    found = answered(tmp_path, WHOLE, rtt="40ms")
    reported = found.to_dict()["paths"][0]
    assert reported["given"] == {"rtt": "40ms", "candidates": "cubic, bbr1"}
    assert reported["measured"] == {"rate": "20000000 bit/s"}
    buffers = "0.25, 1 and 4 bdp side by side (at least 10 packets)"
    assert reported["assumed"]["buffer"] == buffers
    assert reported["left_out"] == []
    (row,) = csv.DictReader(io.StringIO(found.to_csv()))
    assert row["given"] == "rtt 40ms, candidates cubic, bbr1"
    assert row["measured"] == "rate 20 Mbit/s"
    assert f"buffer {buffers}" in row["assumed"] and row["left_out"] == ""
    text = str(found.answered[0].advice)
    assert "Given: rtt 40ms" in text and "Measured: rate 20 Mbit/s" in text and "Assumed: buffer 0.25" in text
    # A question without a file has them, too.
    alone = advise(Question(rate="5mbit", rtt="20ms", candidates=OURS), goal="delay", seeds=2).to_dict()
    assert alone["given"] == {"rate": "5mbit", "rtt": "20ms", "candidates": "cubic, bbr1", "goal": "delay"}
    assert alone["measured"] == {} and alone["left_out"] == []


def test_command_line_option_overrides_file(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(WHOLE)
    words = [
        "advise",
        "--from",
        str(tmp_path / "result.json"),
        "--rtt",
        "40ms",
        "--buffer",
        "1 bdp",
        "--json",
    ]
    for name in OURS:
        words += ["--candidates", name]
    done = command(*words, "--seeds", "2")
    (reported,) = json.loads(done.stdout)["paths"]
    assert reported["path"] == {"rate": "20000000 bit/s", "rtt": "40ms", "buffer": "1 bdp"}
    assert (reported["given"]["rtt"], reported["given"]["buffer"]) == ("40ms", "1 bdp")
    assert "the source has rtt 42 ms, but --rtt 40ms is used" in reported["notes"]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_scenario_and_trace_accept_utf_16(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "trace").write_bytes("1\r\n2\r\n".encode(encoding))
    document = '[path]\nrtt = "20 ms"\ndeliveries = "trace"\n[[flows]]\ncontroller = "cubic"\n'
    (tmp_path / "scenario.toml").write_bytes(document.encode(encoding))
    loaded = scenario.from_file(tmp_path / "scenario.toml", programs=False)
    assert loaded.alternatives
