"""A soak of our controllers in this kernel: mixed connections, loads and unloads under traffic, two at once.

    python bench/kernel_soak.py [--connections 10000] [--loads 1000]

Needs root, bpftool, tc and what `fullpipe kernel load` needs. It works over loopback devices of network
namespaces of its own, which come and go. Each round has other settings of TCP (SACK, time stamps, ECN,
segment size); in some a token bucket with a short queue loses packets, in some a part of each connection's
bytes takes a slower class of HTB and arrives out of order. Prints figures and exits with 1
if a connection failed or hung, or if something is left: a program, a map, a line in dmesg.
"""

import argparse
import ctypes
import itertools
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import fullpipe._native as _native

NAMES = {"soak_a": "bbr3", "soak_b": "bbr3:profile=linux"}
SIZES = (0, 1, 1_000, 40_000, 1_000_000)
# A connection that takes longer hangs.
PATIENCE_S = 60
WORKERS = 8
# How many connections a network namespace serves.
STAY = 100
CLONE_NEWNET = 0x40000000
PLAIN: tuple[str, ...] = ()
BUCKET = ("tc qdisc add dev lo root tbf rate 500mbit burst 32kb limit 64kb",)
# Bits 11 to 13 of the sequence number choose the class: one of eight pieces of 2 KB waits longer.
REORDER = (
    # A piece is not a part of a larger frame.
    "ip link set lo gso_max_segs 1",
    "tc qdisc add dev lo root handle 1: htb default 10",
    "tc class add dev lo parent 1: classid 1:10 htb rate 500mbit quantum 3000",
    "tc class add dev lo parent 1: classid 1:20 htb rate 60mbit burst 4kb quantum 3000",
    "tc filter add dev lo parent 1: protocol ip u32 match u32 0x0800 0x3800 at 24 flowid 1:20",
    "tc filter add dev lo parent 1: protocol ipv6 u32 match u32 0x0800 0x3800 at 44 flowid 1:20",
)
# Settings of TCP in each round, and what is done to the loopback device.
ROUNDS: tuple[tuple[dict[str, str], tuple[str, ...]], ...] = (
    ({}, PLAIN),
    ({}, BUCKET),
    ({}, REORDER),
    ({"tcp_sack": "0"}, BUCKET),
    ({"tcp_timestamps": "0"}, BUCKET),
    ({"tcp_timestamps": "0"}, REORDER),
    ({"tcp_ecn": "1"}, PLAIN),
    ({"tcp_sack": "0", "tcp_timestamps": "0"}, BUCKET),
)


def bpf(kind: str) -> Counter[str]:
    """Programs or maps in the kernel, by name."""
    listed = subprocess.run(["bpftool", kind, "show", "-j"], capture_output=True, text=True, check=True)
    return Counter(one.get("name", "") for one in json.loads(listed.stdout))


def kernel_messages() -> list[str]:
    """What the kernel said."""
    return subprocess.run(["dmesg"], capture_output=True, text=True, check=False).stdout.splitlines()


def own_network(settings: dict[str, str], link: tuple[str, ...]) -> None:
    """A network namespace of this thread's own, with a loopback device."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET) != 0:
        raise OSError(f"cannot make a network namespace: {os.strerror(ctypes.get_errno())}")
    subprocess.run(["ip", "link", "set", "lo", "up", "mtu", "1500"], check=True)
    for words in link:
        subprocess.run(words.split(), check=True)
    for name, value in settings.items():
        Path(f"/proc/sys/net/ipv4/{name}").write_text(value, encoding="ascii")


class Peer:
    """Reads whatever connects."""

    def __init__(self, family: socket.AddressFamily) -> None:
        self.listening = socket.create_server(
            {socket.AF_INET: ("127.0.0.1", 0), socket.AF_INET6: ("::1", 0)}[family],
            family=family,
            backlog=1024,
        )
        self.address = self.listening.getsockname()
        self.bytes = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Accepts no more."""
        self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()

    def _accept(self) -> None:
        while True:
            try:
                one, _ = self.listening.accept()
            except OSError:
                return
            threading.Thread(target=self._read, args=(one,), daemon=True).start()

    def _read(self, one: socket.socket) -> None:
        with one:
            try:
                while part := one.recv(1 << 16):
                    self.bytes += len(part)
            except OSError:
                pass


def out_of_order() -> int:
    """How many segments came out of order in this thread's namespace (Linux: TCPOFOQueue)."""
    names, values = (
        line.split()[1:]
        for line in Path("/proc/thread-self/net/netstat").read_text(encoding="ascii").splitlines()
        if line.startswith("TcpExt:")
    )
    return int(dict(zip(names, values, strict=True))["TCPOFOQueue"])


def dropped() -> int:
    """How many packets the loopback device of this namespace dropped."""
    shown = subprocess.run(
        ["tc", "-s", "-j", "qdisc", "show", "dev", "lo"], capture_output=True, text=True, check=True
    )
    return sum(one.get("drops", 0) for one in json.loads(shown.stdout))


class Soak:
    """The work and what came of it."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.failures: list[str] = []
        self.lock = threading.Lock()

    def choose(self, one: socket.socket, name: str) -> None:
        """Sets the congestion control; it is back soon if it is not loaded just then."""
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
            except FileNotFoundError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.002)
            else:
                return

    def connect(self, number: int, peers: list[tuple[socket.AddressFamily, Peer]]) -> None:
        """One connection: how it ends, its size, segments and congestion control follow from its number."""
        family, peer = peers[number % len(peers)]
        name = list(NAMES)[number // 2 % len(NAMES)]
        size = SIZES[number // 4 % len(SIZES)]
        try:
            with socket.socket(family) as one:
                one.settimeout(PATIENCE_S)
                self.choose(one, name)
                if number % 7 == 0:
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
                one.connect(peer.address)
                one.sendall(bytes(size))
                if number % 5 == 1:  # Away and back.
                    self.choose(one, "cubic")
                    self.choose(one, name)
                    one.sendall(bytes(size))
                if number % 5 == 2:  # A reset.
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            self.count("connections")
        except OSError as error:
            with self.lock:
                self.failures.append(f"{number}: {error}")

    def count(self, what: str, how_many: int = 1) -> None:
        """Counts some."""
        with self.lock:
            self.counts[what] += how_many

    def work(self, numbers: Iterator[int], settings: dict[str, str], link: tuple[str, ...]) -> None:
        """Connects until there are no more numbers; what ends it early is a failure."""
        try:
            self._work(numbers, settings, link)
        except (OSError, subprocess.SubprocessError) as error:
            with self.lock:
                self.failures.append(f"a worker: {error}")

    def _work(self, numbers: Iterator[int], settings: dict[str, str], link: tuple[str, ...]) -> None:
        """In one network namespace after another."""
        while True:
            with self.lock:
                some = list(itertools.islice(numbers, STAY))
            if not some:
                return
            own_network(settings, link)
            peers = [(family, Peer(family)) for family in (socket.AF_INET, socket.AF_INET6)]
            for number in some:
                self.connect(number, peers)
            for _, peer in peers:
                peer.close()
                self.count("bytes", peer.bytes)
            self.count("namespaces")
            self.count("dropped", dropped())
            if link is REORDER:
                self.count("out_of_order", out_of_order())


def run(connections: int, loads: int) -> dict[str, object]:
    """The soak; its figures."""
    before = bpf("prog"), bpf("map"), kernel_messages()
    began = time.monotonic()
    soak = Soak()
    rounds = len(ROUNDS)
    loaded = 0
    with ExitStack() as held:
        for name, controller in NAMES.items():
            _native.kernel_load(controller, name, as_default=False)
            held.callback(unload, name)
        for number, (settings, link) in enumerate(ROUNDS):
            numbers = iter(range(number * connections // rounds, (number + 1) * connections // rounds))
            threads = [
                threading.Thread(target=soak.work, args=(numbers, settings, link)) for _ in range(WORKERS)
            ]
            for thread in threads:
                thread.start()
            # Meanwhile one after the other goes and comes back.
            while loaded < (number + 1) * loads // rounds:
                name = list(NAMES)[loaded % len(NAMES)]
                _native.kernel_unload(name)
                _native.kernel_load(NAMES[name], name, as_default=False)
                loaded += 1
            for thread in threads:
                thread.join()
        fallen = Counter[str]()
        for name in NAMES:
            (one,) = json.loads(_native.kernel_status(name))
            fallen.update(
                {
                    cause: count
                    for cause, count in one["counters"].items()
                    if cause.startswith("fallen_") and count
                }
            )
    left = settled(before[0], before[1])
    return {
        **soak.counts,
        "loads": loaded,
        "failures": soak.failures,
        "fallen_of_the_last": fallen,
        "left": left,
        "dmesg": kernel_messages()[len(before[2]) :],
        "seconds": round(time.monotonic() - began, 1),
    }


def unload(name: str) -> None:
    """Removes one that may be gone."""
    with suppress(_native.WorldError):
        _native.kernel_unload(name)


def settled(programs: Counter[str], maps: Counter[str]) -> list[str]:
    """What is left of ours after the last sockets have gone, which linger for a minute."""
    until = time.monotonic() + 150
    while True:
        left = sorted(((bpf("prog") - programs) + (bpf("map") - maps)).elements())
        if not left or time.monotonic() > until:
            return left
        time.sleep(1)


def main() -> int:
    """The command line; the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--loads", type=int, default=1_000)
    arguments = parser.parse_args()
    found = run(arguments.connections, arguments.loads)
    print(json.dumps(found, indent=2))
    idle = [name for name in ("dropped", "out_of_order") if not found.get(name)]
    if idle or found.get("connections") != arguments.connections:
        print(f"not all was tried: {', '.join(idle) or 'connections are missing'}", file=sys.stderr)
        return 1
    return 1 if found["failures"] or found["left"] or found["dmesg"] else 0


if __name__ == "__main__":
    sys.exit(main())
