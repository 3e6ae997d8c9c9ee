"""`fullpipe shell`: what its options mean, its prompt, and that packets meet the path both ways."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from conftest import command
from fullpipe.cli import app as cli

PATH = ("--rate", "10 Mbit/s", "--rtt", "100 ms")
PROMPT = Path(cli.__file__).parent / "commands" / "prompt"

Directions = dict[str, dict[str, dict[str, Any]]]


@pytest.fixture
def resolved(monkeypatch: pytest.MonkeyPatch, in_empty_folder: Path) -> Callable[..., Directions]:
    """What the options resolve to, by direction and kind of element; the command itself does not start."""
    requests: list[str] = []
    monkeypatch.setattr(os, "execv", lambda program, arguments: requests.append(arguments[-1]))
    monkeypatch.setenv("SHELL", "/usr/bin/fish")
    for name in ("slow", "fast"):
        # One packet each 10 ms and each 1 ms: 1.2 and 12 Mbit/s.
        Path(f"{name}.trace").write_text("10\n" if name == "slow" else "1\n", encoding="ascii")

    def resolve(*options: str) -> Directions:
        done = CliRunner().invoke(cli.app, ["shell", "--rtt", "100 ms", *options])
        assert done.exit_code == 0, done.stderr
        spec = json.loads(json.loads(requests.pop())["spec"])
        return {
            way: {element["kind"]: element for element in spec[direction]}
            for way, direction in (("up", "forward"), ("down", "reverse"))
        }

    return resolve


def test_every_option_applies_to_both_directions(resolved: Callable[..., Directions]) -> None:
    path = resolved("--rate", "10mbit", "--buffer", "50 KB", "--loss", "20%", "--jitter", "2ms")
    for way in ("up", "down"):
        assert path[way]["link"]["rate_bps"]["initial"] == 10_000_000
        assert path[way]["link"]["queue"]["bytes"] == 50_000
        assert path[way]["loss"]["probability"]["initial"] == pytest.approx(0.2 * 2**32, abs=1)
        assert path[way]["jitter"]["amplitude_ns"] == 2_000_000
        assert path[way]["delay"]["delay_ns"]["initial"] == 50_000_000


def test_option_trace_applies_to_both_directions(resolved: Callable[..., Directions]) -> None:
    path = resolved("--deliveries", "slow.trace")
    for way in ("up", "down"):
        assert path[way]["delivery_trace"]["opportunities_ms"] == [10]
        # 1 bdp: 1.2 Mbit/s for 100 ms.
        assert path[way]["delivery_trace"]["queue"]["bytes"] == 15_000


def test_direction_options_override_common_ones(resolved: Callable[..., Directions]) -> None:
    path = resolved("--rate", "10mbit", "--loss", "1%", "--up-rate", "1mbit", "--down-loss", "0")
    assert path["up"]["link"]["rate_bps"]["initial"] == 1_000_000
    # A buffer that nobody gave is at least 10 packets.
    assert path["up"]["link"]["queue"]["bytes"] == 15_000
    assert path["down"]["link"]["rate_bps"]["initial"] == 10_000_000
    assert path["down"]["link"]["queue"]["bytes"] == 125_000
    assert path["up"]["loss"]["probability"]["initial"] > 0
    assert path["down"]["loss"]["probability"]["initial"] == 0


def test_default_buffer_is_ten_packets(
    resolved: Callable[..., Directions],
) -> None:
    path = resolved("--rate", "300kbit", "--rtt", "40 ms")
    assert [path[way]["link"]["queue"]["bytes"] for way in ("up", "down")] == [15_000, 15_000]
    path = resolved("--rate", "300kbit", "--rtt", "40 ms", "--down-buffer", "1 bdp")
    assert [path[way]["link"]["queue"]["bytes"] for way in ("up", "down")] == [15_000, 1_500]


def test_queue_discipline_applies_per_direction(resolved: Callable[..., Directions]) -> None:
    path = resolved("--rate", "10mbit", "--queue", "codel:target=1ms")
    for way in ("up", "down"):
        assert path[way]["link"]["queue"]["discipline"]["kind"] == "codel"
        assert path[way]["link"]["queue"]["discipline"]["target_ns"] == 1_000_000
    path = resolved("--rate", "10mbit", "--queue", "codel", "--up-queue", "fq_codel", "--down-queue", "fifo")
    assert path["up"]["link"]["queue"]["discipline"]["kind"] == "fq_codel"
    assert "discipline" not in path["down"]["link"]["queue"]


def test_trace_and_rate_exclude_each_other(
    resolved: Callable[..., Directions],
) -> None:
    path = resolved("--rate", "10mbit", "--down-deliveries", "slow.trace")
    assert "link" in path["up"] and "delivery_trace" not in path["up"]
    assert "delivery_trace" in path["down"] and "link" not in path["down"]
    path = resolved("--deliveries", "slow.trace", "--down-deliveries", "fast.trace", "--up-rate", "5mbit")
    assert path["up"]["link"]["rate_bps"]["initial"] == 5_000_000
    assert path["down"]["delivery_trace"]["opportunities_ms"] == [1]


FILE = """
name = "mine"
seed = 77
duration = "9 s"
[path]
rate = "30 Mbit/s"
rtt = "60 ms"
buffer = "90 KB"
loss = "1 %"
[[path.before]]
kind = "policer"
rate = "8 Mbit/s"
burst = "40 KB"
[[path.changes]]
at = "2 s"
rate = "3 Mbit/s"
[path.reverse]
deliveries = "slow.trace"
buffer = "30 KB"
[hosts]
mtu = 1400
[[flows]]
client = "touch never"
server = "touch never"
"""


@pytest.fixture
def spec_of(monkeypatch: pytest.MonkeyPatch, in_empty_folder: Path) -> Callable[..., dict[str, Any]]:
    """The spec of `fullpipe shell` with these options; the command itself does not start."""
    requests: list[str] = []
    monkeypatch.setattr(os, "execv", lambda program, arguments: requests.append(arguments[-1]))
    Path("files").mkdir()
    Path("files/mine.toml").write_text(FILE, encoding="utf-8")
    # Beside the file, and a different one in the working directory.
    Path("files/slow.trace").write_text("10\n", encoding="ascii")
    Path("own.trace").write_text("1\n", encoding="ascii")

    def spec(*options: str) -> dict[str, Any]:
        done = CliRunner().invoke(cli.app, ["shell", *options])
        assert done.exit_code == 0, done.stderr
        found: dict[str, Any] = json.loads(json.loads(requests.pop())["spec"])
        return found

    return spec


def kinds(spec: dict[str, Any], direction: str) -> dict[str, dict[str, Any]]:
    return {element["kind"]: element for element in spec[direction]}


def test_path_file_sets_elements_hosts_seed(spec_of: Callable[..., dict[str, Any]]) -> None:
    spec = spec_of("--path", "files/mine.toml")
    up, down = kinds(spec, "forward"), kinds(spec, "reverse")
    assert "policer" in up
    assert up["link"]["rate_bps"]["initial"] == 30_000_000
    assert up["link"]["rate_bps"]["changes"] == [[2_000_000_000, 3_000_000]]
    assert down["delivery_trace"]["opportunities_ms"] == [10]
    assert (spec["mtu_bytes"], spec["seed"], spec["hosts"].get("ecn", False)) == (1400, 77, False)
    assert [flow.get("program") for flow in spec["flows"]] == [None]
    assert not Path("never").exists()


def test_options_win_over_the_file(spec_of: Callable[..., dict[str, Any]]) -> None:
    options = ("--rtt", "20 ms", "--loss", "2 %", "--down-rate", "5mbit", "--seed", "3", "--ecn")
    spec = spec_of("--path", "files/mine.toml", *options)
    up, down = kinds(spec, "forward"), kinds(spec, "reverse")
    assert up["delay"]["delay_ns"]["initial"] == down["delay"]["delay_ns"]["initial"] == 10_000_000
    for way in (up, down):
        assert way["loss"]["probability"]["initial"] == pytest.approx(0.02 * 2**32, abs=1)
    assert down["link"]["rate_bps"]["initial"] == 5_000_000 and "delivery_trace" not in down
    assert up["link"]["rate_bps"]["initial"] == 30_000_000 and "policer" in up
    assert (spec["seed"], spec["hosts"]["ecn"]) == (3, True)


def test_option_trace_is_relative_to_cwd(
    spec_of: Callable[..., dict[str, Any]],
) -> None:
    down = kinds(spec_of("--path", "files/mine.toml", "--down-deliveries", "own.trace"), "reverse")
    assert down["delivery_trace"]["opportunities_ms"] == [1]


def test_each_shell_has_another_seed(spec_of: Callable[..., dict[str, Any]]) -> None:
    assert len({spec_of(*PATH)["seed"] for _ in range(4)}) == 4
    assert {spec_of(*PATH, "--seed", "12")["seed"] for _ in range(2)} == {12}


@pytest.mark.usefixtures("spec_of")
@pytest.mark.parametrize(
    ("options", "start", "words"),
    [
        (("--path", "files/none.toml"), '--path "files/none.toml"', "No such file"),
        (("--path", "files/slow.trace"), '--path "files/slow.trace"', "expected a scenario file"),
        (("--path", "files/mine.toml", "--rtt", "soon"), "--rtt ", "soon"),
        (("--path", "files/mine.toml", "--down-rate", "5 parsecs"), "--down-rate ", "parsecs"),
        (("--rate", "1mbit"), "--rtt ", "add --rtt '40 ms', or --path"),
    ],
)
def test_error_beside_file_names_option(options: tuple[str, ...], start: str, words: str) -> None:
    done = CliRunner().invoke(cli.app, ["shell", *options])
    assert done.exit_code == 2
    assert done.stderr.startswith(f"fullpipe: {start}") and words in done.stderr, done.stderr


RTT = ("--rtt", "100 ms")
MISTAKES = {
    "no rate": ((*RTT,), "--rate", "add --rate"),
    "a rate for one direction": ((*RTT, "--up-rate", "1mbit"), "--down-rate", "add --rate"),
    "rate and trace": (("--deliveries", "x", *PATH), "--deliveries", "cannot be used with --rate"),
    "a bad rate": (("--rate", "5 parsecs", *RTT), "--rate", 'write --rate "100 Mbit/s"'),
    "a bad rate of one direction": ((*PATH, "--down-rate", "5 parsecs"), "--down-rate", "parsecs"),
    "a bad loss of one direction": ((*PATH, "--up-loss", "150 %"), "--up-loss", "150"),
    "a bad buffer": ((*PATH, "--buffer", ""), "--buffer", '""'),
    "a bad queue": ((*PATH, "--queue", "codle"), "--queue", "codel"),
    "a bad queue of one direction": ((*PATH, "--down-queue", "red:max=1 mile"), "--down-queue", "1 mile"),
    "a buffer below a frame": (
        ("--rate", "1mbit", "--rtt", "1ms", "--router", "tbf", "--burst", "9KB", "--buffer", "1000 B"),
        "--buffer",
        '"1000 B" is below one Ethernet frame; expected at least one Ethernet '
        'frame of 1514 bytes (hosts.mtu and its header); write --buffer "100 KB"',
    ),
    "a bucket beyond what tc takes": (
        (*PATH, "--router", "tbf", "--burst", "999GB"),
        "--burst",
        '"999GB" is above 4.294967295 GB',
    ),
    "a queue beside a router": (
        (*PATH, "--router", "tbf", "--burst", "9KB", "--queue", "codel"),
        "--queue",
        "remove --queue, or remove --router",
    ),
    "a queue of one direction beside a router": (
        (*PATH, "--router", "tbf", "--burst", "9KB", "--up-queue", "codel"),
        "--up-queue",
        "remove --up-queue, or remove --router",
    ),
    "deliveries beside a router": (
        (*RTT, "--deliveries", "x", "--router", "tbf"),
        "--router",
        "together with deliveries; expected router together with rate, burst and buffer; remove --router",
    ),
    "a queue without a name": ((*PATH, "--up-queue", ""), "--up-queue", '""'),
    "a bad rtt": (("--rate", "1mbit", "--rtt", "soon"), "--rtt", "soon"),
    "no such trace": ((*RTT, "--deliveries", "none.trace"), "--deliveries", "none.trace"),
    "no such server": ((*PATH, "--server", "nosuchserver -x"), "--server", '"nosuchserver"'),
    "a server that is no program": ((*PATH, "--server", "./data"), "--server", "not an executable file"),
    "no server": ((*PATH, "--server", ""), "--server", "name a program"),
}


@pytest.mark.parametrize(("options", "option", "words"), MISTAKES.values(), ids=MISTAKES)
def test_option_error_is_named_before_start(
    options: tuple[str, ...],
    option: str,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    in_empty_folder: Path,
) -> None:
    monkeypatch.setattr(os, "execv", lambda *_: pytest.fail("it started"))
    Path("data").write_text("no program", encoding="ascii")
    done = CliRunner().invoke(cli.app, ["shell", *options, "--", "true"])
    assert done.exit_code == 2
    assert done.stderr.startswith(f"fullpipe: {option} "), done.stderr
    assert words in done.stderr
    assert "path." not in done.stderr


def prompts(shell: list[str], home: Path, **environment: str) -> str:
    """What an interactive shell prints on stderr: its prompts."""
    if shutil.which(shell[0]) is None:
        pytest.skip(f"{shell[0]} is not installed")
    done = subprocess.run(
        [*shell, "-i"],
        input="exit\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        # A session of its own: an interactive shell must not take the terminal of the tests.
        start_new_session=True,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "dumb", **environment},
    )
    return done.stdout + done.stderr


NESTED = "[10 Mbit/s 80 ms] [1 Mbit/s 20 % loss 20 ms]"


@pytest.mark.parametrize(
    "own", ["PS1='mine$ '", "PROMPT_COMMAND='PS1=\"mine$ \"'", "export PS1='[10 Mbit/s 80 ms] mine$ '"]
)
def test_bash_shows_paths_before_own_prompt(own: str, tmp_path: Path) -> None:
    (tmp_path / ".bashrc").write_text(own + "\n", encoding="ascii")
    shown = prompts(["bash", "--rcfile", str(PROMPT / "bashrc")], tmp_path, FULLPIPE_PATH=NESTED)
    assert f"{NESTED} mine$ " in shown
    assert shown.count("[10 Mbit/s 80 ms]") == shown.count("mine$ ")


@pytest.mark.parametrize("elsewhere", [False, True])
def test_zsh_shows_paths_and_reads_config(elsewhere: bool, tmp_path: Path) -> None:
    folder = tmp_path / "zsh" if elsewhere else tmp_path
    folder.mkdir(exist_ok=True)
    (folder / ".zshenv").write_text("SEEN=yes\n", encoding="ascii")
    (folder / ".zshrc").write_text('PS1="mine$SEEN "\n', encoding="ascii")
    own = {"FULLPIPE_ZDOTDIR": str(folder)} if elsewhere else {}
    shown = prompts(["zsh"], tmp_path, FULLPIPE_PATH=NESTED, ZDOTDIR=str(PROMPT), **own)
    assert f"{NESTED} mineyes " in shown


@pytest.mark.parametrize("shell", ["dash", "sh"])
def test_sh_shows_paths_and_reads_config(shell: str, tmp_path: Path) -> None:
    (tmp_path / "own").write_text("PS1='[10 Mbit/s 80 ms] mine '\n", encoding="ascii")
    shown = prompts(
        [shell],
        tmp_path,
        FULLPIPE_PATH=NESTED,
        ENV=str(PROMPT / "shrc"),
        FULLPIPE_ENV=str(tmp_path / "own"),
    )
    assert f"{NESTED} mine " in shown
    assert shown.count("[10 Mbit/s 80 ms]") == shown.count("mine ")


def test_the_package_has_the_startup_files() -> None:
    assert {file.name for file in PROMPT.iterdir()} == {"bashrc", ".zshenv", "shrc"}


def outcome(stderr: str, way: str) -> dict[str, int]:
    """The last line about a direction: packets, delivered, dropped and lost."""
    lines = [line for line in stderr.splitlines() if re.match(rf"fullpipe: {way} .*: \d+ packets?", line)]
    numbers = re.search(
        r": (\d+) packets?, (\d+) delivered, (\d+) dropped by the queue, (\d+) lost at random", lines[-1]
    )
    assert numbers, stderr
    return dict(zip(("packets", "delivered", "dropped", "lost"), map(int, numbers.groups()), strict=True))


ECHO = """
import socket, sys
peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
peer.setsockopt(socket.SOL_SOCKET, 33, 1 << 23)  # SO_RCVBUFFORCE: room for every datagram
peer.bind(("", 9001))
with open(sys.argv[1], "w", buffering=1) as received:
    while True:
        datagram, sender = peer.recvfrom(100)
        print(datagram.decode(), file=received)
        peer.sendto(datagram, sender)
"""
SEND = """
import os, socket
peer = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
peer.setsockopt(socket.SOL_SOCKET, 33, 1 << 23)
peer.connect((os.environ["FULLPIPE_SERVER"], 9001))
for number in range(400):
    peer.send(b"%d" % number)
# The path takes 100 ms: what is not here long after that was lost.
peer.settimeout(3)
try:
    while True:
        print(peer.recv(100).decode())
except TimeoutError:
    pass
"""


@pytest.mark.usefixtures("kernel_world")
def test_datagram_loss_is_independent_per_direction(tmp_path: Path) -> None:
    log = tmp_path / "received"
    server = shlex.join([sys.executable, "-c", ECHO, str(log)])
    done = command("shell", *PATH, "--loss", "20%", "--server", server, "--", sys.executable, "-c", SEND)
    assert done.returncode == 0, done.stderr
    arrived = [int(line) for line in log.read_text(encoding="ascii").split()]
    returned = [int(line) for line in done.stdout.split()]
    up, down = outcome(done.stderr, "up"), outcome(done.stderr, "down")
    # A connection of an earlier shell at the same address may send a last packet or two, and get a reset.
    for way, sent, received in ((up, 400, len(arrived)), (down, len(arrived), len(returned))):
        assert way["packets"] == way["delivered"] + way["lost"] + way["dropped"]
        assert 0 <= way["packets"] - sent <= 4
        assert 0 <= way["delivered"] - received <= 4
        assert 0 <= way["lost"] - (sent - received) <= 4
    # Five standard deviations on either side.
    assert 0.1 < up["lost"] / up["packets"] < 0.3
    assert 0.1 < down["lost"] / down["packets"] < 0.3
    # Were both streams the same, the same packets of the sequence would be lost.
    lost_up = [number not in arrived for number in range(400)]
    lost_down = [number not in returned for number in arrived]
    assert lost_up[:200] != lost_down[:200]


TRANSFER = """
import socket
with socket.create_server(("", 9002)) as listening:
    peer, _ = listening.accept()
    peer.sendall(bytes(150_000))
    received = 0
    while received < 150_000:
        received += len(peer.recv(65536))
    peer.sendall(b"x")
"""
MEASURE = """
import os, socket, time
peer = socket.create_connection((os.environ["FULLPIPE_SERVER"], 9002))
for way in ("down", "up"):
    start = time.monotonic()
    if way == "down":
        received = 0
        while received < 150_000:
            received += len(peer.recv(65536))
    else:
        peer.sendall(bytes(150_000))
        peer.recv(1)
    print(time.monotonic() - start)
"""


@pytest.mark.usefixtures("kernel_world")
def test_a_delivery_trace_limits_both_directions(in_empty_folder: Path) -> None:
    # One packet of 1500 bytes each 10 ms: 150 000 bytes need 100 packets, a second.
    Path("slow.trace").write_text("10\n", encoding="ascii")
    server = shlex.join([sys.executable, "-c", TRANSFER])
    path = ("--deliveries", "slow.trace", "--rtt", "20 ms", "--buffer", "1 MB")
    done = command("shell", *path, "--server", server, "--", sys.executable, "-c", MEASURE)
    assert done.returncode == 0, done.stderr
    # A slow machine only takes longer.
    assert all(float(line) > 0.9 for line in done.stdout.split()), done.stdout
    for way in ("up", "down"):
        assert outcome(done.stderr, way)["packets"] >= 100


@pytest.mark.usefixtures("kernel_world")
def test_curl_downloads_through_the_path(in_empty_folder: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    Path("file").write_bytes(bytes(200_000))
    server = shlex.join([sys.executable, "-m", "http.server", "9003"])
    fetch = "curl -sS -o fetched http://$FULLPIPE_SERVER:9003/file"
    done = command("shell", *PATH, "--server", server, "--", "sh", "-c", fetch)
    assert done.returncode == 0, done.stderr
    assert Path("fetched").stat().st_size == 200_000
    # In segments of 1448 bytes.
    assert outcome(done.stderr, "down")["packets"] >= 139
    assert outcome(done.stderr, "down")["packets"] > outcome(done.stderr, "up")["packets"]


@pytest.mark.usefixtures("kernel_world")
def test_shell_hosts_negotiate_configured_ecn() -> None:
    read = "cat /proc/sys/net/ipv4/tcp_ecn"
    server = shlex.join(["sh", "-c", f"{read} >&2; exec {sys.executable} -m http.server {{port}} >&2"])
    done = command("shell", *PATH, "--ecn", "--seed", "5", "--server", server, "--", "sh", "-c", read)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1\n" and "1" in done.stderr.splitlines()
    assert "fullpipe: seed 5; --seed 5 repeats" in done.stderr


@pytest.mark.usefixtures("kernel_world")
def test_exit_code_and_nested_paths_propagate() -> None:
    inner = ("shell", "--rtt", "20 ms", "--up-rate", "1mbit", "--down-rate", "2mbit", "--down-loss", "1%")
    script = 'echo "$FULLPIPE_PATH"; exit 42'
    done = command("shell", *PATH, "--", sys.executable, "-m", "fullpipe", *inner, "--", "sh", "-c", script)
    assert done.returncode == 42, done.stderr
    assert done.stdout == "[10 Mbit/s 100 ms] [up 1 Mbit/s, down 2 Mbit/s 1 % loss, 20 ms]\n"
    assert "up (from the command): 1 Mbit/s, queue of 15 KB, delay of 10 ms" in done.stderr
    assert (
        "down (to the command): 2 Mbit/s, queue of 15 KB, random loss of 1 %, delay of 10 ms" in done.stderr
    )
    # The outcome of both directions, first of the inner shell.
    assert len(re.findall(r"\): (?:no|\d+) packets?", done.stderr)) == 4


@pytest.mark.usefixtures("kernel_world")
@pytest.mark.parametrize("code", [0, 3])
def test_early_server_exit_prevents_command(code: int) -> None:
    server = shlex.join([sys.executable, "-c", f"raise SystemExit({code})"])
    done = command("shell", *PATH, "--server", server, "--", "echo", "it ran")
    assert done.returncode == 2
    assert f"exited with code {code} before it opened a port" in done.stderr
    assert "it ran" not in done.stdout
    assert "Traceback" not in done.stderr


def test_interrupt_before_shell_start_ends_it() -> None:
    """It comes while one process replaces itself by another, and waits until that one can handle it."""
    program = (
        "import os, signal, sys\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})\n"
        "os.kill(os.getpid(), signal.SIGINT)\n"
        "os.execv(sys.executable, [sys.executable, '-m', 'fullpipe.runs.worlds._shell_child', '{}'])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "fullpipe: interrupted\n")
