"""The lines that apply an answer: for a Linux host, for one program, for QUIC stacks.

Lines are tried on this machine where that is possible, and each has its result: whether the kernel has the
controller, and whether a socket takes it.
"""

import socket
from dataclasses import dataclass
from pathlib import Path

from fullpipe.advisor import candidates

# Linux before this cannot pace without the fq discipline (tcp_internal_pacing came with 4.13).
_PACES_ITSELF = "Linux 4.13"
_SYSCTL = Path("/proc/sys/net/ipv4/tcp_congestion_control")

# What QUIC stacks call the algorithm that is nearest, by controller. Names of documented settings.
_QUIC = {
    "cubic": (
        (
            "quinn",
            "transport.congestion_controller_factory(Arc::new(quinn::congestion::CubicConfig::default()))",
        ),
        ("quiche", "config.set_cc_algorithm(quiche::CongestionControlAlgorithm::CUBIC)"),
        (
            "s2n-quic",
            ".with_congestion_controller(s2n_quic::provider::congestion_controller::Cubic::default())",
        ),
        ("HAProxy", "bind quic4@:443 ... quic-cc-algo cubic"),
    ),
    "reno": (
        (
            "quinn",
            "transport.congestion_controller_factory(Arc::new(quinn::congestion::NewRenoConfig::default()))",
        ),
        ("quiche", "config.set_cc_algorithm(quiche::CongestionControlAlgorithm::Reno)"),
        ("HAProxy", "bind quic4@:443 ... quic-cc-algo newreno"),
    ),
    "bbr1": (
        (
            "quinn",
            "transport.congestion_controller_factory(Arc::new(quinn::congestion::BbrConfig::default()))",
        ),
    ),
}


@dataclass(frozen=True)
class Line:
    """A line to type or to write, where it belongs, and what a try on this machine said."""

    where: str
    text: str
    checked: str  # Empty if nothing here can try it.


def of(controller: str) -> list[Line]:
    """The lines for a controller; empty if nothing that people run has it."""
    name = controller.partition(":")[0]
    linux = candidates.linux_name(name)
    if linux is None:
        return []
    lines = []
    if linux not in ("reno", "cubic"):
        lines.append(Line("now", f"modprobe tcp_{linux}", _loaded(linux)))
    lines.append(Line("now", f"sysctl -w net.ipv4.tcp_congestion_control={linux}", _default(linux)))
    conf = f"/etc/sysctl.d/90-congestion-control.conf: net.ipv4.tcp_congestion_control = {linux}"
    lines.append(Line("after every boot", conf, ""))
    if linux == "bbr":
        lines.append(
            Line(
                "pacing",
                "sysctl -w net.core.default_qdisc=fq",
                f"optional since {_PACES_ITSELF}, where TCP paces itself",
            )
        )
    call = f'setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "{linux}", {len(linux)})'
    lines.append(Line("one program", call, _socket(linux)))
    lines.append(Line("one route", f"ip route change ROUTE congctl {linux}", ""))
    lines.append(Line("nginx, Apache", "no setting of their own: they use the system's", ""))
    lines += [Line(f"{stack} (QUIC)", text, "") for stack, text in _QUIC.get(name, ())]
    return lines


def _loaded(linux: str) -> str:
    here = {one.linux: one.loaded for one in candidates.here()}
    if linux not in here:
        return "this kernel does not have it"
    return "loaded here" if here[linux] else "not loaded here; the module is there"


def _default(linux: str) -> str:
    try:
        now = _SYSCTL.read_text(errors="replace").strip()
    except OSError:
        return ""
    return "is so here" if now == linux else f"{now} here"


def _socket(linux: str) -> str:
    """Whether a socket takes it, as this user."""
    option = getattr(socket, "TCP_CONGESTION", None)
    if option is None:
        return ""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tried:
            tried.setsockopt(socket.IPPROTO_TCP, option, linux.encode())
    except OSError as error:
        return f"refused here: {error.strerror}"
    return "a socket takes it here"
