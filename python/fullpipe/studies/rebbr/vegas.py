"""The same with Vegas added.

Question: does an algorithm that watches delay, but still halves on loss, bear random loss better than CUBIC?
Method: the sweep of figure 4 with Vegas.
Prediction: without loss Vegas fills the link, as BBR does; it gives way to loss as Reno, which it is then.
"""

from fullpipe.studies.claim import Check, Claim, Data, more
from fullpipe.studies.rebbr import _sweep


def _judge(data: Data) -> list[Check]:
    def goodput(controller: str, loss: float) -> list[float]:
        return data.values("goodput_mbps", controller=controller, loss_pct=loss)

    return [
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
    grid=_sweep.grid(("bbr1", "cubic", "vegas")),
    measure=_sweep.measure,
    figure=_sweep.figure("Goodput under random loss: BBR, CUBIC and Vegas"),
    judge=_judge,
    look_at="Look for whether Vegas falls with CUBIC or stays with BBR.",
    needs="the vegas controller",
    seeds=5,
    quick_seeds=1,
)
