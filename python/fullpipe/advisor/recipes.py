"""The lines that apply an answer: for a Linux host, for one program or route, for servers, for QUIC stacks.

The lines for a host make it what the candidates were simulated on: its pacing, its ECN, its socket buffers.
What the simulation did not have is in none of them, except for QUIC stacks, whose own controllers were not
simulated; their lines are marked.
Lines are tried on this machine where that is possible, and each has its result: whether the kernel has the
controller, whether a socket takes it and what it accepts inherits it, whether programs that are installed
know the setting. Where a line for a server or a stack comes from, its source and version say;
docs/how-to/advisor.md lists them. What a stack does not have is said in the last line.
"""

import re
import shutil
import socket
import subprocess
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from fullpipe.advisor import candidates
from fullpipe.runs.worlds import child

# Linux before this cannot pace bbr without the fq discipline.
_PACES_ITSELF = "Linux 4.13"
# The largest socket buffer that Linux can be set to.
_LARGEST = 2**31 - 1
_ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
_CONF = "/etc/sysctl.d/90-congestion-control.conf"
# What programs need at most to say their version.
_PATIENCE_S = 2.0


@dataclass(frozen=True)
class Line:
    """A line to type or to write, where it belongs, what it needs, and what a try on this machine said."""

    where: str
    text: str
    tried: str = ""  # Empty if nothing here can try it.
    needs: str = ""
    # Whether it makes a host as it was simulated. If not, it sets the same controller of a QUIC stack's own.
    simulated: bool = True

    @property
    def checked(self) -> str:
        """What the line needs, and what a try said."""
        return "; ".join(filter(None, (self.needs, self.tried)))


@dataclass(frozen=True)
class Hosts:
    """What the simulated hosts have, besides their controller, that Linux's defaults may not have."""

    pacing: bool = False
    ecn: bool = False
    # Whether a flow may fill the buffers that Linux has by default.
    large_buffers: bool = False


@dataclass(frozen=True)
class Stack:
    """A server or a QUIC stack: the version that was looked at, where, and what its settings are."""

    name: str
    version: str
    source: str
    # The line for each controller, by our name of it.
    lines: Mapping[str, str] = field(default_factory=dict)
    # What a line needs beyond that version, by controller.
    needs: Mapping[str, str] = field(default_factory=dict)
    has: str = ""  # What it does instead, where it has no line.


def _any(line: str) -> dict[str, str]:
    """A line that takes any name that Linux knows, in place of `LINUX`."""
    return dict.fromkeys(("any",), line)


_QUINN = "transport.congestion_controller_factory(Arc::new(quinn::congestion::{}::default()))"
_PICOQUIC = 'picoquic_set_default_congestion_algorithm_by_name(quic, "{}")'
_MSQUIC = (
    "settings.CongestionControlAlgorithm = QUIC_CONGESTION_CONTROL_ALGORITHM_{}; "
    "settings.IsSet.CongestionControlAlgorithm = TRUE"
)
_S2N = ".with_congestion_controller(s2n_quic::provider::congestion_controller::{}::default())"

STACKS = (
    Stack(
        "HAProxy",
        "3.4",
        "doc/configuration.txt, 5.1 and 5.2",
        _any("bind :443 cc LINUX; server app1 192.0.2.1:443 cc LINUX"),
        {"any": "HAProxy 3.3 or later"},
    ),
    Stack(
        "Envoy",
        "API v3",
        "api/envoy/config/core/v3/socket_option.proto",
        # 6 is IPPROTO_TCP and 13 is TCP_CONGESTION of Linux; bytes are in Base64.
        _any("socket_options: [{level: 6, name: 13, buf_value: BASE64, state: STATE_PREBIND}]"),
        {"any": "in the listener"},
    ),
    Stack(
        "Traffic Server",
        "10",
        "doc/admin-guide/files/records.yaml.en.rst",
        _any("records: {net: {tcp_congestion_control_in: LINUX, tcp_congestion_control_out: LINUX}}"),
        {"any": "in records.yaml; before 10, CONFIG proxy.config.net.tcp_congestion_control_in STRING LINUX"},
    ),
    Stack("systemd", "252", "systemd.socket(5)", _any("TCPCongestion=LINUX"), {"any": "in a .socket unit"}),
    Stack("nginx", "1.31.5", "src/, which has no TCP_CONGESTION", has="the system's"),
    Stack("nginx (QUIC)", "1.31.5", "src/event/quic/ngx_event_quic_ack.c", has="CUBIC"),
    Stack("Caddy", "2.11.4", "its Go sources, which set none", has="the system's"),
    Stack(
        "quic-go, also in Caddy",
        "0.61",
        "internal/ackhandler/sent_packet_handler.go",
        has="Reno",
    ),
    Stack(
        "HAProxy (QUIC)",
        "3.4",
        "doc/configuration.txt, 5.1; src/quic_cc_bbr.c, which is BBRv3",
        {
            "cubic": "bind quic4@:443 ssl crt site.pem alpn h3 quic-cc-algo cubic",
            "reno": "bind quic4@:443 ssl crt site.pem alpn h3 quic-cc-algo newreno",
            "bbr3": "bind quic4@:443 ssl crt site.pem alpn h3 quic-cc-algo bbr",
        },
        {"cubic": "HAProxy 2.8 or later", "reno": "HAProxy 2.8 or later", "bbr3": "HAProxy 3.2 or later"},
        "CUBIC, NewReno and BBRv3",
    ),
    Stack(
        "Traffic Server (QUIC)",
        "10",
        "doc/admin-guide/files/records.yaml.en.rst",
        {
            "reno": "records: {quic: {cc_algorithm: 0}}",
            "cubic": "records: {quic: {cc_algorithm: 1}}",
        },
        {},
        "Reno and CUBIC",
    ),
    Stack(
        "quinn",
        "0.12",
        "quinn-proto/src/config/transport.rs, src/congestion/bbr/mod.rs",
        {
            "cubic": _QUINN.format("CubicConfig"),
            "reno": _QUINN.format("NewRenoConfig"),
            "bbr1": _QUINN.format("BbrConfig"),
        },
        {"bbr1": "quinn calls it experimental"},
        "NewReno, CUBIC and an early BBR",
    ),
    Stack(
        "quiche",
        "0.29.3",
        "quiche/src/lib.rs, src/recovery/mod.rs",
        {
            "cubic": 'config.set_cc_algorithm_name("cubic")?',
            "reno": 'config.set_cc_algorithm_name("reno")?',
        },
        {},
        "Reno, CUBIC and BBRv2",
    ),
    Stack(
        "s2n-quic",
        "1.88",
        "quic/s2n-quic/src/provider/congestion_controller.rs",
        {"cubic": _S2N.format("Cubic")},
        {},
        "CUBIC and BBRv2",
    ),
    Stack(
        "ngtcp2",
        "1.25",
        "lib/includes/ngtcp2/ngtcp2.h",
        {
            "cubic": "settings.cc_algo = NGTCP2_CC_ALGO_CUBIC",
            "reno": "settings.cc_algo = NGTCP2_CC_ALGO_RENO",
        },
        {},
        "Reno, CUBIC and BBRv2",
    ),
    Stack(
        "MsQuic",
        "2",
        "src/inc/msquic.h, docs/Settings.md",
        {"cubic": _MSQUIC.format("CUBIC")},
        {},
        "CUBIC, and a BBR in its preview",
    ),
    Stack(
        "picoquic",
        "August 2026",
        "picoquic/picoquic.h, bbr1.c, bbr.c",
        {
            "cubic": _PICOQUIC.format("cubic"),
            "reno": _PICOQUIC.format("newreno"),
            "bbr1": _PICOQUIC.format("bbr1"),
            "bbr3": _PICOQUIC.format("bbr"),
        },
        dict.fromkeys(
            ("cubic", "reno", "bbr1", "bbr3"), "after picoquic_register_all_congestion_control_algorithms()"
        ),
        "NewReno, CUBIC, BBRv1 and BBRv3",
    ),
    Stack(
        "lsquic",
        "4.9.3",
        "include/lsquic.h",
        {"cubic": "settings.es_cc_algo = 1", "bbr1": "settings.es_cc_algo = 2"},
        {},
        "CUBIC and BBRv1",
    ),
)
# By what name of ours stacks are looked up: those by the RFCs are what QUIC stacks have.
_IN_STACKS = {"newreno": "reno", "cubic9438": "cubic"}


def of(controller: str, hosts: Hosts) -> list[Line]:
    """The lines for a controller on these hosts; empty if nothing that people run has it."""
    name = controller.partition(":")[0]
    linux = candidates.linux_name(name)
    own = _IN_STACKS.get(name, name)
    lines = [*_of_hosts(linux, hosts), *_of_linux(linux)] if linux is not None else []
    with_lines = [(stack, key) for stack in STACKS if (key := _key(stack, own, linux)) is not None]
    for stack, key in with_lines:
        text, needs = (_filled(message.get(key, ""), linux) for message in (stack.lines, stack.needs))
        simulated = key == "any"
        lines.append(Line(stack.name, text, _installed(stack.name), needs, simulated))
    if not lines:
        return []
    if linux is None and name == "bbr3":
        none = "no setting: its bbr is BBRv1"
        lines.insert(0, Line("Linux", none, "", "Google's kernel has BBRv3", simulated=False))
    without = [stack for stack in STACKS if stack not in [one for one, _ in with_lines] and stack.has]
    if without:
        message = "; ".join(f"{stack.name} {stack.version}: {stack.has}" for stack in without)
        lines.append(Line("without a setting for it", message, simulated=False))
    return lines


def _key(stack: Stack, name: str, linux: str | None) -> str | None:
    """The key of the stack's line for a controller, if it has one."""
    if name in stack.lines:
        return name
    return "any" if linux is not None and "any" in stack.lines else None


def _filled(line: str, linux: str | None) -> str:
    name = linux or ""
    return line.replace("LINUX", name).replace("BASE64", b64encode(name.encode()).decode())


def _of_hosts(linux: str, hosts: Hosts) -> list[Line]:
    """The lines that make a host what was simulated, whatever its controller."""
    lines = []
    if hosts.pacing:
        # TCP paces flows of bbr itself (tcp_internal_pacing came with 4.13).
        rest = f"; optional since {_PACES_ITSELF}, where bbr paces itself" if linux == "bbr" else ""
        new = f"for new devices{rest}"
        lines.append(Line("pacing", "sysctl -w net.core.default_qdisc=fq", _default_qdisc(), new))
        one = f"for a device that is up{rest}"
        lines.append(Line("pacing, one device", "tc qdisc replace dev DEV root fq", "", one))
        lines.append(Line("after every boot", f"{_CONF}: net.core.default_qdisc = fq"))
    if hosts.ecn and linux != "dctcp":
        lines.append(Line("ECN, at both ends", "sysctl -w net.ipv4.tcp_ecn=1"))
    if hosts.large_buffers:
        why = "no buffer limits a flow"
        receive = f'sysctl -w net.ipv4.tcp_rmem="4096 131072 {_LARGEST}"'
        send = f'sysctl -w net.ipv4.tcp_wmem="4096 16384 {_LARGEST}"'
        lines.append(Line("receiver", receive, "", why))
        lines.append(Line("sender", send, "", why))
    return lines


def _of_linux(linux: str) -> list[Line]:
    lines = []
    builtin = linux in ("reno", "cubic")
    if not builtin:
        lines.append(Line("now", f"modprobe tcp_{linux}", _loaded(linux)))
    lines.append(Line("now", f"sysctl -w net.ipv4.tcp_congestion_control={linux}", _default(linux)))
    if linux == "dctcp":
        lines.append(Line("now, at both ends", "sysctl -w net.ipv4.tcp_ecn=1", "", "queues that mark"))
    if not builtin:
        # Without it, the setting below comes too early at boot.
        lines.append(Line("after every boot", f"/etc/modules-load.d/tcp_{linux}.conf: tcp_{linux}"))
    lines.append(Line("after every boot", f"{_CONF}: net.ipv4.tcp_congestion_control = {linux}"))
    call = f'setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "{linux}", {len(linux)})'
    python = f'sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"{linux}")'
    go = f'syscall.SetsockoptString(int(fd), syscall.IPPROTO_TCP, syscall.TCP_CONGESTION, "{linux}")'
    # bbr's init turns pacing on, and nothing turns it off (net/ipv4/tcp_bbr.c, bbr_init). Seen in the kernel
    # world by tests/test_advise_recipes.py: set after connect(), CUBIC's packets are half a round trip apart.
    early = "" if linux == "bbr" else "before connect(): a socket that connected with bbr stays paced"
    why = "; ".join(filter(None, ("C", early, "what a listener accepts inherits it")))
    lines.append(Line("one program", call, _socket(linux), why))
    lines.append(Line("one program, Python", python, "", early))
    lines.append(Line("one program, Go", go, "", "in net.ListenConfig.Control, net.Dialer.Control"))
    if linux != "reno":
        allow = f'sysctl -w net.ipv4.tcp_allowed_congestion_control="$(cat {_ALLOWED}) {linux}"'
        lines.append(Line("programs without CAP_NET_ADMIN", allow, _allowed(linux)))
    lines.append(
        Line("one route", f"ip route change ROUTE congctl {linux}", _congctl(), "Linux 4.0 or later")
    )
    return lines


def _loaded(linux: str) -> str:
    here = {one.linux: one.loaded for one in candidates.here()}
    if linux not in here:
        return "this kernel does not have it"
    return "loaded here" if here[linux] else "not loaded here; the module is there"


def _default(linux: str) -> str:
    return _compared(candidates.default() or "", linux)


def _default_qdisc() -> str:
    return _compared(candidates.default_qdisc() or "", candidates.PACES)


def _compared(now: str, wanted: str) -> str:
    """Whether a setting of this machine has a value already."""
    return "is so here" if now == wanted else f"{now} here" if now else ""


def _allowed(linux: str) -> str:
    try:
        now = _ALLOWED.read_text(errors="replace").split()
    except OSError:
        return ""
    return "is allowed here" if linux in now else "is not allowed here"


def _socket(linux: str) -> str:
    """Whether a socket takes it, as this user, and a connection that it accepts has it."""
    option = getattr(socket, "TCP_CONGESTION", None)
    if option is None:
        return ""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tried:
            tried.setsockopt(socket.IPPROTO_TCP, option, linux.encode())
    except OSError as error:
        return f"refused here: {error.strerror}"
    return "a socket takes it here"


def _congctl() -> str:
    """Whether the `ip` that is installed knows the setting."""
    message = _message("ip", "route", "help")
    if message is None:
        return ""
    return "ip knows it here" if "congctl" in message else "ip does not know it here"


# How installed programs say their version.
_VERSION = {"HAProxy": ("haproxy", "-v"), "HAProxy (QUIC)": ("haproxy", "-v")}


def _installed(name: str) -> str:
    """The version of a server that is installed here."""
    if name not in _VERSION:
        return ""
    found = re.search(r"\d+\.\d+(\.\d+)?", _message(*_VERSION[name]) or "")
    return f"{found[0]} here" if found else ""


def _message(program: str, *arguments: str) -> str | None:
    """What an installed program prints; None if it is not installed or does not answer."""
    path = shutil.which(program)
    if path is None:
        return None
    try:
        process = child.start(
            [path, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    except OSError:
        return None
    try:
        return process.communicate(timeout=_PATIENCE_S)[0].decode(errors="replace")
    except subprocess.TimeoutExpired:
        return None
    finally:
        child.end(process)
