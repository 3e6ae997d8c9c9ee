"""The paths that cases share. All have 40 ms; a course that is not changed has 20 Mbit/s, a BDP of 100 KB.

The rates are low, so that a program in any language can use them on a machine that also carries the path,
and the times short, so that all runs take minutes.
"""

from fullpipe.conformance.programs.case import Course

MBPS, MS = 20.0, 40.0
# When something changes, so that every start is over.
CHANGE_S = 8.0

CLEAN = Course("clean", MBPS, MS, bdps=1, lasts_s=15)
DEEP = Course("deep-buffer", MBPS, MS, bdps=8, lasts_s=25)
SHALLOW = Course("shallow-buffer", MBPS, MS, bdps=0.25, lasts_s=15)
OVERFLOWS = Course("buffer-of-2-bdp", MBPS, MS, bdps=2, lasts_s=25)
RANDOM_LOSS = Course("random-loss", MBPS, MS, bdps=1, lasts_s=15, path={"loss": "1 %"})
ACK_LOSS = Course("ack-loss", MBPS, MS, bdps=1, lasts_s=15, path={"reverse": {"loss": "10 %"}})
DOUBLES = Course(
    "rate-doubles",
    MBPS / 2,
    MS,
    bdps=1,
    lasts_s=20,
    path={"changes": [{"at": f"{CHANGE_S:g} s", "rate": f"{MBPS:g} Mbit/s"}]},
    marks=((CHANGE_S, f"rate {MBPS:g} Mbit/s"),),
)
_HALF = {"changes": [{"at": f"{CHANGE_S:g} s", "rate": f"{MBPS / 2:g} Mbit/s"}]}
_HALVED = ((CHANGE_S, f"rate {MBPS / 2:g} Mbit/s"),)
HALVES = Course("rate-halves", MBPS, MS, bdps=1, lasts_s=16, path=_HALF, marks=_HALVED)
HALVES_DEEP = Course("rate-halves-deep", MBPS, MS, bdps=4, lasts_s=22, path=_HALF, marks=_HALVED)
OUTAGE_S = (6.0, 9.0)
OUTAGE = Course(
    "outage",
    MBPS,
    MS,
    bdps=1,
    lasts_s=20,
    path={
        "changes": [
            {"at": f"{OUTAGE_S[0]:g} s", "loss": "100 %"},
            {"at": f"{OUTAGE_S[1]:g} s", "loss": "0 %"},
        ]
    },
    marks=((OUTAGE_S[0], "every packet is lost"), (OUTAGE_S[1], "no packet is lost")),
)
BESIDE_CUBIC = Course(
    "beside-cubic",
    MBPS,
    MS,
    bdps=2,
    lasts_s=30,
    beside_cubic=True,
)
TWO_OF_A_KIND = Course("two-of-a-kind", MBPS, MS, bdps=2, lasts_s=30, twins=True)
