"""The same with Vegas and NewReno added.

Question: is it CUBIC that gives way under loss, or every algorithm that takes loss for congestion?
Method: the sweep of figure 4 with Vegas and NewReno (our Reno, which recovers with SACK).
Prediction: The paper plans this and gives no result; the prediction is ours. NewReno gives way no later than
CUBIC, whose window grows back faster on a path of this length. Vegas, which watches delay but still halves on
loss, gives way too.
"""

from fullpipe.studies.claim import Check, Claim, Data, more
from fullpipe.studies.rebbr import _sweep


def _judge(data: Data) -> list[Check]:
    def goodput(controller: str, loss: float) -> list[float]:
        return data.values("goodput_mbps", controller=controller, loss_pct=loss)

    return [
        more(
            "NewReno at 0.001 % over NewReno at 0.1 %",
            goodput("reno", 0.001),
            goodput("reno", 0.1),
            paper="to be compared; ours: gives way",
            least=2,
        ),
        *(
            more(
                f"BBR over NewReno at {loss:g} %",
                goodput("bbr1", loss),
                goodput("reno", loss),
                paper="to be compared; ours: BBR keeps the rate",
                least=5,
            )
            for loss in (0.1, 1, 5)
        ),
        *(
            more(
                f"CUBIC over NewReno at {loss:g} %",
                goodput("cubic", loss),
                goodput("reno", loss),
                paper="to be compared; ours: CUBIC no earlier",
                # Where both are at TCP's least rate, seeds decide; one in ten is no difference.
                least=0.9,
            )
            for loss in (0.01, 0.1, 1)
        ),
        more(
            "Vegas at 0.001 % over Vegas at 1 %",
            goodput("vegas", 0.001),
            goodput("vegas", 1),
            paper="to be compared; ours: gives way",
            least=2,
        ),
        *(
            more(
                f"BBR over Vegas at {loss:g} %",
                goodput("bbr1", loss),
                goodput("vegas", loss),
                paper="to be compared; ours: BBR keeps the rate",
                least=5,
            )
            for loss in (1, 5)
        ),
    ]


CLAIM = Claim(
    source="section 3, plan",
    says="We would like to see how BBR compares to other TCP congestion control algorithms such as TCP VEGAS "
    "or TCP NewReno.",
    worlds=("sim",),
    grid=_sweep.grid(("bbr1", "cubic", "reno", "vegas")),
    measure=_sweep.measure,
    figure=_sweep.figure("Goodput under random loss: BBR, CUBIC, NewReno and Vegas"),
    judge=_judge,
    look_at="Look for the lines that fall together, and whether Vegas is among them.",
    seeds=5,
    quick_seeds=1,
)
