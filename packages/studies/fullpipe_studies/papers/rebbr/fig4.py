"""Goodput under random loss in an emulator.

Question: does figure 8 of the BBR article hold in an emulator?
Method: one flow for 60 s on 100 Mbit/s, 100 ms, with random loss of 0.001 to 50 % and Mahimahi's unlimited
queue.
Prediction: CUBIC performs acceptably only where loss is extremely rare, and its goodput falls from 0.01 %
on; BBR delivers a larger part of the link's rate up to 50 %.
"""

from fullpipe_studies.claim import Check, Claim, Data, Statement
from fullpipe_studies.papers.rebbr import _sweep


def judge(data: Data) -> list[Check]:
    def goodput(controller: str, loss: float) -> list[float]:
        return data.values("goodput_mbps", controller=controller, loss_pct=loss)

    return [
        Statement("deteriorates from 0.01 % on").more(
            "CUBIC's goodput at 0.001 % loss divided by that at 0.01 %",
            goodput("cubic", 0.001),
            goodput("cubic", 0.01),
        ),
        Statement("poor above 0.1 %").more(
            "CUBIC's goodput at 0.001 % loss divided by that at 0.1 %",
            goodput("cubic", 0.001),
            goodput("cubic", 0.1),
            least=2,
        ),
        Statement("acceptable only below").within(
            "CUBIC's goodput at 0.01 % loss, relative to what the link can deliver",
            data.values("of_ceiling", controller="cubic", loss_pct=0.01),
            most=0.8,
        ),
        *(
            Statement("a larger percentage up to 50 %").more(
                f"BBR's goodput divided by CUBIC's at {loss:g} % loss",
                goodput("bbr1", loss),
                goodput("cubic", loss),
            )
            for loss in (0.01, 0.1, 1, 5, 15, 50)
        ),
        Statement("claims list: keeps most of the rate to far higher loss").within(
            "BBR's goodput at 5 % loss, relative to what the link can deliver",
            data.values("of_ceiling", controller="bbr1", loss_pct=5),
            least=0.8,
        ),
    ]


CLAIM = Claim(
    source="figure 4",
    says="CUBIC only performs acceptably when the loss rate is extremely small. At loss rates of 0.01% and "
    "above, CUBIC performance deteriorates. BBR is able to deliver a larger percentage of the available "
    "throughput on loss rates as high as 50%.",
    worlds=("sim", "kernel"),
    grid=_sweep.grid(
        ("bbr1", "cubic"), in_wall_time={"loss_pct": (0.001, 0.01, 0.1, 1, 5, 15, 50), "seconds": (30,)}
    ),
    measure=_sweep.measure,
    figure=_sweep.figure("Goodput under random loss in an emulator", falls_pct=0.01),
    look_at="At which loss rate does CUBIC's line leave the top?",
    seeds=20,
)
