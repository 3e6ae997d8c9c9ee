"""Our controllers as congestion controls of this kernel: loaded, used and removed; objects built again."""

import hashlib
import importlib.util
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.testing import CliRunner

import fullpipe._native as _native
from conftest import command
from fullpipe.cli import app as cli
from fullpipe.cli.commands import kernel_load
from fullpipe.runs.worlds import kernel

REPOSITORY = Path(__file__).resolve().parents[1]
BUILD = REPOSITORY / "crates" / "bpf" / "build.py"
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
NAME = f"fpt{os.getpid()}"
# What the verifier may look at in a program.
MOST_VERIFIED = 200_000


def builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bpf_build", BUILD)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def available() -> list[str]:
    return AVAILABLE.read_text(encoding="ascii").split()


@pytest.fixture(scope="module")
def loadable(kernel_world: None) -> None:
    """Skips, with the reason, where no controller of ours can be loaded."""
    (found,) = (one for one in kernel.doctor() if one["name"].startswith("our controllers"))
    if not found["ok"]:
        pytest.skip(f"{found['found']}; {found['fix']}")


@pytest.fixture
def name(loadable: None) -> Generator[str]:
    """A name of this test's own, which is free afterwards."""
    yield NAME
    command("kernel", "unload", NAME)
    assert NAME not in available()


@pytest.fixture
def loaded(name: str) -> str:
    """bbr3, as the draft has it."""
    done = command("kernel", "load", "bbr3", "--profile", "draft", "--as", NAME, "--json")
    assert done.returncode == 0, done.stderr
    return name


def connected(name: str, family: socket.AddressFamily) -> tuple[socket.socket, threading.Thread]:
    """A connection over the loopback device with this congestion control, and who reads its other end."""
    address = {socket.AF_INET: "127.0.0.1", socket.AF_INET6: "::1"}[family]
    with socket.socket(family) as listening:
        listening.bind((address, 0))
        listening.listen()
        ours = socket.socket(family)
        ours.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
        ours.connect(listening.getsockname())
        other, _ = listening.accept()

    def read() -> None:
        with other:
            while other.recv(1 << 16):
                pass

    reading = threading.Thread(target=read)
    reading.start()
    return ours, reading


def status(name: str) -> dict[str, Any]:
    done = command("kernel", "status", name, "--json")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_loaded_controller_carries_a_connection_and_shows_its_model(
    loaded: str, family: socket.AddressFamily
) -> None:
    assert loaded in available()
    ours, reading = connected(loaded, family)
    with ours:
        ours.sendall(bytes(1 << 24))
        found = status(loaded)
        (flow,) = found["connections"]
        assert flow["port"] == ours.getsockname()[1] and flow["trusted"]
        assert flow["bandwidth_bps"] > 0 and flow["min_rtt_us"] > 0 and flow["cwnd"] > 0
        assert flow["phase"] in {"startup", "drain", "probe_rtt"} or flow["phase"].startswith("probe_bw_")
    reading.join()
    assert found["controller"] == "bbr3:profile=draft"
    assert not any(count for cause, count in found["counters"].items() if cause.startswith("fallen_"))


def test_a_connection_keeps_what_was_unloaded_until_it_ends(loaded: str) -> None:
    ours, reading = connected(loaded, socket.AF_INET)
    with ours:
        ours.sendall(bytes(1 << 20))
        done = command("kernel", "unload", loaded, "--json")
        assert json.loads(done.stdout)["connections"] == 1
        assert loaded not in available()
        with socket.socket() as late, pytest.raises(FileNotFoundError):
            late.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, loaded.encode())
        ours.sendall(bytes(1 << 22))
        name = ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
        assert name.rstrip(b"\0").decode() == loaded
    reading.join()
    done = command("kernel", "status", loaded)
    assert done.returncode != 0 and "no congestion control" in done.stderr
    # For the fixture.
    command("kernel", "load", "bbr1", "--as", loaded)


def test_a_name_that_is_taken_is_refused(loaded: str) -> None:
    again = command("kernel", "load", "bbr3:profile=linux", "--as", loaded)
    assert again.returncode != 0
    assert f"this kernel has a congestion control {loaded} already" in again.stderr


def test_a_parameter_reaches_the_kernel(loadable: None) -> None:
    name = f"{NAME}p"
    done = command("kernel", "load", "bbr1:probe_gain=1.5", "--as", name, "--json")
    assert done.returncode == 0, done.stderr
    try:
        assert status(name)["controller"] == "bbr1:probe_gain=1.5"
    finally:
        command("kernel", "unload", name)


def test_the_default_is_set_and_put_back(name: str) -> None:
    """In a network namespace of its own, because each has a default of its own."""
    ours = f"{sys.executable} -m fullpipe kernel"
    default = "cat /proc/sys/net/ipv4/tcp_congestion_control"
    steps = f"{default} && {ours} load bbr3 --as {name} --default && {default}"
    steps += f" && {ours} unload {name} && {default}"
    done = subprocess.run(["unshare", "--net", "sh", "-c", steps], capture_output=True, text=True, check=True)
    before, loaded, tells, between, removed, again, after = done.stdout.splitlines()
    assert loaded.startswith(f"bbr3:profile=repaired is loaded as {name} (object ")
    assert tells == f"New connections use it. `fullpipe kernel unload {name}` restores {before}."
    assert (between, after) == (name, before) and before != name
    assert removed == f"{name} is removed." and again == f"The default is {before} again."


def test_the_unit_loads_it_again(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kernel_load, "UNITS", tmp_path)
    words = ["kernel", "load", "bbr1:probe_gain=1.25", "--as", name, "--persist"]
    done = CliRunner().invoke(cli.app, words)
    assert done.exit_code == 0, done.output
    assert f"At boot: systemctl enable fullpipe-{name}" in done.output
    (unit,) = tmp_path.iterdir()
    started, stopped = re.findall(r"^ExecSt(?:art|op)=(.+)$", unit.read_text(encoding="utf-8"), re.MULTILINE)
    # What systemd runs when it stops, and at the next boot.
    subprocess.run(shlex.split(stopped), check=True)
    assert name not in available()
    subprocess.run(shlex.split(started), check=True)
    assert status(name)["controller"] == "bbr1:probe_gain=1.25"
    left = CliRunner().invoke(cli.app, ["kernel", "unload", name])
    assert f"systemctl disable fullpipe-{name}, and remove {unit}" in " ".join(left.output.split())


@pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed")
def test_iperf3_behind_a_shell_uses_it(loaded: str) -> None:
    path = ("--rate", "20 Mbit/s", "--rtt", "20 ms", "--buffer", "1 bdp")
    inside = f"iperf3 -c $FULLPIPE_SERVER -C {loaded} -t 3 -J"
    done = command("shell", *path, "--server", "iperf3 -s", "--", "sh", "-c", inside)
    assert done.returncode == 0, done.stderr
    # The server's lines come before it, and some behind it if the server ends late.
    found, _ = json.JSONDecoder().raw_decode(done.stdout, done.stdout.index("{"))
    assert found["end"]["sender_tcp_congestion"] == loaded
    assert found["end"]["sum_received"]["bits_per_second"] > 15e6
    assert status(loaded)["counters"]["connections_begun"] >= 1


CONTROLLERS = _native.kernel_loadable()


@pytest.mark.parametrize("controller", [*CONTROLLERS, "bbr1:probe_gain=1.5"])
def test_the_program_in_the_kernel_decides_as_the_controller_does(loadable: None, controller: str) -> None:
    if controller == "bbr1":
        pytest.skip("runs with the kernel's own")
    path = ("--rate", "20 Mbit/s", "--rtt", "20 ms", "--buffer", "0.5 bdp", "--loss", "0.5 %")
    done = command("kernel", "prove", controller, *path, "--duration", "3 s", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 0 and found["different"] == found["lost"] == found["orphans"] == 0, found[
        "first"
    ]
    assert found["calls"] > 1000 and found["kinds"]["lost"] > 0 and found["kinds"]["state"] > 0
    assert 0 < max(found["verified"].values()) <= MOST_VERIFIED


def test_nothing_is_loaded_after_a_run_however_it_ends(loadable: None) -> None:
    before = available()
    path = ("--rate", "10 Mbit/s", "--rtt", "20 ms", "--world", "kernel", "--repetitions", "1")
    words = ("compare", "bbr3", "bbr3:profile=linux", *path)
    done = command(*words, "--duration", "1 s", "--json")
    assert done.returncode == 0, done.stderr
    assert available() == before
    killed = subprocess.Popen(
        [sys.executable, "-m", "fullpipe", *words, "--duration", "60 s"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )
    while available() == before:
        assert killed.poll() is None
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    # The child of that process ends when it notices, and the kernel then removes what the child had.
    until = time.monotonic() + 60
    while available() != before:
        assert time.monotonic() < until, available()


def test_without_rights_what_is_missing_is_said() -> None:
    # Root keeps its files, so that the interpreter can be read wherever it is, and has no capability.
    without = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    if without and shutil.which(without[0]) is None:
        pytest.skip("no setpriv (apt install util-linux)")
    load = [sys.executable, "-m", "fullpipe", "kernel", "load", "bbr3", "--as", f"{NAME}u"]
    done = subprocess.run([*without, *load], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "loading BPF programs is not permitted" in done.stderr and "run as root" in done.stderr


@pytest.fixture(scope="module")
def own_object(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The controller of examples/kernel-controller, compiled."""
    if message := builder().missing():
        pytest.skip(message)
    into = tmp_path_factory.mktemp("own")
    crate = REPOSITORY / "examples" / "kernel-controller"
    subprocess.run([sys.executable, BUILD, "--crate", crate, "--into", into], check=True)
    return into / "kernel-controller.o"


@pytest.mark.long
def test_a_controller_of_ones_own_crate_carries_a_connection(name: str, own_object: Path) -> None:
    done = command("kernel", "load", str(own_object), "--as", name)
    assert done.returncode == 0, done.stderr
    digest = hashlib.sha256(own_object.read_bytes()).hexdigest()
    assert f"kernel-controller.o is loaded as {name} (object {digest[:12]})" in done.stdout
    ours, reading = connected(name, socket.AF_INET)
    with ours:
        ours.sendall(bytes(1 << 24))
        found = status(name)
    reading.join()
    (flow,) = found["connections"]
    assert found["controller"] == "kernel-controller.o"
    # The example keeps no estimate of the bandwidth.
    assert flow["trusted"] and flow["cwnd"] > 10 and flow["pacing_bps"] > flow["bandwidth_bps"] == 0
    assert not any(count for cause, count in found["counters"].items() if cause.startswith("fallen_"))


@pytest.mark.long
def test_a_unit_loads_a_copy_that_only_root_can_change(
    name: str, own_object: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "units").mkdir()
    monkeypatch.setattr(kernel_load, "UNITS", tmp_path / "units")
    monkeypatch.setattr(kernel_load, "OBJECTS", tmp_path / "objects")
    done = CliRunner().invoke(cli.app, ["kernel", "load", str(own_object), "--as", name, "--persist"])
    assert done.exit_code == 0, done.output
    copied = tmp_path / "objects" / f"{name}.o"
    assert copied.read_bytes() == own_object.read_bytes() and copied.stat().st_mode & 0o022 == 0
    (unit,) = (tmp_path / "units").iterdir()
    text = unit.read_text(encoding="utf-8")
    assert f"load {copied} --as {name}" in text and str(own_object) not in text


def test_a_word_of_a_unit_is_taken_as_it_is() -> None:
    assert kernel_load._word('/srv/100%/a$b "c"\\d') == '"/srv/100%%/a$$b \\"c\\"\\\\d"'


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["no-such.o"], "CONTROLLER no-such.o cannot be read: No such file or directory; name another file"),
        (["{other}", "--profile", "draft"], "--profile is an option of bbr3"),
        (["{other}"], "other.o is no object of a controller"),
        (["{other}", "--as", "sixteen_letters_"], "has 16 letters, and the kernel takes 15"),
        (["{ours}"], "is Fullpipe's own object of bbr3; load bbr3 instead"),
    ],
)
def test_a_file_that_cannot_be_loaded_is_named(tmp_path: Path, words: list[str], said: str) -> None:
    other = tmp_path / "other.o"
    other.write_bytes(b"\x7fELF and no controller")
    ours = REPOSITORY / "crates" / "bpf" / "objects" / "bbr3.o"
    done = command("kernel", "load", *(word.format(other=other, ours=ours) for word in words))
    assert done.returncode != 0
    assert said in " ".join(done.stderr.split())


def test_names_follow_from_controllers() -> None:
    assert kernel_load.default_name("bbr3") == "fp_bbr3"
    assert kernel_load.default_name("bbr3:profile=draft") == "fp_bbr3_draft"
    assert kernel_load.default_name("bbr3:profile=repaired") == "fp_bbr3"
    assert kernel_load.default_name("bbr3:profile=linux") == "fp_bbr3_linux"
    assert kernel_load.default_name("bbr1:probe_gain=1.1") == "fp_bbr1"


def test_the_table_lists_the_objects_that_are_there() -> None:
    table = (REPOSITORY / "crates" / "bpf" / "src" / "table.rs").read_text(encoding="utf-8")
    listed = dict(re.findall(r'sha256: "(\w+)",\s*bytes: include_bytes!\("../objects/([\w-]+)\.o"\)', table))
    assert len(listed) == len({one for one in CONTROLLERS if not one.endswith("repaired")})
    for digest, name in listed.items():
        made = (REPOSITORY / "crates" / "bpf" / "objects" / f"{name}.o").read_bytes()
        assert hashlib.sha256(made).hexdigest() == digest, f"{name}: run `make bpf-objects`"


@pytest.mark.long
def test_the_same_sources_give_the_same_objects_anywhere(tmp_path: Path) -> None:
    build = builder()
    if message := build.missing():
        pytest.skip(message)
    for crate in ("bpf", "cc", "units"):
        shutil.copytree(REPOSITORY / "crates" / crate, tmp_path / "crates" / crate)
    # The crates inherit from the workspace, whose other members they do not need.
    shutil.copy(REPOSITORY / "Cargo.toml", tmp_path)
    elsewhere = tmp_path / "crates" / "bpf" / "build.py"
    subprocess.run([sys.executable, elsewhere, "--into", tmp_path / "made"], check=True)
    for made in sorted((tmp_path / "made").iterdir()):
        assert made.read_bytes() == (REPOSITORY / "crates" / "bpf" / "objects" / made.name).read_bytes(), (
            made.name
        )
