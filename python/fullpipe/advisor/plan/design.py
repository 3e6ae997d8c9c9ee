"""How to try an answer on real connections: the experiment that would confirm it.

The number of connections follows from the predicted difference and the spread between seeds, both of
logarithms, because connections differ by factors (`statistics.needed`). A simulated path repeats itself more
than real ones do, so the spread is at least an assumed one, and a pilot measures it.

Arms that share a bottleneck compete with each other: what they show is not what all connections have once all
have the same controller (Spang et al., "Unbiased experiments in congested networks", IMC 2021). So one of the
ways to assign arms is by host and hour.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from fullpipe.advisor import candidates
from fullpipe.advisor.answer import Answer
from fullpipe.advisor.goals import Trial
from fullpipe.advisor.plan.analysis import MEASURES, POWER
from fullpipe.measures import statistics
from fullpipe.text import joined

# The spread that is assumed if the simulated one is smaller: a standard deviation of 20 %.
ASSUMED_SPREAD = 0.2
# Connections of each arm in a pilot; also the fewest that are planned, for the test to be nearly exact.
PILOT = 50
# More than these are no experiment that somebody makes.
_MOST = 10_000_000
# Beyond the predicted difference of retransmissions, in percentage points, the treatment does harm.
_HARM_POINTS = 5
_FORMULA = "n = 2 (z(0.975) + z(0.9))^2 s^2 / d^2 + z(0.975)^2 / 4"
_SOURCE = "Guenther, The American Statistician 35, 1981, p. 243"
# The lines of an answer that make hosts as they were simulated, whichever controller they have.
_HOSTS = ("pacing", "pacing, one device", "ECN, at both ends", "receiver", "sender")
_SHARED = "Spang et al., IMC 2021"


@dataclass(frozen=True)
class _Take:
    """What a trial has of a measure of results, and in words."""

    measure: str
    take: Callable[[Trial], float | None]
    of: str


_GOODPUT = _Take("goodput", lambda trial: trial.goodput_bps / 1e6, "goodput of a long connection")
_RTT = _Take(
    "rtt", lambda trial: trial.rtt_p95_ms, "RTT of a long connection, simulated as its 95th percentile"
)
_COMPLETION = _Take(
    "completion",
    lambda trial: None if trial.fct_ms is None else trial.fct_ms / 1e3,
    "completion time, simulated as the mean of a seed's flows",
)
_KEPT = _Take(
    "goodput",
    lambda trial: None if trial.harm is None else 100 * (1 - trial.harm),
    "goodput of a neighbour's connection, simulated in % of what it has alone",
)
# What shows that a goal is met better: of the first of these groups in which something is better, what takes
# the fewest connections.
_SHOWS: dict[str, tuple[tuple[_Take, ...], ...]] = {
    "throughput": ((_GOODPUT,),),
    "delay": ((_RTT,), (_GOODPUT,)),
    "balance": ((_RTT, _GOODPUT),),
    "neighbours": ((_KEPT,),),
}

LOG = {
    "arm": "the controller that was drawn; check with getsockopt(TCP_CONGESTION), or `ss -ti`, that it runs",
    "bytes": "tcpi_bytes_acked of getsockopt(TCP_INFO) just before close(); bytes_acked of `ss -ti`",
    "seconds": "by your program's clock, from its first write until all is acknowledged; `ss` has no age",
    "rtt_ms": "tcpi_rtt / 1000 (smoothed); the first number of rtt of `ss -ti`",
    "retransmits": "tcpi_total_retrans; the second number of retrans of `ss -ti`",
    "time": "when it began, in seconds or as 2026-11-28T09:30:00Z; optional",
    "unit": "what was drawn, if not the connection: the client, the route, or host and hour",
}


@dataclass(frozen=True)
class Way:
    """A way to assign arms to connections."""

    name: str
    fits: str
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Prediction:
    """What is predicted of a measure, and how many connections would show it."""

    measure: str
    of: str
    unit: str
    # Geometric means of the simulated values.
    treatment: float
    control: float
    difference_percent: float
    # Standard deviations of logarithms.
    simulated_spread: float
    spread: float
    needed: int


@dataclass(frozen=True)
class NoPlan:
    """Why an answer has no plan."""

    why: str

    def __str__(self) -> str:
        return f"No plan: {self.why}."

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"possible": False, "why": self.why}


@dataclass(frozen=True)
class Plan:
    """An experiment. `str()` has its steps, and `to_dict` all of it in plain values."""

    treatment: str
    control: str
    why_control: str
    # Linux's names of both.
    arms: tuple[str, str]
    predicted: Prediction
    # The predicted shares of retransmissions, in per cent.
    retransmitted: tuple[float, float]
    before: tuple[str, ...]
    ways: tuple[Way, ...]
    # Whose connections are logged, if not those that are tried.
    neighbour: str = ""

    @property
    def per_arm(self) -> int:
        """How many connections each arm has."""
        return max(PILOT, self.predicted.needed)

    @property
    def command(self) -> str:
        """What reads the results."""
        options = f"--control {self.arms[1]} --measure {self.predicted.measure}"
        return f"fullpipe plan analyse results.csv {options} --difference {self._difference}"

    @property
    def _difference(self) -> str:
        return f"{self.predicted.difference_percent:.3g}"

    @property
    def number(self) -> str:
        """How many connections, and why, in a sentence or two."""
        one = self.predicted
        apart = math.log1p(one.difference_percent / 100)
        spread = f"s = {one.spread:.3g}, their standard deviation"
        if one.spread > one.simulated_spread:
            spread += f" (assumed: between seeds it is only {one.simulated_spread:.2g})"
        least = f" (at least {PILOT})" if one.needed < PILOT else ""
        return (
            f"{self.per_arm} connections, or units, an arm show that difference with a power of "
            f"{100 * POWER:.0f} % in a two-sided test at 5 %: {_FORMULA} = {one.needed}{least}, with "
            f"d = {apart:.3g}, the difference of logarithms, and {spread}. {_SOURCE}."
        )

    @property
    def rows(self) -> str:
        """What is logged."""
        if not self.neighbour:
            return "one row a connection, those that fail too"
        return f"one row for each connection of a {self.neighbour} neighbour; its arm is what yours had then"

    @property
    def pilot(self) -> str:
        """Why and how to begin small."""
        return (
            f"Real connections vary more than simulated ones. Begin with {PILOT} an arm: the command of the "
            "last step says how many their spread takes. Their rows do not count later."
        )

    @property
    def stop(self) -> tuple[str, ...]:
        """When the experiment ends."""
        treatment, control = self.arms
        most = max(0.0, self.retransmitted[0] - self.retransmitted[1]) + _HARM_POINTS
        predicted = f"predicted: {self.retransmitted[0]:.2g} and {self.retransmitted[1]:.2g} %"
        return (
            "When each arm has the number set after the pilot, whatever the results are by then. Do not look "
            "at the effect before: who stops as soon as there is one often sees one by chance.",
            f"Earlier only for harm, after every {PILOT} an arm: if {treatment} has less than half of the "
            f"goodput of {control}, or if its share of retransmissions is more than {most:.2g} percentage "
            f"points higher ({predicted}).",
        )

    def __str__(self) -> str:
        treatment, control = self.arms
        one = self.predicted
        names = "bytes, seconds, rtt_ms, retransmits"
        steps = [
            (f"Arms: {treatment} (treatment) and {control} (control: {self.why_control}).", ()),
            (
                f"Measure: {one.of}. Predicted: {one.treatment:.3g} instead of {one.control:.3g} {one.unit}, "
                f"{one.difference_percent:+.3g} %.",
                (),
            ),
            ("First, on all hosts and for both arms:", self.before),
            ("Draw the arm at random, in one of these ways:", ()),
            *((f"  {way.name}: {way.fits}", way.lines) for way in self.ways),
            (f"Number: {self.number}", ()),
            (f"Pilot: {self.pilot}", ()),
            (f"Log {self.rows}, as CSV (arm, {names}):", ()),
            *((f"  {name}: {text}", ()) for name, text in LOG.items()),
            ("Stop:", self.stop),
            ("Read the results; exit code 1 means that the arms are not comparable:", (self.command,)),
        ]
        lines = [f"Plan to try {self.treatment}; Fullpipe itself sends nothing:"]
        number = 0
        for step, more in steps:
            if not step.startswith("  "):
                number += 1
            lines.append(f"  {step}" if step.startswith("  ") else f"{number}. {step}")
            lines += [f"     {'  ' if step.startswith('  ') else ''}{one}" for one in more]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "possible": True,
            "treatment": {"controller": self.treatment, "arm": self.arms[0]},
            "control": {"controller": self.control, "arm": self.arms[1], "why": self.why_control},
            "predicted": asdict(self.predicted),
            "connections_per_arm": self.per_arm,
            "power": POWER,
            "formula": _FORMULA,
            "source": _SOURCE,
            "pilot_per_arm": PILOT,
            "before": list(self.before),
            "ways": [asdict(way) | {"lines": list(way.lines)} for way in self.ways],
            "rows": self.rows,
            "log": dict(LOG),
            "stop": list(self.stop),
            "analyse": self.command,
        }


def of(answer: Answer) -> Plan | NoPlan:
    """The experiment for an answer, or why there is none."""
    winner = answer.winner
    if winner is None:
        return NoPlan("the answer has no clear winner to try")
    control, why = _control(answer, winner)
    names = {one: candidates.linux_name(one) for one in (winner, control)}
    without = [one for one, linux in names.items() if linux is None]
    if without:
        return NoPlan(f"Linux has no {joined(without, 'or')}, so that no line sets it for a connection")
    arms = (names[winner] or "", names[control] or "")
    sized = answer.goal == "throughput" and answer.question.flow_size is not None
    groups = ((_COMPLETION,),) if sized else _SHOWS[answer.goal]
    for group in groups:
        predicted = [one for take in group if (one := _predicted(answer, winner, control, take)) is not None]
        if predicted:
            return Plan(
                treatment=winner,
                control=control,
                why_control=why,
                arms=arms,
                predicted=min(predicted, key=lambda one: one.needed),
                retransmitted=(_retransmitted(answer, winner), _retransmitted(answer, control)),
                before=_before(answer, arms),
                ways=_ways(arms, answer.goal),
                neighbour=answer.question.neighbour if answer.goal == "neighbours" else "",
            )
    measures = joined([MEASURES[take.measure].title for group in groups for take in group], "or")
    better = f"no better {measures} than with {control}, or one that is better by too little to show it"
    return NoPlan(f"the simulation predicts {better}")


def _control(answer: Answer, winner: str) -> tuple[str, str]:
    """With which candidate the winner is compared, and why."""
    means = {
        name: math.fsum(one.place(name).score.mean for one in answer.rankings)
        for name in answer.question.candidates
        if name != winner
    }
    second = max(means, key=lambda name: means[name])
    default = candidates.default()
    own = next((name for name in means if candidates.linux_name(name) == default), None)
    if own is not None:
        return own, "the default of this kernel"
    if default is None:
        return second, "the second candidate; this kernel's default cannot be read"
    if default == candidates.linux_name(winner):
        return second, f"the second candidate; {default} is the default of this kernel already"
    return second, f"the second candidate; {default}, the default of this kernel, was no candidate"


def _values(answer: Answer, name: str, take: Callable[[Trial], float | None]) -> list[float] | None:
    """The values of a candidate on all paths and with all seeds; None if one is missing or zero."""
    values = [take(trial) for one in answer.rankings for trial in one.place(name).trials]
    known = [value for value in values if value is not None and 0 < value < math.inf]
    return known if len(known) == len(values) else None


def _predicted(answer: Answer, winner: str, control: str, take: _Take) -> Prediction | None:
    """What is predicted of a measure; None if it is no better, or not known."""
    both = [_values(answer, name, take.take) for name in (winner, control)]
    measure = MEASURES[take.measure]
    first, second = both
    if first is None or second is None:
        return None
    logarithms = [[math.log(value) for value in values] for values in (first, second)]
    means = [math.fsum(values) / len(values) for values in logarithms]
    apart = means[0] - means[1]
    if not measure.better(apart):
        return None
    simulated = statistics.spread(*logarithms)
    spread = max(simulated, ASSUMED_SPREAD)
    # Before the number itself, which may be too large for one.
    if 2 * (4 * spread / apart) ** 2 > _MOST:
        return None
    return Prediction(
        measure=take.measure,
        of=take.of,
        unit="%" if take is _KEPT else measure.unit,
        treatment=math.exp(means[0]),
        control=math.exp(means[1]),
        difference_percent=100 * math.expm1(apart),
        simulated_spread=simulated,
        spread=spread,
        needed=statistics.needed(apart, spread, POWER),
    )


def _retransmitted(answer: Answer, name: str) -> float:
    """The predicted share of retransmissions, in per cent."""
    shares = [100 * trial.loss_ratio for one in answer.rankings for trial in one.place(name).trials]
    return math.fsum(shares) / len(shares)


def _before(answer: Answer, arms: Sequence[str]) -> tuple[str, ...]:
    """What is set for both arms, so that they differ in their controller alone."""
    lines = [f"modprobe tcp_{linux}" for linux in arms if linux not in ("reno", "cubic")]
    lines += [line.text for line in answer.lines if line.where in _HOSTS]
    allowed = " ".join(linux for linux in arms if linux != "reno")
    file = "/proc/sys/net/ipv4/tcp_allowed_congestion_control"
    lines.append(
        f'sysctl -w net.ipv4.tcp_allowed_congestion_control="$(cat {file}) {allowed}"'
        "  # for programs without CAP_NET_ADMIN"
    )
    lines.append(
        "sysctl -w net.ipv4.tcp_no_metrics_save=1"
        "  # or a connection begins with what one of the other arm learned of the destination"
    )
    return tuple(lines)


def _ways(arms: tuple[str, str], goal: str) -> tuple[Way, ...]:
    """The ways that can show the goal, with the lines for each arm."""
    treatment, control = arms
    drawn = f'arm = random.choice([b"{treatment}", b"{control}"])'
    python = f"{drawn}; sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, arm)  # Python"
    call = "setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, arm, strlen(arm))"
    # bbr's init turns pacing on, and nothing turns it off (net/ipv4/tcp_bbr.c, bbr_init).
    early = "before connect(), or on a listening socket for each arm" if candidates.default() == "bbr" else ""
    when = early or "before the first data"
    host = Way(
        "per host",
        "where connections share a bottleneck: there, arms compete with each other, and do not show what all "
        f"would have with one ({_SHARED}). Draw the arm of every hour; new connections have it. Omit those "
        "that last from one hour to the next. Unit: host and hour.",
        tuple(f"sysctl -w net.ipv4.tcp_congestion_control={one}" for one in arms),
    )
    if goal == "neighbours":
        return (host,)
    return (
        Way(
            "per connection",
            f"where connections have bottlenecks of their own, e.g. a client's access link. Set it {when}. "
            "If clients open several connections, draw for each client (unit: the client).",
            (
                python,
                f'{call}  /* C, with arm "{treatment}" or "{control}" */',
            ),
        ),
        Way(
            "per route",
            "where programs cannot be changed, and routes do not share a bottleneck. Draw for each route. "
            "Unit: the route.",
            tuple(f"ip route change ROUTE congctl {one}" for one in arms),
        ),
        host,
    )
