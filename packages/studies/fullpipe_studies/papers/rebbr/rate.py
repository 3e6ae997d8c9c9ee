"""Goodput under random loss at 1 Mbit/s.

Question: how does the rate of the bottleneck affect the comparison?
Method: the sweep of figure 4 at 1 and at 100 Mbit/s.
Prediction: the paper plans this and gives no result; the prediction is ours. A BDP of eight packets needs
no large window, so at 1 Mbit/s CUBIC's goodput falls only at a loss rate at least a hundred times higher
than at 100 Mbit/s; from there on BBR is ahead, too.
"""

from fullpipe_studies.claim import Check, Claim, Data, Statement, own
from fullpipe_studies.papers.rebbr import _sweep


def judge(data: Data) -> list[Check]:
    slow, fast = (_sweep.falls_pct(data, "cubic", rate) for rate in (1, 100))

    def at_slow(column: str, controller: str, loss: float) -> list[float]:
        return data.values(column, controller=controller, loss_pct=loss, rate_mbps=1)

    return own(
        Statement("no result; our expectation: higher").more(
            "Loss rate that halves CUBIC's goodput: at 1 Mbit/s divided by that at 100 Mbit/s (direction)",
            slow,
            fast,
            least=2,
        ),
        Statement("no result; our expectation: 100 times higher").more(
            "Loss rate that halves CUBIC's goodput: at 1 Mbit/s divided by that at 100 Mbit/s",
            slow,
            fast,
            least=30,
            shape=False,
        ),
        Statement("no result; our expectation: no effect").shape(
            "CUBIC's goodput at 0.1 % loss and 1 Mbit/s, relative to what the link can deliver",
            at_slow("of_ceiling", "cubic", 0.1),
            least=0.9,
        ),
        *(
            Statement("no result; our expectation: BBR is ahead").more(
                f"BBR's goodput divided by CUBIC's at {loss:g} % loss and 1 Mbit/s",
                at_slow("goodput_mbps", "bbr1", loss),
                at_slow("goodput_mbps", "cubic", loss),
            )
            for loss in (5, 15)
        ),
    )


CLAIM = Claim(
    source="section 3, plan",
    says="We would like to see how the total bottleneck bandwidth available affects the comparison (e.g. "
    "running on 1Mbps rather than 100Mbps).",
    grid=_sweep.grid(("bbr1", "cubic"), rates_mbps=(100, 1)),
    measure=_sweep.measure,
    figure=_sweep.figure("Goodput under random loss at 100 and at 1 Mbit/s"),
    look_at="How far to the right does CUBIC's fall move at 1 Mbit/s?",
    seeds=20,
)
