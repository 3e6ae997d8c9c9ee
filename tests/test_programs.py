"""Flows that are programs: run, measured by their packets, and gone afterwards, however they or we end."""

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import fullpipe as fp
from conftest import PATH, command
from fullpipe.cli import app as cli
from fullpipe.measures import measures
from fullpipe.runs.worlds import registry
from fullpipe.runs.worlds.world import refusal
from fullpipe.scenario import scenario
from fullpipe.scenario.programs import Program
from test_bad_input import expect_one_sentence, powerless

# A server that reads all that comes, or sends as much as the client asks for; and their client.
PEER = """
import socket, sys
side, address, port, amount, way = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
if side == "server":
    listening = socket.create_server((address, port))
    one, _ = listening.accept()
else:
    one = socket.create_connection((address, port), timeout=30)
if (side == "client") == (way == "up"):
    one.sendall(bytes(amount))
    one.shutdown(socket.SHUT_WR)
    while one.recv(1 << 16):
        pass
else:
    got = 0
    while part := one.recv(1 << 16):
        got += len(part)
    assert got == amount, got
print(side, "is done")
"""
AMOUNT = 400_000


@pytest.fixture
def peer(tmp_path: Path) -> str:
    """The command of the peer, without its arguments."""
    file = tmp_path / "peer.py"
    file.write_text(PEER, encoding="utf-8")
    return f"{sys.executable} {file}"


def document(client: str, server: str, *, duration: str = "8 s", **flow: Any) -> dict[str, Any]:
    return {
        "name": "programs",
        "duration": duration,
        "path": {"rate": "10 Mbit/s", "rtt": "20 ms", "buffer": "2 bdp"},
        "flows": [{"client": client, "server": server, "start_jitter": 0, **flow}],
    }


def run(client: str, server: str, **more: Any) -> fp.Run:
    (one,) = fp.run(document(client, server, **more), world="kernel", attempts=1).runs
    return one


def failure(client: str, server: str, **more: Any) -> str:
    with pytest.raises(fp.WorldError) as raised:
        run(client, server, **more)
    return str(raised.value)


def alive(marker: str) -> list[int]:
    """The processes that have the marker among their arguments."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                if marker in (folder / "cmdline").read_bytes().decode(errors="replace").split("\0"):
                    found.append(int(folder.name))
    return found


@pytest.fixture
def marker() -> Iterator[str]:
    """An argument that no other process has: seconds to sleep."""
    data = f"{100_000 + os.getpid()}.{time.monotonic_ns()}"
    yield data
    for left in alive(data):
        os.kill(left, signal.SIGKILL)


# --- Without the kernel world ---------------------------------------------------------------------


def test_file_runs_no_program_without_consent(tmp_path: Path) -> None:
    touched = tmp_path / "touched"
    file = tmp_path / "hostile.toml"
    file.write_text(
        'path = { rate = "1 Mbit/s", rtt = "20 ms" }\n[[flows]]\ncontroller = "reno"\n[[flows]]\n'
        f'client = "touch {touched}"\nserver = "touch {touched}"\n',
        encoding="utf-8",
    )
    for arguments in (
        ("run", str(file)),
        ("run", str(file), "--world", "kernel"),
        ("run", str(file), "--code", "--world", "all"),
        ("agree", str(file)),
    ):
        done = command(*arguments)
        assert done.returncode == 2, done.stderr
        assert f'{file}: flows[1].client: "touch {touched}" is a program, which the author' in done.stderr
        assert "--allow-programs" in done.stderr
    for call in (fp.load, fp.run, fp.agree):
        with pytest.raises(fp.ScenarioError, match="is a program, which the author"):
            call(file)
    assert not touched.exists()
    assert fp.load(file, programs=True).alternatives[0].spec["flows"][1]["program"]["sender"] == "client"


def test_program_under_compare_needs_consent(tmp_path: Path) -> None:
    file = tmp_path / "compare.toml"
    file.write_text(
        'compare = ["reno", { client = "true", server = "true" }]\n'
        'path = { rate = "1 Mbit/s", rtt = "20 ms" }\n',
        encoding="utf-8",
    )
    with pytest.raises(fp.ScenarioError, match="is a program, which the author"):
        fp.load(file)
    with pytest.raises(fp.ScenarioError, match="is a program, which the author"):
        scenario.from_document({"flows": [], **json.loads(fp.load(file, programs=True).text)}, code=False)


@pytest.mark.parametrize("world", ["sim", "qdisc"])
def test_other_worlds_refuse_programs(world: str) -> None:
    what = scenario.from_document(document("true", "true"))
    reason = refusal(registry.named(world), what.alternatives[0])
    assert reason is not None and 'flows[0].client: "true" is a program, which the' in reason
    assert "--world kernel" in reason
    with pytest.raises(fp.WorldError, match="is a program"):
        fp.run(what, world=world)


def test_native_simulator_refuses_programs() -> None:
    with pytest.raises(fp.ScenarioError, match="is a program, which the simulator does not run"):
        fp.Simulation(document("true", "true")).advance()


def test_specs_without_programs_are_unchanged() -> None:
    spec = scenario.comparison(["reno"], rate="1 Mbit/s", rtt="20 ms").alternatives[0].spec_json
    assert "program" not in spec


def test_program_is_written_as_in_scenario() -> None:
    one = Program("iperf3 -c {server}", "iperf3 -s", "server", "mine")
    what = scenario.comparison([one, "reno"], rate="1 Mbit/s", rtt="20 ms")
    assert [alternative.label for alternative in what.alternatives] == ["mine", "reno"]
    assert what.document["compare"][0]["sender"] == "server"
    with pytest.raises(fp.ScenarioError, match='"both" is not known; expected one of client, server'):
        scenario.comparison(Program("a", "b", "both"), rate="1 Mbit/s", rtt="20 ms")


def test_program_measures_come_from_packets() -> None:
    seen = {"packets": 200, "lost_packets": 3, "payload": "quic_udp", "rtt_source": "none"}
    seen["delay"] = {"mean_ns": 12_000_000, "p95_ns": 15_000_000}
    flow = {"controller": "x", "retransmits": None, "segments_sent": 150, "seen": seen}
    summary = {"flows": [flow], "links": [], "total_goodput_bps": 1.0}
    assert measures.retransmits(summary) is None
    assert measures.loss_ratio(summary) == 0.015
    assert measures.BY_NAME["delay_mean_ms"].take(summary) == 12.0
    data = measures.explained([summary])
    assert "UDP payload of QUIC" in data[0] and "no RTT can be seen" in data[0]


def test_conflicting_program_options_are_refused() -> None:
    for more, data in (
        ((), "CC is missing"),
        (("--program", "a"), "--server is given 0 times"),
        (("--server", "a"), "--server is given 1 time"),
        (("--program", " ", "--server", "a"), "--program is empty"),
        (("--program", "a", "--server", "b", "--sender", "both"), '--sender is "both"'),
        (("reno", "--sender", "client"), "--sender needs --program"),
    ):
        done = command("compare", *more, *PATH)
        assert done.returncode == 2 and data in done.stderr, (more, done.stderr)


def test_comparison_directory_is_named_after_programs(
    in_empty_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del in_empty_folder
    stems: list[str] = []

    def folder_for(_given: Path | None, stem: str, *, wanted: bool) -> None:
        assert wanted
        stems.append(stem)
        raise fp.WorldError("enough was seen")

    monkeypatch.setattr("fullpipe.cli.commands.compare.folder_for", folder_for)
    programs = ("--program", "A=b /usr/bin/iperf3 -c {server}", "--server", "iperf3 -s -1")
    done = CliRunner().invoke(cli.app, ["compare", "reno", *programs, *PATH])
    assert "enough was seen" in done.output and stems == ["compare-reno-iperf3"]


# --- In the kernel world --------------------------------------------------------------------------


@pytest.mark.usefixtures("kernel_world")
def test_program_hosts_negotiate_configured_ecn(peer: str, tmp_path: Path) -> None:
    def read(side: str) -> str:
        words = f"{peer} {side} {{server}} {{port}} 1000 up"
        return f"cat /proc/sys/net/ipv4/tcp_ecn > {tmp_path / side}; exec {words}"

    asked = document(read("client"), read("server"))
    fp.run({**asked, "hosts": {"ecn": True}}, world="kernel", attempts=1)
    assert [(tmp_path / side).read_text() for side in ("client", "server")] == ["1\n", "1\n"]


@pytest.mark.usefixtures("kernel_world")
@pytest.mark.parametrize(("way", "sender"), [("up", "client"), ("down", "server")])
def test_transfer_is_measured_from_its_sender(peer: str, way: str, sender: str) -> None:
    one = run(
        f"{peer} client {{server}} {{port}} {AMOUNT} {way}",
        f"{peer} server {{server}} {{port}} {AMOUNT} {way}",
        sender=sender,
        label="mine",
    )
    (flow,) = one.summary["flows"]
    seen = flow["seen"]
    assert flow["label"] == "mine" and flow["completed"]
    assert flow["delivered_bytes"] == AMOUNT and seen["returned_bytes"] == 0
    assert (seen["payload"], seen["rtt_source"], seen["connections"]) == ("tcp", "sequence_numbers", 1)
    assert flow["timeouts"] is None and flow["undos"] is None and flow["retransmits"] is not None
    # Never below what the path needs: 10 ms each way.
    assert flow["rtt_ms"]["min"] >= 20 and seen["delay"]["min_ns"] >= 10_000_000
    assert flow["segments_sent"] >= AMOUNT / 1460 and seen["packets"] >= flow["segments_sent"]
    assert 0 < flow["goodput_bps"] <= 10e6
    series = one.flow_series()
    assert series["delivered_bytes"].is_sorted() and series["cwnd_segments"].null_count() == len(series)
    # All of them, with those after the last whole interval.
    assert series["delivered_bytes"][-1] == AMOUNT


# A client that does not wait for an answer, and a server that says into a file how much it got.
PUSH = """
import pathlib, socket, sys
side, address, port, amount, buffer, file = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6]), sys.argv[6]
if side == "server":
    one, _ = socket.create_server((address, port)).accept()
    got = 0
    while part := one.recv(1 << 16):
        got += len(part)
    pathlib.Path(file).write_text(str(got))
else:
    one = socket.socket()
    if buffer:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer)
    one.connect((address, port))
    one.sendall(bytes(amount))
    one.close()
"""


def pushed(tmp_path: Path, buffer: int, duration: str) -> tuple[fp.Run, str]:
    """The run of a client that leaves a megabyte to its kernel, and what its server got."""
    file, got = tmp_path / "push.py", tmp_path / "got"
    file.write_text(PUSH, encoding="utf-8")
    got.write_text("nothing to its end", encoding="utf-8")
    sides = (
        f"{sys.executable} {file} {side} {{server}} {{port}} 1000000 {buffer} {got}"
        for side in ("client", "server")
    )
    return run(*sides, duration=duration), got.read_text(encoding="utf-8")


@pytest.mark.usefixtures("kernel_world")
@pytest.mark.parametrize("buffer", [0, 4_000_000])
def test_data_buffered_at_exit_arrives(tmp_path: Path, buffer: int) -> None:
    one, got = pushed(tmp_path, buffer, "20 s")
    (flow,) = one.summary["flows"]
    assert (flow["delivered_bytes"], flow["completed"], got) == (1_000_000, True, "1000000")
    # A megabyte needs 0.8 s.
    assert 0.8 < (flow["end_ns"] - flow["start_ns"]) / 1e9 < 20


@pytest.mark.usefixtures("kernel_world")
def test_cut_off_transfer_is_incomplete(tmp_path: Path) -> None:
    one, _ = pushed(tmp_path, 4_000_000, "500 ms")
    (flow,) = one.summary["flows"]
    assert 0 < flow["delivered_bytes"] < 700_000 and not flow["completed"]
    assert any(
        "its client ended, but" in data and "had not arrived at the end of the scenario" in data
        for data in one.summary["provenance"]["untrustworthy"]
    )


@pytest.mark.usefixtures("kernel_world")
def test_queued_datagrams_arrive_after_exit(tmp_path: Path) -> None:
    file = tmp_path / "burst.py"
    file.write_text(
        "import socket, sys\n"
        "one = socket.socket(type=socket.SOCK_DGRAM)\n"
        "if sys.argv[1] == 'server':\n"
        "    one.bind((sys.argv[2], 7000))\n"
        "    while one.recvfrom(2000):\n"
        "        pass\n"
        "for _ in range(200):\n"
        "    one.sendto(bytes(1200), (sys.argv[2], 7000))\n",
        encoding="utf-8",
    )
    sides = [f"{sys.executable} {file} {side} {{server}}" for side in ("client", "server")]
    asked = document(*sides)
    asked["path"]["buffer"] = "1 MB"
    (one,) = fp.run(asked, world="kernel", attempts=1).runs
    (flow,) = one.summary["flows"]
    assert (flow["delivered_bytes"], flow["seen"]["lost_packets"], flow["completed"]) == (240_000, 0, True)


@pytest.mark.usefixtures("kernel_world")
def test_datagrams_are_counted_without_retransmissions(tmp_path: Path) -> None:
    file = tmp_path / "udp.py"
    file.write_text(
        "import socket, sys\n"
        "one = socket.socket(type=socket.SOCK_DGRAM)\n"
        "if sys.argv[1] == 'server':\n"
        "    one.bind((sys.argv[2], 7000))\n"
        "    for _ in range(100):\n"
        "        data, peer = one.recvfrom(2000)\n"
        "    one.sendto(b'thanks', peer)\n"
        "    one.recvfrom(1)\n"
        "else:\n"
        "    one.connect((sys.argv[2], 7000))\n"
        "    for _ in range(100):\n"
        "        one.send(bytes(300))\n"
        "    one.recv(100)\n",
        encoding="utf-8",
    )
    one = run(f"{sys.executable} {file} client {{server}}", f"{sys.executable} {file} server {{server}}")
    (flow,) = one.summary["flows"]
    assert (flow["delivered_bytes"], flow["segments_sent"], flow["retransmits"]) == (30_000, 100, None)
    assert (flow["seen"]["payload"], flow["seen"]["rtt_source"]) == ("udp", "none")
    assert (flow["seen"]["returned_bytes"], flow["rtt_ms"]) == (6, None)
    assert one.flow_series()["delivered_bytes"][-1] == 30_000


@pytest.mark.usefixtures("kernel_world")
def test_flows_of_program_differ_by_port(peer: str) -> None:
    one = run(
        f"{peer} client {{server}} {{port}} {AMOUNT} up",
        f"{peer} server {{server}} {{port}} {AMOUNT} up",
        count=2,
    )
    assert [flow["delivered_bytes"] for flow in one.summary["flows"]] == [AMOUNT, AMOUNT]
    data = failure("a {server}", "b", count=2)
    assert "flows[0].client: is one of 2 flows" in data and "{port}" in data


@pytest.mark.usefixtures("kernel_world")
def test_the_wrong_sender_is_an_error(peer: str) -> None:
    data = failure(
        f"{peer} client {{server}} {{port}} {AMOUNT} down", f"{peer} server {{server}} {{port}} {AMOUNT} down"
    )
    assert (
        "0 bytes of payload came from the sender, which is said to be the client" in data
        and 'write sender = "server"' in data
    )


@pytest.mark.usefixtures("kernel_world")
def test_failed_client_reports_its_last_output(peer: str) -> None:
    serving = f"{peer} server {{server}} {{port}} 1 up"
    data = failure("echo one; echo two >&2; exit 3", serving)
    assert 'the client "echo one; echo two >&2; exit 3" exited with code 3' in data
    assert "the client printed last: one / two" in data and "the server printed nothing" in data
    data = failure("kill -SEGV $$", serving)
    assert "was ended by signal 11" in data
    data = failure("no-such-command-anywhere", serving)
    assert "was not found" in data and "no-such-command-anywhere" in data.split("printed last")[1]


@pytest.mark.usefixtures("kernel_world")
@pytest.mark.parametrize("way", ["kill 0", "kill -STOP 0"])
def test_group_signal_reaches_only_program(peer: str, way: str) -> None:
    client, server = (f"{peer} {side} {{server}} {{port}} {AMOUNT} up" for side in ("client", "server"))
    if way == "kill 0":
        # As of a script that cleans up.
        assert "was ended by signal 15" in failure(f"{client}; kill 0; exit 0", server)
    else:
        one = run(f"{client}; {way}", server, duration="3 s")
        assert one.summary["flows"][0]["delivered_bytes"] == AMOUNT


@pytest.mark.usefixtures("kernel_world")
def test_program_reaches_none_of_our_files(peer: str, tmp_path: Path) -> None:
    client, server = (f"{peer} {side} {{server}} {{port}} {AMOUNT} up" for side in ("client", "server"))
    listed = tmp_path / "listed"
    # Root may look, and finds the pipes of its own command: its output, its start, and our life.
    one = run(
        f"ls -l /proc/1/fd > {listed} 2>/dev/null; "
        # Not into those of the machine's own process 1.
        '[ "$(readlink /proc/1/ns/pid)" != "$(readlink /proc/self/ns/pid)" ] || '
        f"for file in /proc/1/fd/*; do echo forged 2>/dev/null > $file; done; {client}",
        server,
    )
    assert one.summary["flows"][0]["delivered_bytes"] == AMOUNT
    targets = [line.rpartition(" -> ")[2] for line in listed.read_text().splitlines() if " -> " in line]
    assert all(target == "/dev/null" or target.startswith("pipe:") for target in targets), targets
    assert len(targets) <= 6


@pytest.mark.usefixtures("kernel_world")
def test_a_program_has_no_terminal(peer: str) -> None:
    # What it would say to the terminal is in no command line, and so in no message.
    client = "printf 'ma%s' rker > /dev/tty; cat /dev/tty"
    arguments = ["compare", *PATH, "--duration", "1 s", "--repetitions", "1", "--program", client]
    arguments += ["--server", f"{peer} server {{server}} {{port}} 1 up"]
    child, terminal = pty.fork()
    if child == 0:
        os.execv(sys.executable, [sys.executable, "-m", "fullpipe", *arguments])
    data = b""
    # Linux says so when nobody has the other end open.
    with contextlib.suppress(OSError):
        while part := os.read(terminal, 1 << 16):
            data += part
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    words = " ".join(data.decode(errors="replace").split())
    assert os.waitstatus_to_exitcode(status) not in (0, 70), words
    assert "marker" not in words and "exited with code 1" in words


@pytest.mark.usefixtures("kernel_world")
def test_a_client_that_hangs_is_ended(peer: str, marker: str) -> None:
    data = failure(f"echo waiting; sleep {marker}", f"{peer} server {{server}} {{port}} 1 up", duration="1 s")
    assert "was still running at its end, and no payload crossed the path" in data
    assert "printed last: waiting" in data
    assert alive(marker) == []


@pytest.mark.usefixtures("kernel_world")
@pytest.mark.parametrize("side", ["client", "server"])
def test_a_flood_of_output_is_stopped(peer: str, side: str) -> None:
    serving = f"{peer} server {{server}} {{port}} 1 up"
    client, server = ("yes flood", serving) if side == "client" else ("sleep 60", f"yes flood & {serving}")
    data = failure(client, server)
    assert f"the {side} " in data and "printed more than 16 MiB" in data and "flood / flood" in data


@pytest.mark.usefixtures("kernel_world")
def test_packet_flood_is_dropped_and_ends(tmp_path: Path) -> None:
    file = tmp_path / "flood.py"
    file.write_text(
        "import socket, sys\n"
        "one = socket.socket(type=socket.SOCK_DGRAM)\n"
        "if sys.argv[1] == 'server':\n"
        "    one.bind((sys.argv[2], 7000))\n"
        "    while one.recvfrom(2000):\n"
        "        pass\n"
        "while True:\n"
        "    one.sendto(bytes(1400), (sys.argv[2], 7000))\n",
        encoding="utf-8",
    )
    one = run(
        f"{sys.executable} {file} client {{server}}",
        f"{sys.executable} {file} server {{server}}",
        duration="1 s",
    )
    (flow,) = one.summary["flows"]
    assert not flow["completed"] and flow["seen"]["lost_packets"] > 0
    assert flow["goodput_bps"] <= 10e6


@pytest.mark.usefixtures("kernel_world")
def test_detached_children_end_with_their_program(peer: str, marker: str) -> None:
    # Twice forked, and in a session of its own: nothing is left that waits for it.
    leaving = f"(setsid sleep {marker} >/dev/null 2>&1 &) ; "
    one = run(
        f"{leaving} {peer} client {{server}} {{port}} {AMOUNT} up",
        f"{leaving} {peer} server {{server}} {{port}} {AMOUNT} up",
    )
    assert one.summary["flows"][0]["delivered_bytes"] == AMOUNT
    assert alive(marker) == []


@pytest.mark.usefixtures("kernel_world")
def test_early_server_exit_is_an_error(peer: str) -> None:
    data = failure("true", "echo no licence; exit 4")
    assert "exited with code 4 before it had opened a port" in data and "printed last: no licence" in data
    # As one that goes into the background.
    data = failure("true", f"{peer} server {{server}} {{port}} 1 up &")
    assert "ended before it had opened a port" in data and "foreground" in data


@pytest.mark.usefixtures("kernel_world")
def test_late_server_death_is_an_error(tmp_path: Path, marker: str) -> None:
    file = tmp_path / "dies.py"
    file.write_text(
        "import socket, sys\nsocket.create_server(('', 7000)).accept()[0].recv(10)\nsys.exit('I am ill')\n",
        encoding="utf-8",
    )
    client = tmp_path / "waits.py"
    client.write_text(
        "import socket, sys, time\n"
        "one = socket.create_connection((sys.argv[1], 7000))\n"
        "one.send(b'x')\n"
        "time.sleep(float(sys.argv[2]))\n",
        encoding="utf-8",
    )
    data = failure(
        f"{sys.executable} {client} {{server}} {marker}", f"{sys.executable} {file}", duration="30 s"
    )
    assert "exited with code 1 while its client ran" in data and "I am ill" in data
    assert alive(marker) == []


@pytest.mark.usefixtures("kernel_world")
def test_killing_us_leaves_no_process(peer: str, marker: str) -> None:
    ours = subprocess.Popen(
        [
            *(sys.executable, "-m", "fullpipe", "compare", *PATH, "--duration", "60 s", "--json"),
            *("--program", f"setsid sleep {marker}", "--server", f"{peer} server {{server}} {{port}} 1 up"),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: alive(marker) != [])
    finally:
        ours.kill()
        ours.wait()
    until(lambda: alive(marker) == [])


def until(holds: Any) -> None:
    """Waits until something holds; the test fails if that takes a minute."""
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.usefixtures("kernel_world")
def test_compare_and_run_show_programs(peer: str, tmp_path: Path) -> None:
    client = f"{peer} client {{server}} {{port}} {AMOUNT} up"
    server = f"{peer} server {{server}} {{port}} {AMOUNT} up"
    done = command(
        "compare",
        "--program",
        client,
        "--server",
        server,
        *PATH,
        "--duration",
        "8 s",
        "--repetitions",
        "1",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)["results"]
    assert result["world"] == "kernel"
    # A run that a busy machine spoilt has no means.
    if result["trusted"] == 1:
        assert result["goodput_bps"]["mean"] > 0 and result["delay_mean_ms"]["mean"] >= 10
    else:
        assert result["goodput_bps"]["mean"] is None
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(document(client, server)), encoding="utf-8")
    done = command(
        "run",
        str(file),
        "--allow-programs",
        "--world",
        "kernel",
        "--attempts",
        "1",
        "--out",
        str(tmp_path / "out"),
    )
    assert done.returncode == 0, done.stderr
    assert "seen by its packets: its goodput is TCP payload" in done.stdout.replace("\n", " ")
    assert (tmp_path / "out" / "report.html").exists()


@pytest.mark.parametrize("how", ["run", "compare", "conform"])
def test_unprivileged_program_is_refused_unrun(how: str, in_empty_folder: Path) -> None:
    client, server = f"touch {in_empty_folder}/client-ran", f"touch {in_empty_folder}/server-ran"
    Path("programs.toml").write_text(
        'duration = "2 s"\npath = { rate = "10 Mbit/s", rtt = "20 ms" }\n'
        f'[[flows]]\nclient = "{client}"\nserver = "{server}"\n',
        encoding="utf-8",
    )
    as_options = ["--program", client, "--server", server]
    asked = {
        "run": ["programs.toml", "--world", "kernel", "--allow-programs"],
        "compare": [*as_options, "--rate", "10 Mbit/s", "--rtt", "20 ms", "--duration", "2 s"],
        "conform": as_options,
    }[how]
    done = powerless(how, *asked, "--out", "here")
    # What is missing, and the setting that forbids it there.
    expect_one_sentence(done.returncode, done.stdout, done.stderr, "not permitted to", "user namespace")
    assert "run as root, or allow user namespaces once, as root: `sysctl -w user.max" in done.stderr
    assert [one.name for one in in_empty_folder.iterdir()] == ["programs.toml"]
