"""The lines that apply an answer: each is tried by the program that it is for, where that is installed."""

import base64
import json
import re
import shlex
import shutil
import socket
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import command
from fullpipe.advisor import Question, advise, candidates, crossings, recipes
from fullpipe.advisor.advice import Advice, hosts_of
from fullpipe.advisor.question import parsed
from fullpipe.advisor.recipes import STACKS, Hosts, Line
from fullpipe.advisor.trials import Bench

LINUX = "reno"  # Every kernel has it, and every user may set it.
PACED = Hosts(pacing=True)


def line(where: str, controller: str = LINUX, part: str = "") -> Line:
    """The line for a place; `part` is in it, if there are several."""
    return next(one for one in recipes.of(controller, PACED) if one.where == where and part in one.text)


def needs(program: str) -> str:
    """A program's path; skips the test where it is not installed."""
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"{program} is not installed")
    return path


def in_a_namespace(script: str) -> subprocess.CompletedProcess[str]:
    """Runs a script as root of a network of its own, which ends with it."""
    inside = [needs("unshare"), "--user", "--map-root-user", "--net", "sh", "-c"]
    if subprocess.run([*inside, "true"], capture_output=True, check=False).returncode:
        pytest.skip("users may not make network namespaces here")
    return subprocess.run([*inside, script], capture_output=True, text=True, check=False, timeout=600)


def test_python_recipe_sets_inherited_controller() -> None:
    with socket.socket() as sock:
        exec(line("one program, Python").text, {"sock": sock, "socket": socket})
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0") == b"reno"
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        with socket.create_connection(sock.getsockname()), sock.accept()[0] as accepted:
            found = accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
            assert found.rstrip(b"\0") == b"reno"


def test_c_recipe_compiles_and_applies(tmp_path: Path) -> None:
    compiler = needs("gcc")
    program = """
        #include <netinet/in.h>
        #include <netinet/tcp.h>
        #include <stdio.h>
        #include <sys/socket.h>
        int main(void) {
            char name[16] = "";
            socklen_t size = sizeof name;
            int fd = socket(AF_INET, SOCK_STREAM, 0);
            if (LINE)
                return 1;
            getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &size);
            puts(name);
        }
    """
    (tmp_path / "a.c").write_text(program.replace("LINE", line("one program").text))
    subprocess.run([compiler, "-Wall", "-Werror", "-o", tmp_path / "a", tmp_path / "a.c"], check=True)
    done = subprocess.run([tmp_path / "a"], capture_output=True, text=True, check=True)
    assert done.stdout == "reno\n"


def test_go_recipe_compiles_and_applies(tmp_path: Path) -> None:
    go = needs("go")
    program = """
        package main

        import "syscall"

        func main() {
            fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
            if err != nil {
                panic(err)
            }
            if err := LINE; err != nil {
                panic(err)
            }
            println("taken")
        }
    """
    (tmp_path / "a.go").write_text(textwrap.dedent(program).replace("LINE", line("one program, Go").text))
    done = subprocess.run(
        [go, "run", "a.go"],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    # Go's cache is read-only.
    subprocess.run(["chmod", "-R", "u+w", tmp_path], check=True)
    assert (done.returncode, done.stderr) == (0, "taken\n")


def test_sysctl_recipes_set_default() -> None:
    needs("sysctl")
    now = line("now", part="sysctl").text
    file, _, setting = line("after every boot", part="congestion_control").text.partition(": ")
    assert re.fullmatch(r"/etc/sysctl\.d/[\w.-]+\.conf", file)
    read = "cat /proc/sys/net/ipv4/tcp_congestion_control"
    done = in_a_namespace(f"{now} && {read} && echo '{setting}' | sysctl -p - && {read}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1::2] == ["reno", "reno"]


def test_unprivileged_recipe_extends_allowed_list() -> None:
    text = line("programs without CAP_NET_ADMIN", "bbr1").text
    # Only the machine's own network has the setting for writing.
    shown = text.replace("sysctl -w", "echo")
    done = subprocess.run(["sh", "-c", shown], capture_output=True, text=True, check=True)
    allowed = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read_text().strip()
    assert done.stdout.strip() == f"net.ipv4.tcp_allowed_congestion_control={allowed} bbr"


def test_route_recipe_is_accepted_and_shown() -> None:
    needs("ip")
    text = line("one route").text.replace("ROUTE", "192.0.2.0/24 dev lo")
    done = in_a_namespace(
        f"ip link set lo up; ip route add 192.0.2.0/24 dev lo; {text} && ip route show 192.0.2.0/24"
    )
    assert done.returncode == 0, done.stderr
    assert "congctl reno" in done.stdout


def test_device_recipe_sets_qdisc() -> None:
    needs("tc")
    text = line("pacing, one device").text.replace("DEV", "lo")
    done = in_a_namespace(f"{text} && tc qdisc show dev lo")
    if "qdisc kind is unknown" in done.stderr:
        pytest.skip(f"this kernel does not have {text.split()[-1]}")
    assert done.returncode == 0, done.stderr
    assert f"qdisc {text.split()[-1]} " in done.stdout


def test_systemd_recipe_is_recognized(tmp_path: Path) -> None:
    verify = needs("systemd-analyze")
    (tmp_path / "a@.service").write_text("[Service]\nExecStart=/bin/true\n")
    unit = tmp_path / "a.socket"
    heard = {}
    for text in (line("systemd").text, "TCPCongestionControl=reno"):
        unit.write_text(f"[Socket]\nListenStream=127.0.0.1:8443\nAccept=yes\n{text}\n")
        done = subprocess.run([verify, "verify", unit], capture_output=True, text=True, check=False)
        heard[text] = "Unknown key" in done.stderr
    if not heard["TCPCongestionControl=reno"]:
        pytest.skip("systemd-analyze does not read units here")
    assert not heard[line("systemd").text]


def haproxy(tmp_path: Path, text: str) -> subprocess.CompletedProcess[str]:
    """HAProxy's own check of a configuration."""
    (tmp_path / "a.cfg").write_text(text)
    check = [needs("haproxy"), "-c", "-f", str(tmp_path / "a.cfg")]
    return subprocess.run(check, capture_output=True, text=True, check=False, timeout=600)


FRAME = "defaults\n mode http\n timeout connect 5s\n timeout client 5s\n timeout server 5s\n"


def since(stated: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", stated)))


def version() -> tuple[int, ...]:
    message = recipes._installed("HAProxy")
    return tuple(map(int, re.findall(r"\d+", message)))[:2]


def test_haproxy_recipes_match_minimum_version(tmp_path: Path) -> None:
    needs("haproxy")
    one = line("HAProxy")
    bind, _, server = one.text.partition("; ")
    bind = bind.replace(":443", "127.0.0.1:8443")
    done = haproxy(tmp_path, f"{FRAME}frontend a\n {bind}\n default_backend b\nbackend b\n {server}\n")
    message = done.stdout + done.stderr
    if version() >= since(one.needs):
        assert done.returncode == 0, message
    else:
        assert done.returncode != 0 and "'cc'" in message, message


@pytest.mark.parametrize("controller", ["cubic", "reno", "bbr3"])
def test_haproxy_quic_recipes_are_accepted(tmp_path: Path, controller: str) -> None:
    needs("haproxy")
    one = line("HAProxy (QUIC)", controller)
    built = subprocess.run([needs("haproxy"), "-vv"], capture_output=True, text=True, check=False).stdout
    if version() < since(one.needs) or "+QUIC" not in built:
        pytest.skip(f"this HAProxy has no QUIC, or is older than {one.needs}")
    key = [needs("openssl"), "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=a", "-days", "1"]
    subprocess.run(
        [*key, "-keyout", tmp_path / "key", "-out", tmp_path / "crt"], check=True, capture_output=True
    )
    (tmp_path / "site.pem").write_text((tmp_path / "crt").read_text() + (tmp_path / "key").read_text())
    text = one.text.replace("site.pem", str(tmp_path / "site.pem")).replace(":443", "127.0.0.1:8443")
    done = haproxy(
        tmp_path, f"global\n limited-quic\n{FRAME}frontend a\n {text}\n http-request return status 200\n"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    refused = haproxy(tmp_path, f"global\n limited-quic\n{FRAME}frontend a\n {text}x\n")
    assert refused.returncode != 0, "a name that it does not know is refused"


def test_envoy_recipe_uses_linux_constants() -> None:
    found = re.fullmatch(
        r"socket_options: \[\{level: (\d+), name: (\d+), buf_value: (\S+), state: STATE_PREBIND\}\]",
        line("Envoy", "bbr1").text,
    )
    assert found is not None
    assert (int(found[1]), int(found[2])) == (socket.IPPROTO_TCP, socket.TCP_CONGESTION)
    assert base64.b64decode(found[3], validate=True) == b"bbr"


@pytest.mark.parametrize(
    "controller", ["reno", "cubic", "bbr1", "bbr3", "newreno", "cubic9438", "vegas", "dctcp"]
)
def test_every_stack_has_recipe_or_none(controller: str) -> None:
    lines = recipes.of(controller, PACED)
    last = lines[-1]
    assert last.where == "without a setting for it"
    of_tcp = {stack.name for stack in STACKS if "any" in stack.lines}
    for stack in STACKS:
        there = any(one.where == stack.name for one in lines)
        if controller in ("bbr3", "newreno", "cubic9438") and stack.name in of_tcp:
            assert not there, "Linux does not have it"
        else:
            assert there != (f"{stack.name} {stack.version}: " in last.text), stack.name
    assert all(one.text and "LINUX" not in one.text + one.needs and "BASE64" not in one.text for one in lines)


def test_parameterized_controller_uses_name_recipes() -> None:
    assert recipes.of("bbr1:probe_gain=1.5", PACED) == recipes.of("bbr1", PACED)
    assert recipes.of("copa", PACED) == recipes.of("fixed", PACED) == [], "nothing that people run has it"


def test_bbr3_is_distinct_from_linux_bbr() -> None:
    lines = recipes.of("bbr3", PACED)
    assert lines[0].text == "no setting: its bbr is BBRv1"
    assert not any("sysctl" in one.text or "setsockopt" in one.text for one in lines)
    quiche = {one.where for one in lines}
    assert "quiche" not in quiche, "its BBR is BBRv2"


def test_hanging_program_version_is_not_awaited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "haproxy").write_text("#!/bin/sh\nexec sleep 1000\n")
    (tmp_path / "haproxy").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(recipes, "_PATIENCE_S", 0.1)
    assert recipes._installed("HAProxy") == ""
    (tmp_path / "haproxy").write_text("#!/bin/sh\necho HAProxy version 3.4.0-abc 2026/05/28\n")
    assert recipes._installed("HAProxy (QUIC)") == "3.4.0 here"
    (tmp_path / "haproxy").write_text("not a program")
    assert recipes._installed("HAProxy") == ""


def test_recipe_sources_are_documented() -> None:
    page = (Path(__file__).parents[1] / "docs" / "how-to" / "advisor.md").read_text(encoding="utf-8")
    for stack in STACKS:
        row = next((row for row in page.splitlines() if row.startswith(f"| {stack.name} |")), "")
        assert f"| {stack.version} |" in row and stack.source in row.replace("`", ""), stack.name


# What was simulated is what the lines set, and nothing else.


def judged(**given: Any) -> tuple[dict[str, Any], set[str]]:
    """The simulated hosts of a question, and where the lines of its winner belong."""
    question = Question(**{"rate": "50mbit", "rtt": "80ms", "candidates": ("cubic", "reno"), **given})
    hosts = question.alone().alternatives[0].spec["hosts"]
    return hosts, {one.where for one in recipes.of("cubic", hosts_of(question))}


@pytest.mark.parametrize(
    ("given", "key", "value", "where"),
    [
        ({}, "pacing", True, "pacing"),
        ({"pacing": False}, "pacing", False, "pacing"),
        ({"ecn": True}, "ecn", True, "ECN, at both ends"),
        ({}, "ecn", False, "ECN, at both ends"),
    ],
)
def test_recipe_appears_if_hosts_simulate_it(
    given: dict[str, Any], key: str, value: bool, where: str
) -> None:
    hosts, lines = judged(**given)
    assert hosts.get(key, False) is value
    assert (where in lines) is value


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, False),
        ({"buffer": "8 bdp"}, True),
        ({"rate": "1gbit"}, True),
        ({"rate": parsed("rate", "10..1000 mbit")}, True),
        ({"rate": "1gbit", "tcp_memory": "linux"}, False),
    ],
)
def test_buffers_are_raised_where_defaults_limit(given: dict[str, Any], wanted: bool) -> None:
    question = Question(**{"rate": "50mbit", "rtt": "80ms", "candidates": ("cubic", "reno"), **given})
    lines = {one.where: one.text for one in recipes.of("cubic", hosts_of(question))}
    assert ("receiver" in lines, "sender" in lines) == (wanted, wanted)
    if wanted:
        hosts = question.at([1.0] * len(question.ranges)).alone().alternatives[0].spec["hosts"]
        for where, name in (("receiver", "tcp_rmem"), ("sender", "tcp_wmem")):
            values = " ".join(map(str, hosts[f"{name}_bytes"]))
            assert lines[where] == f'sysctl -w net.ipv4.{name}="{values}"'


def test_unraised_default_buffers_do_not_limit() -> None:
    """Just below the limit, and with a deep queue, which takes the largest windows."""
    question = Question(
        rate="50mbit", rtt="40ms", buffer="780 KB", candidates=("cubic", "bbr1"), duration="20 s"
    )
    assert not hosts_of(question).large_buffers
    own = replace(question, tcp_memory="linux")
    unlimited, limited = Bench.of("sim").run([question, own], [1], frozenset())
    assert unlimited == limited


def test_candidates_use_recipe_pacing() -> None:
    """A path on which iperf3 over fq has 42.4 Mbit/s, and a host without fq 10 Mbit/s less."""
    question = Question(rate="50mbit", rtt="80ms", buffer="50 KB", candidates=("cubic", "reno"))
    bare = replace(question, pacing=False)
    paced, bursts = Bench.of("sim").run([question, bare], [1], frozenset())
    assert 41.5e6 < paced["cubic"][0].goodput_bps < 43e6
    assert bursts["cubic"][0].goodput_bps < 34e6


def test_recipes_set_only_simulated_settings() -> None:
    for controller in ("reno", "cubic", "bbr1", "vegas"):
        texts = " ".join(one.text for one in recipes.of(controller, Hosts()))
        assert not re.search("fq|codel|tcp_ecn|mem|initcwnd", texts), controller
    lines = recipes.of("cubic", PACED)
    own_controllers = {one.where for one in lines if not one.simulated}
    assert own_controllers >= {"quinn", "quiche", "s2n-quic", "HAProxy (QUIC)"}
    assert not own_controllers & {"pacing", "now", "one program", "one route", "HAProxy", "Envoy"}


JUDGED = "Judged with pacing by fq, as the lines below set it"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, f"{JUDGED}."),
        ({"competitors": (("cubic", 1),)}, f"{JUDGED}, of competitors too."),
        ({"ecn": True, "tcp_memory": "linux"}, f"{JUDGED}, and with ECN and Linux's default socket buffers."),
    ],
)
def test_answer_reports_hosts_in_one_line(given: dict[str, Any], message: str) -> None:
    question = Question(rate="2mbit", rtt="10ms", buffer="8 bdp", candidates=("reno", "bbr1"))
    found = advise(question, goal="delay", seeds=2)
    assert found.winner == "bbr1"
    of_others = replace(found, question=replace(question, **given))
    assert of_others.to_dict()["hosts"] == message
    assert message in str(of_others).splitlines()


def test_without_pacing_no_line_sets_it() -> None:
    question = Question(rate="2mbit", rtt="10ms", buffer="8 bdp", candidates=("reno", "bbr1"), pacing=False)
    found = advise(question, goal="delay", seeds=2)
    assert found.hosts == "Judged without pacing, except for controllers that pace themselves."
    assert found.lines and not any("fq" in one.text for one in found.lines)


# This machine, before the lines are applied.


def as_it_is(monkeypatch: pytest.MonkeyPatch, qdisc: str | None, **given: Any) -> Advice:
    """The answer on a machine with this queue discipline; nothing is looked for around it."""
    monkeypatch.setattr(candidates, "qdisc", lambda: qdisc)
    monkeypatch.setattr(crossings, "nearest", lambda *_, **__: ([], []))
    fields = {"rate": "50mbit", "rtt": "80ms", "candidates": ("cubic", "bbr1"), **given}
    return advise(Question(**fields), goal="throughput", seeds=4)


def test_answer_has_hosts_with_and_without_pacing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Real iperf3 over fq has 42.4 Mbit/s on this path, and 10 Mbit/s less without fq."""
    found = as_it_is(monkeypatch, "pfifo_fast", buffer="50 KB")
    assert found.winner == "bbr1"
    assert found.as_now in str(found).splitlines()
    assert re.search(
        r"\(pfifo_fast, which does not pace\), the answer is the same, but scores differ: "
        r"cubic 0\.6\d+ instead of 0\.8\d+ \(3[23]\.\d instead of 42\.\d Mbit/s\)\.",
        found.as_now,
    )
    assert found.to_dict()["as_it_is"]["winner"] == "bbr1"


def test_other_winner_without_pacing_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    found = as_it_is(monkeypatch, "fq_codel", buffer="100 KB")
    assert found.winner == "cubic"
    assert found.as_now.startswith(
        "On this machine as it is (fq_codel, which does not pace): Run bbr1 (Linux's bbr)"
    )
    reported = found.to_dict()["as_it_is"]
    assert (reported["winner"], reported["pacing"], reported["differs"]) == ("bbr1", False, found.as_now)


@pytest.mark.parametrize(("qdisc", "pacing"), [("fq", True), (None, True), ("fq_codel", False)])
def test_equal_or_unknown_hosts_run_once(
    monkeypatch: pytest.MonkeyPatch, qdisc: str | None, pacing: bool
) -> None:
    found = as_it_is(monkeypatch, qdisc, rate="2mbit", rtt="10ms", buffer="30 KB", pacing=pacing)
    assert (found.now, found.as_now, found.to_dict()["as_it_is"]) == (None, "", None)


def test_unpaced_hosts_on_machine_with_fq(monkeypatch: pytest.MonkeyPatch) -> None:
    found = as_it_is(monkeypatch, "fq", buffer="100 KB", pacing=False)
    assert found.winner == "bbr1"
    assert found.as_now.startswith("On this machine as it is (fq, which paces): Run cubic")


def test_range_has_hosts_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    small = {"rate": "5mbit", "rtt": parsed("rtt", "75..85 ms"), "buffer": "15 KB"}
    found = as_it_is(monkeypatch, "pfifo_fast", **small)
    assert found.now is not None and len(found.paths) == 48
    assert found.now.paths == found.paths[:16] and len(found.now.rankings) == 16
    assert found.to_dict()["as_it_is"]["winner"] == found.now.winner


def test_recipe_names_trap_of_connected_sockets() -> None:
    for where in ("one program", "one program, Python"):
        assert "before connect(): a socket that connected with bbr stays paced" in line(where).needs
        assert "stays paced" not in line(where, "bbr1").needs


# Where bbr is the default: how long a sender of CUBIC takes for the packets of its second round trip.
SPREAD = """
import json, os, select, socket, struct, threading, time
RTT_S = 0.1
# That of this network namespace alone.
open("/proc/sys/net/ipv4/tcp_congestion_control", "w").write("bbr")

def set_cubic(sock):
    LINE

def spread(peer):
    port = peer.getsockname()[1]
    seen = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
    seen.setsockopt(socket.SOL_SOCKET, 35, 1)  # SO_TIMESTAMPNS: a reader that stalls reads late
    seen.setblocking(False)
    peer.setblocking(False)
    began, times = time.monotonic(), []
    while time.monotonic() < began + 2 * RTT_S:
        try:
            peer.send(bytes(65536))
        except BlockingIOError:
            pass
        try:
            packet, [(_, _, stamp)], _, about = seen.recvmsg(65536, 64)
        except BlockingIOError:
            select.select([seen], [], [], 0.001)
            continue
        header = 4 * (packet[0] & 15)
        data = about[2] == socket.PACKET_OUTGOING and packet[9] == 6 and len(packet) > header + 60
        if data and struct.unpack("!H", packet[header : header + 2])[0] == port:
            seconds, nanoseconds = struct.unpack("@ll", stamp[:16])
            times.append(seconds + nanoseconds / 1e9)
    second = [one for one in times if 0.5 * RTT_S < one - times[0] < 1.8 * RTT_S]
    return second[-1] - second[0] if len(second) > 4 else None
"""
SINK = """
def take(peer):
    while peer.recv(65536):
        pass

def sink(listening):
    while True:
        threading.Thread(target=take, args=listening.accept()[:1], daemon=True).start()

threading.Thread(target=sink, args=[socket.create_server(("", 9010))], daemon=True).start()
with socket.create_server(("", 9011)) as listening:
    set_cubic(listening)
    while True:
        with listening.accept()[0] as peer:
            print(json.dumps(spread(peer)), file=open(RESULTS, "a"), flush=True)
"""
CONNECT = """
found = {"before connect": [], "after connect": [], "accepted": []}
for how, own in found.items():
    for _ in range(6):
        with socket.socket() as peer:
            if how == "before connect":
                set_cubic(peer)
            peer.connect((os.environ["FULLPIPE_SERVER"], 9011 if how == "accepted" else 9010))
            if how == "after connect":
                set_cubic(peer)
            if how == "accepted":
                while peer.recv(65536):
                    pass
            else:
                own.append(spread(peer))
found["accepted"] = [json.loads(line) for line in open(RESULTS)]
print(json.dumps(found))
"""


@pytest.mark.usefixtures("kernel_world")
def test_live_socket_of_bbr_stays_paced(tmp_path: Path) -> None:
    """The printed line has to come before connect(): CUBIC paces over half a round trip, or not at all."""
    if "bbr" not in [one.linux for one in candidates.here() if one.loaded]:
        pytest.skip("this kernel has no bbr")
    set_cubic = line("one program, Python", "cubic")
    results = f"RESULTS = {str(tmp_path / 'accepted')!r}"
    both = f"{results}\n{SPREAD.replace('LINE', set_cubic.text)}"
    server = shlex.join([sys.executable, "-c", both + SINK])
    path = ("--rate", "100 Mbit/s", "--rtt", "100 ms")
    done = command("shell", *path, "--server", server, "--", sys.executable, "-c", both + CONNECT)
    assert done.returncode == 0, done.stderr
    spread_s = {how: [one for one in own if one is not None] for how, own in json.loads(done.stdout).items()}
    if any(len(own) < 2 for own in spread_s.values()):
        pytest.skip(f"the machine stalled: {spread_s}")
    # A stall keeps packets apart, but does not bring those together that are paced.
    assert min(spread_s["after connect"]) > 0.02
    assert min(spread_s["before connect"]) < 0.015
    assert min(spread_s["accepted"]) < 0.015
    assert "before connect()" in set_cubic.needs
    assert "stays paced" in set_cubic.needs
