"""Goodput under random loss: Vegas and NewReno added.

Question: does only CUBIC lose goodput under random loss, or every algorithm that takes loss as a sign of
congestion?
Method: the sweep of figure 4 with Vegas and NewReno (our Reno, which recovers with SACK).
Prediction: the paper plans this and gives no result; the prediction is ours. NewReno's goodput falls at no
higher loss than CUBIC's, because CUBIC's window recovers faster on a path of this length. Vegas measures
delay but still halves on loss, so its goodput falls, too.
"""

from fullpipe_studies.claim import Check, Claim, Data, Statement, own
from fullpipe_studies.papers.rebbr import _sweep


def judge(data: Data) -> list[Check]:
    def goodput(controller: str, loss: float) -> list[float]:
        return data.values("goodput_mbps", controller=controller, loss_pct=loss)

    return own(
        Statement("no result; our expectation: falls").more(
            "NewReno's goodput at 0.001 % loss divided by that at 0.1 %",
            goodput("reno", 0.001),
            goodput("reno", 0.1),
            least=2,
        ),
        *(
            Statement("no result; our expectation: BBR keeps the rate").more(
                f"BBR's goodput divided by NewReno's at {loss:g} % loss",
                goodput("bbr1", loss),
                goodput("reno", loss),
                least=5,
            )
            for loss in (0.1, 1, 5)
        ),
        *(
            Statement("no result; our expectation: CUBIC falls no earlier").more(
                f"CUBIC's goodput divided by NewReno's at {loss:g} % loss",
                goodput("cubic", loss),
                goodput("reno", loss),
                # Where both are at TCP's lowest rate, the seeds decide; a difference of a tenth is noise.
                least=0.9,
            )
            for loss in (0.01, 0.1, 1)
        ),
        Statement("no result; our expectation: falls").more(
            "Vegas' goodput at 0.001 % loss divided by that at 1 %",
            goodput("vegas", 0.001),
            goodput("vegas", 1),
            least=2,
        ),
        *(
            Statement("no result; our expectation: BBR keeps the rate").more(
                f"BBR's goodput divided by Vegas' at {loss:g} % loss",
                goodput("bbr1", loss),
                goodput("vegas", loss),
                least=5,
            )
            for loss in (1, 5)
        ),
    )


CLAIM = Claim(
    source="section 3, plan",
    says="We would like to see how BBR compares to other TCP congestion control algorithms such as TCP VEGAS "
    "or TCP NewReno.",
    grid=_sweep.grid(("bbr1", "cubic", "reno", "vegas")),
    measure=_sweep.measure,
    figure=_sweep.figure("Goodput under random loss: four controllers"),
    look_at="Which lines fall together, and is Vegas among them?",
    seeds=20,
)
