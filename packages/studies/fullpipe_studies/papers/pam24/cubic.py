"""BBRv3 leaves CUBIC little room.

Question: what does BBRv3 leave to CUBIC with the same RTT?
Method: one flow of each for 120 s on 100 Mbit/s, 50 ms with buffers of 0.5 to 16 BDP; shares in the second
half. BBRv1 for comparison. The same criteria apply to Google's BBRv3, which the paper measured, and to the
draft's.
Prediction: little or nothing, in every buffer.

The abstract says "little to no room" without a number or a buffer. Ours: CUBIC has under a half in every
buffer of up to 8 BDP (direction), and at most 20 % on average over them. With 16 BDP nothing is judged.
"""

from typing import Any

from fullpipe_studies import charts, layers, sharing
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial
from fullpipe_studies.later import alt
from fullpipe_studies.papers.pam24 import _path

_BUFFERS_BDP = (0.5, 1, 2, 4, 8, 16)
_JUDGED_BDP = 8
_SAID = Statement("little to no room for Cubic flows to co-exist even if flow RTTs are similar")


def _document(controller: str, buffer_bdp: float, seconds: int) -> dict[str, Any]:
    flows = [{"controller": controller, "label": "bbr"}, {"controller": "cubic", "label": "cubic"}]
    return _path.document(flows, buffer_bdp, seconds)


def measure(trial: Trial) -> Row:
    by_flow = sharing.rates(trial.run, trial.factors["seconds"] / 2)
    return {"cubic_share": sharing.share(by_flow, "cubic"), "bbr_share": sharing.share(by_flow, "bbr")}


def figure(data: Data) -> "alt.TopLevelMixin":
    frame = charts.means(data, ["controller", "buffer_bdp"], "cubic_share")

    def panel(part: Data) -> Any:
        ours = layers.of(frame, part)
        x = alt.X("buffer_bdp:Q", title="buffer, BDP", scale=alt.Scale(type="log", base=2))
        points = charts.points(ours, x, "share of CUBIC", charts.controllers(ours), domain=[0, 1])
        return alt.layer(layers.level(0.5), points).properties(width=charts.WIDTH, height=charts.HEIGHT)

    return charts.worlds(
        data, panel, "What BBR leaves to CUBIC", "100 Mbit/s, 50 ms, one flow of each; dashed: a fair share"
    )


def judge(data: Data) -> list[Check]:
    judged = [one for one in sorted(data.runs["buffer_bdp"].unique().to_list()) if one <= _JUDGED_BDP]

    checks = []
    for name in _path.VARIANTS:
        for one in judged:
            ours, cubic = (
                data.values(column, controller=name, buffer_bdp=one)
                for column in ("bbr_share", "cubic_share")
            )
            checks.append(
                _SAID.more(f"{name}'s share divided by CUBIC's, {one:g} BDP (direction)", ours, cubic)
            )
        every = data.values("cubic_share", controller=name, buffer_bdp=tuple(judged))
        checks.append(_SAID.within(f"CUBIC's share beside {name}, on average", every, least=0, most=0.2))
    return checks


def explain(data: Data) -> list[str]:
    return _path.reported(data, "cubic_share", "CUBIC")


CLAIM = Claim(
    source="abstract",
    says="We observe that BBRv3 struggles to co-exist with loss-based CCAs such as Cubic; it offers little "
    "to no room for Cubic flows to co-exist even if flow RTTs are similar.",
    worlds=("sim", "kernel"),
    grid=Grid(
        factors={
            "controller": (*_path.VARIANTS, "bbr1"),
            "buffer_bdp": _BUFFERS_BDP,
            "seconds": (120,),
        },
        quick={"buffer_bdp": (0.5, 2, 8)},
        tiny={"buffer_bdp": (1,), "seconds": (6,)},
        in_wall_time={"controller": _path.VARIANTS, "buffer_bdp": (0.5, 2, 8)},
        document=_document,
    ),
    wrong=("vegas", "reno", "cubic"),
    look_at="In which buffers is the line of BBRv3 near zero?",
    about=_path.ABOUT,
    seeds=20,
)
