"""The lines that apply an answer: each is tried by the program that it is for, where that is installed."""

import base64
import re
import shutil
import socket
import subprocess
import textwrap
from pathlib import Path

import pytest

from fullpipe.advisor import recipes
from fullpipe.advisor.recipes import STACKS, Line

LINUX = "reno"  # Every kernel has it, and every user may set it.


def line(where: str, controller: str = LINUX, part: str = "") -> Line:
    """The line for a place; `part` is in it, if there are several."""
    return next(one for one in recipes.of(controller) if one.where == where and part in one.text)


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


def test_the_line_for_python_sets_it_and_what_a_listener_accepts_inherits_it() -> None:
    with socket.socket() as sock:
        exec(line("one program, Python").text, {"sock": sock, "socket": socket})
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\0") == b"reno"
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        with socket.create_connection(sock.getsockname()), sock.accept()[0] as accepted:
            found = accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
            assert found.rstrip(b"\0") == b"reno"


def test_the_line_for_c_compiles_and_sets_it(tmp_path: Path) -> None:
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


def test_the_line_for_go_compiles_and_sets_it(tmp_path: Path) -> None:
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


def test_the_lines_for_sysctl_set_the_default() -> None:
    needs("sysctl")
    now = line("now", part="sysctl").text
    file, _, setting = line("after every boot", part="sysctl.d").text.partition(": ")
    assert re.fullmatch(r"/etc/sysctl\.d/[\w.-]+\.conf", file)
    read = "cat /proc/sys/net/ipv4/tcp_congestion_control"
    done = in_a_namespace(f"{now} && {read} && echo '{setting}' | sysctl -p - && {read}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1::2] == ["reno", "reno"]


def test_the_line_for_programs_without_rights_adds_to_what_is_allowed() -> None:
    text = line("programs without CAP_NET_ADMIN", "bbr1").text
    # Only the machine's own network has the setting for writing.
    shown = text.replace("sysctl -w", "echo")
    done = subprocess.run(["sh", "-c", shown], capture_output=True, text=True, check=True)
    allowed = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read_text().strip()
    assert done.stdout.strip() == f"net.ipv4.tcp_allowed_congestion_control={allowed} bbr"


def test_the_line_for_a_route_is_taken_and_shown() -> None:
    needs("ip")
    text = line("one route").text.replace("ROUTE", "192.0.2.0/24 dev lo")
    done = in_a_namespace(
        f"ip link set lo up; ip route add 192.0.2.0/24 dev lo; {text} && ip route show 192.0.2.0/24"
    )
    assert done.returncode == 0, done.stderr
    assert "congctl reno" in done.stdout


@pytest.mark.parametrize("where", ["pacing, one device", "queue of a bottleneck of your own"])
def test_the_lines_for_queues_are_taken(where: str) -> None:
    needs("tc")
    text = line(where, "bbr1").text.replace("DEV", "lo")
    done = in_a_namespace(f"{text} && tc qdisc show dev lo")
    if "qdisc kind is unknown" in done.stderr:
        pytest.skip(f"this kernel does not have {text.split()[-1]}")
    assert done.returncode == 0, done.stderr
    assert f"qdisc {text.split()[-1]} " in done.stdout


def test_the_line_for_systemd_is_known_to_it(tmp_path: Path) -> None:
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
    said = recipes._installed("HAProxy")
    return tuple(map(int, re.findall(r"\d+", said)))[:2]


def test_the_lines_for_haproxy_are_taken_from_the_version_on_that_they_say(tmp_path: Path) -> None:
    needs("haproxy")
    one = line("HAProxy")
    bind, _, server = one.text.partition("; ")
    bind = bind.replace(":443", "127.0.0.1:8443")
    done = haproxy(tmp_path, f"{FRAME}frontend a\n {bind}\n default_backend b\nbackend b\n {server}\n")
    said = done.stdout + done.stderr
    if version() >= since(one.needs):
        assert done.returncode == 0, said
    else:
        assert done.returncode != 0 and "'cc'" in said, said


@pytest.mark.parametrize("controller", ["cubic", "reno", "bbr3"])
def test_the_lines_for_haproxys_quic_are_taken(tmp_path: Path, controller: str) -> None:
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


def test_the_line_for_envoy_has_the_name_and_the_numbers_of_linux() -> None:
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
def test_every_stack_has_a_line_or_is_said_to_have_none(controller: str) -> None:
    lines = recipes.of(controller)
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


def test_a_controller_with_parameters_has_the_lines_of_its_name() -> None:
    assert recipes.of("bbr1:probe_gain=1.5") == recipes.of("bbr1")
    assert recipes.of("copa") == recipes.of("fixed") == [], "nothing that people run has it"


def test_bbr3_is_not_advised_as_the_bbr_of_linux() -> None:
    lines = recipes.of("bbr3")
    assert lines[0].text == "no setting: its bbr is BBRv1"
    assert not any("sysctl" in one.text or "setsockopt" in one.text for one in lines)
    quiche = {one.where for one in lines}
    assert "quiche" not in quiche, "its BBR is BBRv2"


def test_what_a_program_that_hangs_would_say_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "haproxy").write_text("#!/bin/sh\nexec sleep 1000\n")
    (tmp_path / "haproxy").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(recipes, "_PATIENCE_S", 0.1)
    assert recipes._installed("HAProxy") == ""
    (tmp_path / "haproxy").write_text("#!/bin/sh\necho HAProxy version 3.4.0-abc 2026/05/28\n")
    assert recipes._installed("HAProxy (QUIC)") == "3.4.0 here"
    (tmp_path / "haproxy").write_text("not a program")
    assert recipes._installed("HAProxy") == ""


def test_where_each_line_comes_from_is_documented() -> None:
    page = (Path(__file__).parents[1] / "docs" / "advisor.md").read_text(encoding="utf-8")
    for stack in STACKS:
        row = next((row for row in page.splitlines() if row.startswith(f"| {stack.name} |")), "")
        assert f"| {stack.version} |" in row and stack.source in row.replace("`", ""), stack.name
