"""What `fullpipe advise --from` reads of tables and of `ss` in their many forms, and ranges in every form."""

import contextlib
import json
import os
import re
import subprocess
import sys
import time
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

import fullpipe as fp
from fullpipe._native import ScenarioError
from fullpipe.advisor import many, many_page, map, sources
from fullpipe.advisor.question import parsed
from fullpipe.advisor.sources import ss, table
from fullpipe.scenario.path_fields import Range

OURS = ("cubic", "bbr1")


def read(folder: Path, text: str) -> sources.Paths:
    """The paths of a source with this text."""
    file = folder / "paths.csv"
    file.write_text(text, encoding="utf-8", newline="")
    return sources.read(file)


def refused(folder: Path, text: str) -> str:
    """The error about a source with this text."""
    with pytest.raises(ScenarioError) as caught:
        read(folder, text)
    sentence = str(caught.value)
    assert sentence.isprintable() and len(sentence) < 500
    return sentence


def command(*words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "fullpipe", *words],
        capture_output=True,
        text=True,
        input=typed,
        check=False,
        timeout=300,
    )


# ss.

DETAILS = "cubic wscale:7,7 rto:244 rtt:41.3/1.2 mss:1448 cwnd:60 bytes_sent:{bytes} bytes_acked:{bytes} \
segs_out:6300 data_segs_out:6215 delivery_rate {rate} delivered:{segments} minrtt:{rtt}"


def details(
    rate: str = "20Mbps", rtt: str = "40.1", segments: int = 6216, data_bytes: int = 9_000_000
) -> str:
    return DETAILS.format(bytes=data_bytes, rate=rate, segments=segments, rtt=rtt)


def socket(
    peer: str, columns: str = "ESTAB 0 0", more: str = "", local: str = "192.0.2.10:443", **of: Any
) -> str:
    """A connection as `ss -ti` prints it."""
    return f"{columns} {local} {peer} {more}\n\t {details(**of)}\n"


HEADING = "State  Recv-Q Send-Q   Local Address:Port     Peer Address:PortProcess\n"


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("198.51.100.1:51234", "198.51.100.1"),
        ("198.51.100.1:https", "198.51.100.1"),
        ("www.example.org:https", "www.example.org"),
        ("[2001:db8::7]:443", "2001:db8::7"),
        ("2001:db8::7:443", "2001:db8::7"),
        ("[fe80::7]%eth0:ssh", "fe80::7%eth0"),
        ("198.51.100.1%wlan0:443", "198.51.100.1%wlan0"),
        ("[::ffff:198.51.100.1]:443", "198.51.100.1"),
    ],
)
def test_ss_peer_is_second_address_host(tmp_path: Path, address: str, host: str) -> None:
    (found,) = read(tmp_path, HEADING + socket(address))
    assert (found.name, found.weight) == (host, 9e6)
    assert found.says == {"rate": "20000000 bit/s", "rtt": "40100 us"}


def test_ss_with_names_keeps_each_peer(tmp_path: Path) -> None:
    near, far = read(
        tmp_path,
        socket("198.51.100.1:https", local="myhost:42120")
        + socket("203.0.113.77:https", local="myhost:42124", rate="3.1Mbps", rtt="199.5"),
    )
    assert (near.name, far.name) == ("198.51.100.1", "203.0.113.77")
    assert far.says == {"rate": "3100000 bit/s", "rtt": "199500 us"}


FORMS = {
    "-H": socket("198.51.100.1:5"),
    "-O": HEADING + f"ESTAB 0 0 192.0.2.10:443 198.51.100.1:5 {details()}\n",
    "state established": "Recv-Q Send-Q Local Address:Port Peer Address:Port\n"
    + socket("198.51.100.1:5", "0 12"),
    "-tu state established": socket("198.51.100.1:5", "tcp 0 0") + "udp 0 0 192.0.2.10:53 198.51.100.9:53\n",
    "-tu": f"Netid {HEADING}udp ESTAB 0 0 192.0.2.10:68 192.0.2.1:67\n"
    + socket("198.51.100.1:5", "tcp   ESTAB 0 0"),
    "-emop": socket(
        "198.51.100.1:5",
        more='users:(("a b:1 c:2",pid=7,fd=5),("minrtt:1 x",pid=8,fd=5)) timer:(on,2ms,0) ino:1 sk:1001 '
        "cgroup:/x:y <->",
    ).replace("\t cubic", "\t skmem:(r0,rb131072,t0) ts sack cubic"),
    "-O -p": 'ESTAB 0 0 192.0.2.10:443 198.51.100.1:5 users:(("x cwnd:1 minrtt:2 y",pid=7,fd=5)) '
    + details(),
    "-a": HEADING
    + "LISTEN 0 128 0.0.0.0:22 0.0.0.0:*\n\t bbr cwnd:10\n"
    + socket("198.51.100.1:5")
    + "TIME-WAIT 0 0 192.0.2.10:443 198.51.100.8:5\n",
    "watch": f"Every 2.0s: ss -tin    host: Thu Nov 26 10:00:00 2026\n\n{HEADING}{socket('198.51.100.1:5')}",
    "ts": "".join(f"Nov 26 10:00:00 {line}\n" for line in socket("198.51.100.1:5").splitlines()),
    "CR LF": (HEADING + socket("198.51.100.1:5")).replace("\n", "\r\n"),
    "spaces": socket("198.51.100.1:5").replace("\t", "        "),
    "no indent": socket("198.51.100.1:5").replace("\t ", ""),
    "wrapped": socket("198.51.100.1:5").replace(" delivery_rate", "\ndelivery_rate"),
    "exponent": socket("198.51.100.1:5", rate="2e+04Kbps"),
    "twice": (HEADING + socket("198.51.100.1:5", rate="1Mbps", rtt="50") + socket("198.51.100.1:5")) * 2,
}


@pytest.mark.parametrize("form", FORMS)
def test_ss_is_read_in_each_form(tmp_path: Path, form: str) -> None:
    found = read(tmp_path, FORMS[form])
    assert [(one.name, one.says) for one in found] == [
        ("198.51.100.1", {"rate": "20000000 bit/s", "rtt": "40100 us"})
    ]
    assert found.notes == ()


def test_later_ss_output_updates_connection(tmp_path: Path) -> None:
    """The rate is the high median and the round-trip time the least one of all outputs."""
    (found,) = read(
        tmp_path,
        socket("198.51.100.1:5", rate="30Mbps", rtt="44", data_bytes=10**6)
        + HEADING
        + socket("198.51.100.1:5", rate="20Mbps", rtt="41", data_bytes=2 * 10**6),
    )
    assert (found.says, found.weight) == ({"rate": "30000000 bit/s", "rtt": "41000 us"}, 2e6)


@pytest.mark.parametrize(
    ("amount", "enough"),
    [
        ("delivered:99 data_segs_out:500", False),
        ("delivered:100", True),
        ("data_segs_out:99 segs_out:500", False),
        ("data_segs_out:100", True),
        ("bytes_acked:140000", False),
        ("bytes_acked:150000 segs_out:5", True),
        ("bytes_sent:150000", True),
        ("segs_out:99", False),
    ],
)
def test_old_ss_amounts_are_parsed(tmp_path: Path, amount: str, enough: bool) -> None:
    busy = socket("198.51.100.1:5")
    found = read(
        tmp_path,
        f"{busy}ESTAB 0 0 192.0.2.10:1 198.51.100.9:2\n"
        f"\t cubic rtt:5/1 mss:1448 cwnd:9 {amount} delivery_rate 9Mbps minrtt:5\n",
    )
    assert len(found) == 1 + enough
    notes = () if enough else ("connections not used: 1 with fewer than 100 segments sent",)
    assert found.notes == notes


def test_ss_without_amount_is_noted(tmp_path: Path) -> None:
    (found,) = read(
        tmp_path,
        "ESTAB 0 0 192.0.2.10:1 198.51.100.9:2\n\t cubic rtt:5/1 cwnd:9 delivery_rate 9Mbps minrtt:5\n",
    )
    assert any("does not show how much was sent" in note for note in found.doubts)


def test_ss_without_minrtt_requires_rtt(tmp_path: Path) -> None:
    """`rtt` includes the queue, and so is not the round-trip time of the empty path."""
    found = read(tmp_path, socket("198.51.100.1:5").replace("minrtt:40.1", ""))
    assert found[0].says == {"rate": "20000000 bit/s"}
    with pytest.raises(ScenarioError, match=r"shows no minrtt.*give --rtt"):
        many.answer(found, {"buffer": "1 bdp", "candidates": OURS}, budget_s=0.1)
    beside = found[0].beside({"candidates": OURS, "rtt": "20ms"})
    assert (beside.notes, beside.left_out) == ((), ())


# From a host with four connections to the same one, and their control connection.
CONTROL = "bytes_sent:164 lastsnd:2880 delivery_rate 384368bps delivered:4 app_limited minrtt:60.213"
PARALLEL = (
    "bytes_sent:2000000 bbr:(bw:6689864bps,mrtt:60.21) delivery_rate 6185440bps delivered:1241 unacked:84",
    "bytes_sent:1700000 bbr:(bw:5380064bps,mrtt:60.139) delivery_rate 5018936bps delivered:1022 unacked:93",
    "bytes_sent:1500000 delivery_rate 4228152bps delivered:900 minrtt:60.2 unacked:61",
    # Everything is acknowledged, and it sent just now.
    "bytes_sent:1400000 lastsnd:4 delivery_rate 3842896bps delivered:800 minrtt:60.2",
)


def connections(*message: str) -> str:
    """One output with these connections to a peer."""
    return HEADING + "".join(
        f"ESTAB 0 0 192.0.2.10:{4000 + port} 198.51.100.1:5201\n\t cubic mss:1448 cwnd:68 {one}\n"
        for port, one in enumerate(message)
    )


def test_concurrent_connections_share_path(tmp_path: Path) -> None:
    old = "bytes_sent:7000000 lastsnd:5000 delivery_rate 50Mbps delivered:5000 minrtt:60.3"
    (found,) = read(tmp_path, connections(CONTROL, *PARALLEL, old))
    assert found.says == {"rate": "19275424 bit/s", "rtt": "60139 us"}
    assert found.weight == 164 + 6_600_000 + 7_000_000
    assert found.beside({"candidates": OURS}).notes == ("the rate is the sum of 4 connections",)
    assert "sum of" not in str(found.beside({"candidates": OURS, "rate": "20mbit"}).notes)


@pytest.mark.parametrize(
    ("message", "note"),
    [
        ("lastsnd:0 delivery_rate 9Mbps delivered:500 app_limited", "the application limited it"),
        ("lastsnd:396 delivery_rate 9Mbps delivered:500", "it was not sending: the rate is an old one"),
    ],
)
def test_idle_connection_rate_is_noted(tmp_path: Path, message: str, note: str) -> None:
    (found,) = read(tmp_path, connections(f"{message} minrtt:5", "delivery_rate 1Mbps delivered:9 minrtt:5"))
    assert found.says["rate"] == "9000000 bit/s"
    assert [one for one in found.doubts if one.startswith(note)]


@pytest.mark.parametrize("heading", [True, False])
def test_rate_is_median_of_ss_outputs(tmp_path: Path, heading: bool) -> None:
    """Acknowledgements that arrive together show too high a rate."""
    data = [
        f"bytes_sent:{bytes_sent} delivery_rate {rate}bps delivered:{delivered} minrtt:5 {more}"
        for bytes_sent, rate, delivered, more in (
            (90_000, 900_000_000, 62, "unacked:10"),  # Too few segments at that time.
            (6_017_925, 48_133_600, 4039, "unacked:108"),
            (12_119_797, 47_851_944, 8236, "unacked:125"),
            (18_705_301, 47_495_680, 12_809, "unacked:97"),
            (24_716_365, 181_531_824, 17_029, "lastsnd:4 unacked:29"),
            (24_716_365, 181_531_824, 17_029, "lastsnd:1004"),
        )
    ]
    text = "".join(connections(CONTROL, one) for one in data)
    (found,) = read(tmp_path, text if heading else text.replace(HEADING, ""))
    assert (found.says["rate"], found.weight) == ("48133600 bit/s", 24_716_365 + 164)
    assert list(found.doubts) == ["the rate is the median of 4 outputs (47.5 Mbit/s to 182 Mbit/s)"]


def test_parallel_connection_sums_have_median(tmp_path: Path) -> None:
    slow = PARALLEL[2].replace("4228152", "1000000")
    (found,) = read(tmp_path, connections(*PARALLEL) * 2 + connections(slow))
    assert found.says["rate"] == "19275424 bit/s"
    assert list(found.doubts) == [
        "the rate is the sum of 4 connections",
        "the rate is the median of 3 outputs (1 Mbit/s to 19.3 Mbit/s)",
    ]


def test_ss_reports_why_connections_are_unused(tmp_path: Path) -> None:
    text = (
        socket("198.51.100.1:5")
        + socket("198.51.100.2:5", segments=12)
        + socket("127.0.0.1:5")
        + socket("[::1]:5")
        + socket("192.0.2.10:5")
        + socket("localhost:5")
        + "ESTAB 0 0 192.0.2.10:1 198.51.100.9:2\n\t cubic rtt:5/1 cwnd:9 delivered:500\n"
        + f"ESTAB something else 198.51.100.10\n\t {details()}\n"
        + "ESTAB 0 0 192.0.2.10:1 198.51.100.11:2\n"
    )
    found = read(tmp_path, text)
    assert [one.name for one in found] == ["198.51.100.1"]
    assert found.notes == (
        "connections not used: 1 with fewer than 100 segments sent, 4 with this host itself, 1 without a "
        "delivery rate, 1 without details, which option -i adds and 1 in lines of an unknown form",
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (HEADING, "it lists no connections"),
        (f"Netid {HEADING}", "it lists no connections"),
        (f"{HEADING}ESTAB 0 0 192.0.2.10:443 198.51.100.1:5\n", "1 without details, which option -i adds"),
        (socket("127.0.0.1:5"), "1 with this host itself"),
        (socket("198.51.100.1:5", segments=3), "1 with fewer than 100 segments sent"),
    ],
)
def test_unusable_ss_output_reports_reason(tmp_path: Path, text: str, why: str) -> None:
    sentence = refused(tmp_path, text)
    assert why in sentence
    assert "run `ss -tin` on the sending host while it sends" in sentence


def test_unsimulatable_path_does_not_block_others(tmp_path: Path) -> None:
    text = socket("198.51.100.1:5") + socket("198.51.100.9:5", rate="999Gbps", rtt="900000")
    answers = many.answer(read(tmp_path, text), {"buffer": "1 bdp", "candidates": OURS}, budget_s=0.1)
    assert [one.path.name for one in answers.answered] == ["198.51.100.1"]
    assert [one.path.name for one in answers.refused] == ["198.51.100.9"]
    assert json.loads(answers.to_json())["left_out"] == list(answers.left_out)


def test_ss_on_standard_input_is_answered() -> None:
    done = command(
        *(
            "advise",
            "--from",
            "-",
            "--budget",
            "0.1",
            "--candidates",
            "cubic",
            "--candidates",
            "bbr1",
            "--json",
        ),
        typed=socket("198.51.100.1:5") + socket("127.0.0.1:5"),
    )
    assert done.returncode == 0, done.stderr
    reported = json.loads(done.stdout)
    assert [one["name"] for one in reported["paths"]] == ["198.51.100.1"]
    assert reported["left_out"] == ["connections not used: 1 with this host itself"]


@pytest.mark.parametrize(("typed", "message"), [("", "it is empty"), ("hello", "a CSV file of paths")])
def test_stdin_without_paths_is_an_error(typed: str, message: str) -> None:
    done = command("advise", "--from", "-", typed=typed)
    assert (done.returncode, done.stdout) == (2, "")
    assert '"standard input" cannot be used' in done.stderr and message in done.stderr


# Tables.


def says(folder: Path, text: str) -> list[tuple[str, dict[str, str]]]:
    return [(one.name, dict(one.says)) for one in read(folder, text)]


HOME = [("home", {"rate": "50.5 Mbit/s", "rtt": "20 ms"})]


@pytest.mark.parametrize(
    "text",
    [
        "name,rate_mbps,rtt_ms\nhome,50.5,20\n",
        "name;rate_mbps;rtt_ms\nhome;50,5;20\n",
        "name\trate_mbps\trtt_ms\nhome\t50,5\t20\n",
        "\ufeffname;rate_mbps;rtt_ms\r\nhome;50,5;20\r\n",
        "sep=;\r\nname;rate_mbps;rtt_ms\r\nhome;50,5;20\r\n",
        "sep=\t\nname\trate_mbps\trtt_ms\nhome\t50.5\t20\n",
        'name,rate_mbps,rtt_ms\n"home","50,5","20"\n',
        "name;rate_mbps;rtt_ms;;;\nhome;50,5;20;;;\n;;;;;\n;;;;;\n",
        "name,rate_mbps,rtt_ms\rhome,50.5,20\r",
        "\n\nname,rate_mbps,rtt_ms\n\nhome,50.5,20\n\n",
        "Measurements of March;;\n;;\nname;rate_mbps;rtt_ms\nhome;50,5;20\n",
        "name;Rate (Mbit/s);RTT [ms]\nhome;50,5;20\n",
        '"name";"Rate\n(Mbit/s)";"RTT\u00a0(ms)"\nhome;50,5;20\u00a0\n',
        "Name,Rate in Mbit/s,Rtt / ms\nhome,50.5,20\n",
        "NAME,RATE_MBPS,RTT_MS\nhome,50.5,20\n",
        "site,downMbps,ping_ms\nhome,50.5,20\n",
        "host,speed mbps,min_rtt_ms\nhome,50.5,20\n",
        "name,rate,rtt (min)\nhome,50.5 Mbit/s,20 ms\n",
        "name,bandwidth_mbps,rtt_ms\nhome,50.5 Mbit/s,20 ms\n",
        ",rate_mbps,rtt_ms\nhome,50.5,20\n",
        "| name | rate_mbps | rtt_ms |\n|:---|---:|---|\n| home | 50.5 | 20 |\n",
        "name,rate_mbps,rtt_ms,loss_pct,buffer,queue\nhome,50.5,20,NaN,n/a,-\n",
    ],
)
def test_every_table_form_is_read(tmp_path: Path, text: str) -> None:
    assert says(tmp_path, text) == HOME
    assert read(tmp_path, text).notes == ()


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("12,5", "12.5"),
        ("0,125", "0.125"),
        ("1.234,5", "1234.5"),
        ("1,234.5", "1234.5"),
        ("1,234,567", "1234567"),
        ("1.234.567", "1234567"),
        ("1 234", "1234"),
        ("1\u202f234,5", "1234.5"),
        ("1’234.5", "1234.5"),
        ("1.234", "1.234"),
        ("12345,678", "12345.678"),
        ("1,5e3", "1.5e3"),
        ("2.5E+01", "2.5E+01"),
    ],
)
def test_a_clear_number_is_read(tmp_path: Path, cell: str, value: str) -> None:
    ((_, found),) = says(tmp_path, f"rate_mbps;rtt_ms\n50;{cell}\n")
    assert found["rtt"] == f"{value} ms"


@pytest.mark.parametrize(
    ("others", "cell", "value"),
    [
        ("12,5", "1,234", "1.234"),
        ("12.5", "1,234", "1234"),
        ("1 234", "5,678", None),
        ("12,5", "1.234", "1234"),
        ("12,5;7\n12.5", "1,234", None),
        ("7", "1,234", None),
    ],
)
def test_ambiguous_number_follows_others_or_fails(
    tmp_path: Path, others: str, cell: str, value: str | None
) -> None:
    text = f"rate_mbps;rtt_ms\n{others};7\n50;{cell}\n"
    if value is not None:
        assert says(tmp_path, text)[-1][1]["rtt"] == f"{value} ms"
        return
    row = text.count("\n")
    assert refused(tmp_path, text).startswith(f"{tmp_path / 'paths.csv'}:{row}: rtt_ms: ")


@pytest.mark.parametrize(
    ("column", "cell", "message"),
    [
        ("rate", "50", "write 50 Mbit/s, or name the column e.g. rate_mbps"),
        ("rtt", "20", "name the column e.g. rtt_ms"),
        ("jitter", "2", "name the column e.g. jitter_ms"),
        ("loss", "1", "a fraction below 1, or a number with %"),
        ("rate", "50 parsecs", "'parsecs' is none"),
        ("rate", "1.2.3 Mbit/s", "a number such as 1234.5"),
        ("rate", "12 34 Mbit/s", "one number"),
        ("rate", "#DIV/0!", "a number from 0 with a unit"),
        ("rtt", "80..20 ms", "from a smaller to a larger"),
        ("rtt", "0..20 ms", "from a smaller to a larger"),
        ("rtt", "20 ms..", "a range of two"),
        ("policer", "5..8mbit", "one value"),
        ("policer", "5mbit,50-80 KB", "one value"),
        ("policer", "fast", "policer"),
        ("queue", "5..8", "one value"),
        ("queue", "nothing", "fq_codel"),
        ("flow_size", "1..2 MB", "one value"),
        ("flow_size", "large", "a number from 0 with a unit"),
        ("weight", "1..2", "a number from 0"),
        ("weight", "-1", "a number from 0"),
    ],
)
def test_invalid_cell_names_row_and_column(tmp_path: Path, column: str, cell: str, message: str) -> None:
    heading = [column, *(name for name in ("rate", "rtt") if name != column)]
    values = {"rate": "50 Mbit/s", "rtt": "20 ms", column: cell}
    good = {"loss": "0.1 %", "queue": "codel", "policer": "20mbit", "rate": "1 Mbit/s"}
    first = [
        good.get(column, "5" if column == "weight" else "5 ms" if column != "flow_size" else "5 KB"),
        *["1 kbit/s", "9 ms"],
    ]
    if column in ("rate", "rtt"):
        first = {"rate": ["1 Mbit/s", "9 ms"], "rtt": ["9 ms", "1 Mbit/s"]}[column]
    rows = [heading, first, [values[name] for name in heading]]
    text = "\n".join("\t".join(row) for row in rows)
    sentence = refused(tmp_path, text)
    assert sentence.startswith(f"{tmp_path / 'paths.csv'}:3: {column}: "), sentence
    assert message in sentence


@pytest.mark.parametrize(
    ("column", "cell", "value"),
    [
        ("rate", "5..8mbit", "5 mbit..8 mbit"),
        ("rate_mbps", "5-8", "5 Mbit/s..8 Mbit/s"),
        ("rate_mbps", "5,5–8,5", "5.5 Mbit/s..8.5 Mbit/s"),
        ("rtt", "20-80 ms", "20 ms..80 ms"),
        ("rtt_ms", "20 … 80", "20 ms..80 ms"),
        ("buffer", "0.5-4 bdp", "0.5 bdp..4 bdp"),
        ("buffer_kb", "50..100", "50 kb..100 kb"),
        ("loss", "0.1-1 %", "0.1 %..1 %"),
        ("loss_pct", "0,1..1", "0.1 %..1 %"),
        ("jitter_ms", "1..5", "1 ms..5 ms"),
    ],
)
def test_a_cell_can_be_a_range(tmp_path: Path, column: str, cell: str, value: str) -> None:
    (path,) = read(tmp_path, f"{column};weight\n{cell};1\n")
    ((name, found),) = path.says.items()
    assert found == value
    asked = {"rate": "50mbit", "rtt": "20ms", "buffer": "1 bdp", "candidates": OURS}
    assert name in path.question({one: given for one, given in asked.items() if one != name}).ranges


@pytest.mark.parametrize(
    ("heading", "note"),
    [
        ("rate_mbps,rtt_ms,isp,comment", "columns not used: isp and comment"),
        ("rate_mbps,rtt_ms,jiter", "columns not used: jiter (is jiter the jitter?)"),
        ("down_mbps,rtt_ms,up_mbps", "column up_mbps is not used, because the rate is that of the download"),
        ("throughput_mbps,rtt_ms", "column throughput_mbps is used as the rate: the path may be faster"),
        ("rate_mbps,latency_ms", "column latency_ms is used as the round-trip time"),
        ("rate_mbps,rtt_ms,,host", None),
        ("rate_mbps,rtt_ms,host,name", "columns not used: host"),
    ],
)
def test_table_notes_column_usage(tmp_path: Path, heading: str, note: str | None) -> None:
    cells = {"jitter_ms": "1", "host": "x", "name": "y"}
    row = ["50", "20", *(cells.get(name, "7") for name in heading.split(",")[2:])]
    found = read(tmp_path, f"{heading}\n{','.join(row)}\n")
    assert found.notes == ((note,) if note else ())
    assert found[0].says == {"rate": "50 Mbit/s", "rtt": "20 ms"}


def test_loss_without_unit_is_noted(tmp_path: Path) -> None:
    (found,) = read(tmp_path, "rate_mbps,rtt_ms,loss\n50,20,0.5\n")
    assert found.notes == ("loss 0.5 without a unit is a fraction; for per cent write 0.5 %",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("isp,comment\na,b\n", ":1"),
        ("isp,rat\na,b\n", "is rat the rate?"),
        ("rate (foo),rtt\n1,2\n", "a unit of the rate in rate (foo)"),
        ("name  rate_mbps  rtt_ms\nhome  50  20\n", "there are spaces"),
        ('[{"rate": "50mbit", "rtt": "20 ms"}]', "it is JSON"),
        ("name,rate_mbps,rtt_ms\nhome,50,5,20,1\n", "if commas are decimal"),
        ('name,rate_mbps,rtt_ms\nhome,50,20\n"office,50,20\nshop,1,2\n', ":3"),
        ("rate_mbps,rate,rtt\n1,2,3\n", "either rate_mbps or rate; not both"),
        ("rate_mbps," + "x," * 2_000 + "rtt\n1\n", "at most 1000 columns"),
    ],
)
def test_unreadable_table_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    assert message in refused(tmp_path, text)


def test_workbook_error_suggests_csv(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "paths.xlsx", "w") as book:
        book.writestr("[Content_Types].xml", "<Types/>")
    with pytest.raises(ScenarioError, match="workbooks of spreadsheets are; save the table as CSV"):
        sources.read(tmp_path / "paths.xlsx")


def test_answer_page_shows_unused_input(tmp_path: Path) -> None:
    found = read(tmp_path, "name,rate,rtt,<b>\nhome,5mbit,20 ms,1\noffice,5 Tbit/s,20 ms,2\n")
    answers = many.answer(found, {"buffer": "1 bdp", "candidates": OURS}, budget_s=0.1)
    page = many_page.write(answers, tmp_path / "out").read_text(encoding="utf-8")
    assert "columns not used: &lt;b&gt;" in page and "office: rate" in page


def test_unanswerable_table_shows_unknown_columns(tmp_path: Path) -> None:
    found = read(tmp_path, "rate_mbps,rttt_ms\n50,20\n")
    with pytest.raises(ScenarioError, match=r"give --rtt.*is rttt_ms the"):
        many.answer(found, {"candidates": OURS}, budget_s=0.1)


# Ranges of options and arguments.


@pytest.mark.parametrize(
    ("given", "low", "high"),
    [
        ("40-120ms", "40 ms", "120 ms"),
        ("40ms-120ms", "40 ms", "120 ms"),
        ("40 – 120 ms", "40 ms", "120 ms"),
        ("40…120 ms", "40 ms", "120 ms"),
        ("40..120ms", "40 ms", "120 ms"),
        ("0.5 s - 1 s", "0.5 s", "1 s"),
        ("1e-3-1e-2 s", "1e-3 s", "1e-2 s"),
        ("1e-3..1e-2 s", "1e-3 s", "1e-2 s"),
        (".5-.8 s", ".5 s", ".8 s"),
    ],
)
def test_dots_or_dash_parse_as_range(given: str, low: str, high: str) -> None:
    assert parsed("rtt", given) == Range(low, high)


@pytest.mark.parametrize("given", ["1e-3 s", "-5 ms", "20 ms", "20-", "fast-ish", "2026-11-26"])
def test_a_dash_elsewhere_is_no_range(given: str) -> None:
    assert parsed("rtt", given) == given


@pytest.mark.parametrize("given", ["20...80 ms", "-5..10 ms", "20..fast"])
def test_an_unclear_range_is_refused(given: str) -> None:
    with pytest.raises(ScenarioError, match="a range of two"):
        parsed("rtt", given)


def test_hyphenated_range_is_answered() -> None:
    found = fp.advise(rate="5mbit", rtt="40-120ms", candidates=OURS, budget=0.1)
    assert found.question.rtt == Range("40 ms", "120 ms")
    assert map.axis("x", "rtt=40-120ms") == ("rtt", Range("40 ms", "120 ms"))


@pytest.mark.parametrize("given", ["5..8mbit", "5-8mbit", "5 mbit – 8 mbit"])
def test_compare_refuses_range(given: str) -> None:
    with pytest.raises(ScenarioError, match="is a range, not one value") as caught:
        fp.compare(["cubic"], rate=given, rtt="20ms")
    assert caught.value.field == "rate"


@pytest.mark.parametrize(
    ("field", "given"), [("policer", "5..8mbit"), ("flow_size", "1-2 MB"), ("duration", "5-10 s")]
)
def test_unsupported_advise_range_is_refused(field: str, given: str) -> None:
    values: dict[str, Any] = {"rate": "10mbit", "rtt": "10ms", "candidates": OURS, field: given}
    with pytest.raises(ScenarioError, match="is a range, not one value") as caught:
        fp.advise(**values)
    assert caught.value.field == field


def test_zero_rtt_is_refused_others_answered(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match='"0 ms" cannot be used; expected a round-trip time above zero'):
        fp.advise(rate="5mbit", rtt="0 ms", candidates=OURS)
    found = many.answer(read(tmp_path, "name,rate,rtt\na,5mbit,0ms\nb,5mbit,20ms\n"), {}, budget_s=0.1)
    assert [one.path.name for one in found.answered] == ["b"]
    assert found.refused[0].path.name == "a" and "above zero" in found.refused[0].why


@pytest.mark.parametrize(
    ("heading", "cell"), [("loss_percent", "1"), ("loss", "1 percent"), ("loss [%]", "1")]
)
def test_percent_heading_needs_no_note(tmp_path: Path, heading: str, cell: str) -> None:
    (found,) = read(tmp_path, f"rate_mbps,rtt_ms,{heading}\n50,20,{cell}\n")
    assert found.notes == () and found.question({}).numbers().loss == pytest.approx(0.01)


def test_decimal_comma_allows_thousands_point(tmp_path: Path) -> None:
    first, second = read(tmp_path, "rate_mbps;rtt_ms\n12,5;20,4\n1.000;15\n")
    assert (first.question({}).numbers().rate_bps, second.question({}).numbers().rate_bps) == (12.5e6, 1e9)


def test_partial_input_reports_path_count(tmp_path: Path) -> None:
    text = "name,rate,rtt,loss\na,5mbit,20ms,1 %\nb,5mbit,20ms,\n"
    found = many.answer(read(tmp_path, text), {"candidates": OURS}, budget_s=0.1)
    assert found.inputs.measured["loss"] == "1 % (of 1 of 2 paths)"
    assert found.inputs.assumed["loss"] == "none (of 1 of 2 paths)"


def test_non_text_file_suggests_alternative(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(b"paths.csv" + bytes(500) + b"rate,rtt\n5mbit,20ms\n")
    with pytest.raises(ScenarioError, match="expected text in UTF-8 or UTF-16"):
        sources.read(tmp_path / "a.tar")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ScenarioError, match="pipe it into --from -"):
        sources.read(tmp_path / "pipe")


# Any text.

PARTS = """rate|rtt|name|rate_mbps|RTT [ms]|loss (%)|policer|queue|weight|up_mbps|sep=;|50|20 ms|1,5|1.234|x
5..8|"|20-80 ms|1e-3 s|0,1 %|5mbit|NaN|-|---|ESTAB|0|192.0.2.1:443|[::1]:https|cwnd:10|minrtt:5|delivered:500
delivery_rate|9Mbps|bbr:(bw:9bps,mrtt:3)|tcp|udp|LISTEN|Recv-Q Send-Q Local Address:Port|users:(("""
WORDS = some.sampled_from(PARTS.replace("\n", "|").split("|"))
GAPS = some.sampled_from([",", ";", "\t", "\n", "\r\n", " ", "\u00a0", "|", ""])
TEXTS = some.one_of(
    some.text(max_size=200),
    some.lists(
        some.one_of(WORDS, some.text(max_size=4)).flatmap(lambda word: GAPS.map(word.__add__)), max_size=40
    ).map("".join),
)


@given(text=TEXTS)
@settings(max_examples=400, deadline=None, derandomize=True)
def test_any_text_yields_paths_or_error(text: str) -> None:
    for reader in (ss, table):
        if not reader.is_one(text):
            continue
        try:
            found = reader.read(text, "file")
        except ScenarioError as error:
            assert len(str(error)) < 1_000
            continue
        for path in found:
            try:
                path.question({"rate": "5mbit", "rtt": "20ms", "candidates": OURS})
            except ScenarioError:
                continue


@pytest.mark.parametrize(
    "text",
    [
        "rate,rtt\n" + "1,1\n" * 100 + "1mbit,2 ms\n" * 500_000,
        "rate_mbps;rtt_ms\n" + "1;" + "1,234" * 20_000 + "\n",
        "rate_mbps;rtt_ms\n" + "1;" + "1 " * 60_000 + "\n",
        "rate_mbps;rtt_ms\n" + "1;" + "1" * 100_000 + "-" * 20_000 + "\n",
        "rate;" * 10_000,
        "(" * 60_000 + ";rate\n",
        "".join(f"ESTAB 0 0 a:1 b:{at}\n" for at in range(50_000)),
        ("ESTAB 0 0 a:1 b:2 " + "users:((" * 1_500 + "\n") * 100,
        ("cwnd: minrtt: " + "a " * 8_000 + "\n") * 100,
        ("bbr:(" * 3_000 + " cwnd:1 rtt:\n") * 100,
    ],
)
def test_hostile_texts_take_bounded_time(text: str) -> None:
    began_s = time.process_time()
    for reader in (ss, table):
        if reader.is_one(text):
            with contextlib.suppress(ScenarioError):
                reader.read(text, "file")
    # Of CPU time, so that other load does not count. Quadratic time would be minutes.
    assert time.process_time() - began_s < 30


def test_a_long_table_takes_bounded_memory() -> None:
    text = "rate_mbps,rtt_ms,a,b\n" + "1,2,3,4\n" * 100_000
    tracemalloc.start()
    with pytest.raises(ScenarioError, match="at most 10000 paths"):
        table.read(text, "file")
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # The text again, which is in four bytes for a character, and 10,000 rows.
    assert most_bytes < 5 * len(text) + 10e6


def test_table_columns_are_documented() -> None:
    page = (Path(__file__).parents[1] / "docs" / "how-to" / "advisor.md").read_text(encoding="utf-8")
    section = page.partition("## From a table")[2].partition("## From ss")[0]
    for names in table._NAMES.values():
        assert f"`{names[0]}`" in section
    for line in section.splitlines():
        cells = line.split("|")
        if len(cells) != 5 or "`" not in line:
            continue
        fields = set(cells[1].replace("`", "").replace(" ", "").split(","))
        for synonym in re.findall(r"`(\w+)`", cells[2]):
            assert {table._FIELDS[synonym]} == fields
