"""The scenes of the criteria: flows of the candidate alone, or beside others, over one bottleneck."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from fullpipe.text import counted
from fullpipe_studies import deliveries
from fullpipe_studies.evaluate.scene import Made, Scene, Vary, made


def _alone(
    c: str,
    vary: Vary,
    *,
    count: int = 1,
    ecn: bool = False,
    changes: Sequence[dict[str, Any]] = (),
    **more: Any,
) -> Made:
    """Flows of one controller. Changes have their times in seconds."""
    path = {**more.pop("path", {})}
    if changes:
        path["changes"] = [{**one, "at": f"{one['at']:.6f} s"} for one in changes]
    hosts = {**more.pop("hosts", {}), **({"ecn": True} if ecn else {})}
    flow = {"controller": c, "label": "c", "count": count}
    return made(vary, [flow], path=path, hosts=hosts, **more)


def alone(name: str, *, quick: bool = False, only_sim: str = "", **more: Any) -> Scene:
    """A scene with flows of one controller."""
    return Scene(name, partial(_alone, **more), quick, only_sim)


def loss_steps(c: str, vary: Vary) -> Made:
    """A lone flow while random loss rises in steps."""
    at = [15 + vary.between(0, 2), 30 + vary.between(0, 2), 45 + vary.between(0, 2)]
    changes: list[dict[str, Any]] = [
        {"at": time, "loss": loss} for time, loss in zip(at, ("30 %", "60 %", "90 %"), strict=True)
    ]
    facts: dict[str, Any] = {
        "clean": at[0] - 1,
        "at30": at[0] + 3,
        "end30": at[1],
        "at60": at[1] + 3,
        "end60": at[2],
    }
    return _alone(c, vary, rate=20, bdp=4, seconds=60, after=6, changes=changes, **facts)


def silence(c: str, vary: Vary) -> Made:
    """A lone flow that hears nothing from a moment on."""
    at = 10 + vary.between(0, 3)
    back = {"changes": [{"at": f"{at:.6f} s", "loss": "100 %"}]}
    return _alone(c, vary, rate=20, seconds=70, after=at + 1, path={"reverse": back})


def _beside(
    c: str,
    vary: Vary,
    *,
    victim: str,
    ours: int = 1,
    theirs: int = 1,
    ecn: bool = False,
    lie: str = "",
    **more: Any,
) -> Made:
    """Flows of a controller beside flows of another; who is first depends on the seed.

    The receivers of the controller's own flows tell `lie`.
    """
    flows: list[dict[str, Any]] = [
        {"controller": c, "label": "c", "count": ours, "start": f"{vary.between(0, 2):.6f} s"},
        {"controller": victim, "label": "v", "count": theirs, "start": f"{vary.between(0, 2):.6f} s"},
    ]
    if lie:
        flows[0]["receiver"] = lie
    if "far_ms" in more:
        flows[1]["rtt"] = f"{more.pop('far_ms')} ms"
    return made(vary, flows, hosts={"ecn": True} if ecn else {}, **{"seconds": 40, "after": 10, **more})


def unequal(c: str, vary: Vary) -> Made:
    """Two flows of one controller, of which one has a longer round trip; the buffer is 4 of its BDP."""
    return _beside(c, vary, victim=c, rtt=20, far_ms=100, bdp=20, seconds=60)


def two_way(c: str, vary: Vary) -> Made:
    """A flow whose ACKs share a slow way back with the data of a CUBIC flow in the other direction."""
    flows = [
        {"controller": c, "label": "c"},
        {"controller": "cubic", "label": "back", "direction": "reverse"},
    ]
    return made(vary, flows, rate=20, path={"reverse": {"rate": "2 Mbit/s", "buffer": "50 packets"}})


def beside(name: str, *, quick: bool = False, only_sim: str = "", **more: Any) -> Scene:
    """A scene with flows of the controller and of another one."""
    return Scene(name, partial(_beside, **more), quick, only_sim)


def _late(c: str, vary: Vary) -> Made:
    start = 15 + vary.between(0, 5)
    flows: list[dict[str, Any]] = [
        {"controller": c, "label": "c", "count": 2},
        {"controller": c, "label": "late", "start": f"{start:.6f} s"},
    ]
    return made(vary, flows, seconds=45, after=start + 5, late=start + 25)


def _short(c: str, vary: Vary, *, long: str | None, short: str | None) -> Made:
    """A long flow, and short ones of 10 KB to 1 MB at random times; None is the controller's place."""
    flows: list[dict[str, Any]] = [{"controller": long or c, "label": "long"}]
    for at in vary.arrivals(0.5, 10, 35):
        size = 10 ** vary.between(4, 6)
        label = f"short{len(flows)}"
        start = {"start": f"{at:.6f} s", "start_jitter": 0, "size": f"{size:.0f} B"}
        flows.append({"controller": short or c, "label": label, **start})
    return made(vary, flows, rate=20, bdp=2, seconds=45, after=10)


def short(name: str, long: str | None, short: str | None, *, quick: bool = False) -> Scene:
    """A scene with a long flow and short ones."""
    return Scene(name, partial(_short, long=long, short=short), quick)


def media(c: str, vary: Vary) -> Made:
    """A flow beside frames of a fixed size, each 33 ms, which nobody sends again."""
    frames = {"frame": "12 kB", "every": "33 ms", "deadline": "100 ms"}
    flows: list[dict[str, Any]] = [{"controller": c, "label": "c"}, {"label": "media", "media": frames}]
    return made(vary, flows, rate=20, bdp=4, seconds=30)


def _fixed(c: str, vary: Vary) -> Made:
    flows: list[dict[str, Any]] = [
        {"controller": c, "label": "c"},
        {"controller": "fixed:rate=10", "label": "fixed"},
    ]
    return made(vary, flows, rate=20, seconds=30)


def _pulses(c: str, vary: Vary) -> Made:
    bursts = {"size": "200 kB", "every": f"{vary.between(0.9, 1.1):.6f} s"}
    flows: list[dict[str, Any]] = [
        {"controller": c, "label": "c"},
        {"controller": "fixed:cwnd=500", "label": "pulse", "bursts": bursts},
    ]
    return made(vary, flows, rate=20, seconds=30)


def _cellular(c: str, vary: Vary) -> Made:
    path = {"deliveries": deliveries.file(), "buffer": "300 packets"}
    scene = _alone(c, vary, rtt=60, seconds=60, path=path)
    return replace(scene, facts={**scene.facts, "rate": deliveries.mean_mbps()})


def delay_change(c: str, vary: Vary) -> Made:
    """A lone flow while the round-trip time rises and falls."""
    at, back = 10 + vary.between(0, 8), 28 + vary.between(0, 4)
    changes: list[dict[str, Any]] = [{"at": at, "rtt": "120 ms"}, {"at": back, "rtt": "40 ms"}]
    return _alone(c, vary, seconds=50, changes=changes, begin=at, later=at + 10, back=back + 2)


def _rate_change(c: str, vary: Vary, *, factor: float, bdp: float, rate: float = 50) -> Made:
    at = 10 + vary.between(0, 8)
    changes: list[dict[str, Any]] = [{"at": at, "rate": f"{rate * factor:.6f} Mbit/s"}]
    facts: dict[str, Any] = {"begin": at + 1, "stop": at + 31, "new_rate": rate * factor}
    return _alone(c, vary, rate=rate, bdp=bdp, seconds=50, changes=changes, **facts)


def rate_change(name: str, factor: float, bdp: float, *, quick: bool = False, rate: float = 50) -> Scene:
    """A scene in which the rate changes at a moment that the seed draws."""
    return Scene(name, partial(_rate_change, factor=factor, bdp=bdp, rate=rate), quick)


def _leo(c: str, vary: Vary) -> Made:
    changes: list[dict[str, Any]] = []
    for number in range(4):
        at = 15 * number + 5 + vary.between(0, 5)
        changes.append({"at": at, "rtt": "55 ms" if number % 2 == 0 else "30 ms", "loss": "100 %"})
        changes.append({"at": at + 0.1, "loss": 0})
    return _alone(c, vary, rtt=30, seconds=65, after=5, changes=changes, leo=True)


def _outage(c: str, vary: Vary, *, seconds: float) -> Made:
    at = 10 + vary.between(0, 5)
    changes: list[dict[str, Any]] = [{"at": at, "loss": "100 %"}, {"at": at + seconds, "loss": 0}]
    return _alone(c, vary, seconds=at + seconds + 10, changes=changes, begin=at + seconds)


def outage(name: str, seconds: float, *, quick: bool = False) -> Scene:
    """A scene in which every packet is lost for a time."""
    return Scene(name, partial(_outage, seconds=seconds), quick)


def onset(c: str, vary: Vary) -> Made:
    """A flow that ten of CUBIC join for 20 s."""
    at = 10 + vary.between(0, 5)
    join = {"start": f"{at:.6f} s", "stop": f"{at + 20:.6f} s"}
    flows: list[dict[str, Any]] = [
        {"controller": c, "label": "c"},
        {"controller": "cubic", "label": "v", "count": 10, **join},
    ]
    return made(vary, flows, seconds=45, begin=at, stop=at + 5, later=at + 21)


def _transfer(c: str, vary: Vary) -> Made:
    flow = {"controller": c, "label": "short", "size": "10 MB"}
    return made(vary, [flow], rtt=600, bdp=1, seconds=60, transfer=True)


def incast(c: str, vary: Vary) -> Made:
    """Many short flows at once beside two long ones, in a data centre."""
    at = f"{0.5 + vary.between(0, 0.2):.6f} s"
    burst = {"count": 64, "size": "64 kB", "start": at, "start_jitter": "200 us"}
    flows: list[dict[str, Any]] = [{"controller": c, "label": "c", "count": 2, "start_jitter": "10 ms"}]
    flows.append({"controller": c, "label": "short", **burst})
    return made(
        vary,
        flows,
        rate=10_000,
        rtt=0.2,
        bdp=2,
        seconds=2,
        after=0.3,
        path={"queue": "step"},
        hosts={"ecn": True},
    )


_MBIT = {"0.5": 0.5, "5": 5.0, "50": 50.0, "500": 500.0}
FAST = "500 Mbit/s and more take too long in QUIC stacks"
_LONG = "windows of thousands of packets take too long in QUIC stacks"
GRID = [
    alone(
        f"{name} Mbit/s, {rtt} ms, {bdp:g} BDP",
        quick=(name, rtt, bdp) in {("5", 40, 1), ("50", 40, 0.25), ("50", 200, 1), ("0.5", 40, 1)},
        only_sim=FAST if rate >= 500 else "",
        rate=rate,
        rtt=rtt,
        bdp=bdp,
        seconds=60 if rate < 5 else 30 if rate < 500 else 15,
        after=20 if rate < 5 else 10 if rate < 500 else 5,
    )
    for name, rate in _MBIT.items()
    for rtt in (5, 40, 200)
    for bdp in (0.25, 1, 4)
]
SMALL = [
    alone(
        f"{counted(count, 'flow')}, {bdp:g} BDP",
        quick=(count, bdp) in {(1, 0.1), (10, 0.1), (10, 1)},
        count=count,
        bdp=bdp,
    )
    for count in (1, 4, 10, 50)
    for bdp in (0.1, 0.5, 1)
]
HUNDRED = alone(
    "100 flows, 1 Mbit/s, 100 ms, 20 packets",
    quick=True,
    count=100,
    rate=1,
    rtt=100,
    seconds=40,
    path={"buffer": "20 packets"},
)
POLICER = alone(
    "policer, 10 of 100 Mbit/s", quick=True, rate=100, path={"policer": "10 Mbit/s, 100 kB"}, policed=10.0
)
PAIRS = [
    beside(
        f"1 and 1 {victim}, {bdp:g} BDP", quick=victim == "cubic" and bdp in (1, 4), victim=victim, bdp=bdp
    )
    for victim in ("cubic", "reno", "bbr1")
    for bdp in (0.25, 1, 4, 16)
]
CROWDS = [
    beside("9 and 1 cubic, 1 BDP", quick=True, victim="cubic", ours=9, rate=100),
    beside("1 and 9 cubic, 1 BDP", victim="cubic", theirs=9, rate=100),
    beside("1 and 1 reno at 100 ms, 1 BDP", victim="reno", rtt=40, far_ms=100),
]
WIRED = alone("50 Mbit/s, 40 ms, 1 BDP, one flow", quick=True)
QUEUES = ("codel", "fq_codel", "pie", "red", "dualpi2")
AQM = [
    alone(
        f"{queue}{', ECN' if ecn else ''}, 2 flows",
        quick=queue in ("codel", "red"),
        count=2,
        ecn=ecn,
        path={"queue": queue},
    )
    for queue in QUEUES
    for ecn in (False, True)
]
IN_AQM = beside(
    "codel, ECN, beside 1 cubic", quick=True, victim="cubic", ecn=True, rtt=20, path={"queue": "codel"}
)
_AGGREGATED = [
    alone(
        f"ACKs held up to {ms} ms",
        quick=ms == 10,
        rate=20,
        bdp=2,
        path={"reverse": {"after": [{"kind": "aggregate", "every": f"{ms} ms"}]}},
    )
    for ms in (2, 10, 20)
]
# The bad Wi-Fi of C4's tests: an average of 7 ms is a share of (7 - 1) / 90.
_WIFI = {"kind": "wifi", "collisions": "6.7 %"}
_BURSTY = {"kind": "gilbert_elliott", "good_to_bad": "0.1 %", "bad_to_good": "20 %"}
RADIO = [
    *(
        alone(f"random loss {loss} %", quick=loss in (0.1, 1), rate=20, path={"loss": f"{loss} %"})
        for loss in (0.01, 0.1, 1, 5)
    ),
    alone("bursts of loss (Gilbert-Elliott)", rate=20, path={"after": [_BURSTY]}),
    alone("jitter of 20 ms", quick=True, rate=20, path={"jitter": "20 ms"}),
    *(
        alone(
            f"Wi-Fi jitter of 7 ms, {rtt} ms",
            quick=rtt == 2,
            rate=10,
            rtt=rtt,
            path={"buffer": "100 packets", "after": [_WIFI]},
        )
        for rtt in (2, 40)
    ),
    *_AGGREGATED,
    Scene("cellular trace, 300 packets", _cellular, quick=True),
]
REORDERED = [
    alone(
        f"{share} % held back {ms} ms",
        quick=(share, ms) in {(1, 60), (5, 60)},
        rate=20,
        path={"reorder": f"{share} %, {ms} ms"},
    )
    for share, ms in ((1, 60), (5, 30), (5, 60), (20, 60))
]
FALLS = [
    rate_change("50 to 5 Mbit/s, 1 BDP", 0.1, 1, quick=True),
    rate_change("50 to 5 Mbit/s, 4 BDP", 0.1, 4, quick=True),
    rate_change("50 to 25 Mbit/s, 1 BDP", 0.5, 1),
    rate_change("50 to 25 Mbit/s, 16 BDP", 0.5, 16),
]
GEO = [
    alone(
        f"50 Mbit/s, 600 ms, {bdp:g} BDP, loss {loss} %",
        quick=bdp == 0.5,
        only_sim=_LONG,
        rtt=600,
        bdp=bdp,
        seconds=90,
        after=30,
        path={"loss": f"{loss} %"},
        lasting=True,
    )
    for bdp in (0.5, 1)
    for loss in (0, 0.05)
] + [Scene("10 MB over 600 ms", _transfer, quick=True, only_sim=_LONG)]
STANDING = [
    alone(
        f"20 Mbit/s, {counted(count, 'flow')}, {bdp} BDP",
        quick=count == 4 and bdp in (1, 16),
        only_sim=_LONG if bdp == 500 else "",
        count=count,
        rate=20,
        bdp=bdp,
        seconds=40,
        after=20,
    )
    for count in (1, 4)
    # The last are the 20 s of buffer of C4's tests.
    for bdp in (1, 4, 16, 500)
]
SHARED = [
    *(alone(f"{count} flows", quick=count in (2, 10), count=count, seconds=40) for count in (2, 4, 10, 50)),
    Scene("a third flow comes late", _late, quick=True),
]
SLOW = [
    alone(
        f"100 kbit/s, 300 ms, {counted(count, 'flow')}",
        quick=count == 3,
        count=count,
        rate=0.1,
        rtt=300,
        seconds=120,
        after=30,
        path={"buffer": "10 packets"},
        hosts={"mtu": 1280},
    )
    for count in (1, 3)
]
MISBEHAVING = [
    Scene("beside 10 of 20 Mbit/s that do not react", _fixed, quick=True),
    Scene("beside pulses of 200 KB", _pulses),
    alone("1 % of packets twice", rate=20, path={"after": [{"kind": "duplicate", "probability": "1 %"}]}),
]
_LIES = "only the simulator's receivers lie"
LYING = [
    beside(
        "its receiver hides loss, beside 1 cubic",
        quick=True,
        only_sim=_LIES,
        victim="cubic",
        lie="hides_loss",
    ),
    beside("its receiver splits ACKs, beside 1 cubic", only_sim=_LIES, victim="cubic", lie="splits_acks"),
    beside(
        "its receiver hides marks, codel, beside 1 cubic",
        quick=True,
        only_sim=_LIES,
        victim="cubic",
        lie="hides_ce",
        ecn=True,
        rtt=20,
        path={"queue": "codel"},
    ),
]
OUTAGES = [
    outage("outage of 0.2 s", 0.2),
    outage("outage of 2 s", 2, quick=True),
    outage("outage of 10 s", 10),
]
RISES = [
    rate_change("5 to 50 Mbit/s, 1 BDP", 10, 1, quick=True, rate=5),
    Scene("LEO: 30 or 55 ms, loss each 15 s", _leo, quick=True),
]
