"""The same sweep at 1 Mbit/s.

Question: how does the rate of the bottleneck affect the comparison?
Method: the sweep of figure 4 at 1 and at 100 Mbit/s.
Prediction: The paper plans this and gives no result; the prediction is ours. A pipe of eight packets needs no
large window, so CUBIC gives way at 1 Mbit/s only at a loss a hundred times higher than at 100 Mbit/s or more;
BBR is ahead there too, from then on.
"""

from fullpipe.studies.claim import Check, Claim, Data, more, within
from fullpipe.studies.rebbr import _sweep


def _judge(data: Data) -> list[Check]:
    slow, fast = (_sweep.falls_pct(data, "cubic", rate) for rate in (1, 100))

    def at_slow(column: str, controller: str, loss: float) -> list[float]:
        return data.values(column, controller=controller, loss_pct=loss, rate_mbps=1)

    return [
        more(
            "Loss at which CUBIC has half the rate: at 1 Mbit/s over that at 100 Mbit/s, direction",
            slow,
            fast,
            paper="to be compared; ours: later",
            least=2,
        ),
        more(
            "Loss at which CUBIC has half the rate: at 1 Mbit/s over that at 100 Mbit/s",
            slow,
            fast,
            paper="to be compared; ours: 100 times later",
            least=30,
            shape=False,
        ),
        within(
            "CUBIC at 0.1 %, 1 Mbit/s, over its ceiling",
            at_slow("of_ceiling", "cubic", 0.1),
            paper="to be compared; ours: no effect",
            least=0.9,
            shape=True,
        ),
        *(
            more(
                f"BBR over CUBIC at {loss:g} %, 1 Mbit/s",
                at_slow("goodput_mbps", "bbr1", loss),
                at_slow("goodput_mbps", "cubic", loss),
                paper="to be compared; ours: BBR is ahead",
            )
            for loss in (5, 15)
        ),
    ]


CLAIM = Claim(
    source="section 3, plan",
    says="We would like to see how the total bottleneck bandwidth available affects the comparison (e.g. "
    "running on 1Mbps rather than 100Mbps).",
    worlds=("sim",),
    grid=_sweep.grid(("bbr1", "cubic"), rates_mbps=(100, 1)),
    measure=_sweep.measure,
    figure=_sweep.figure("Goodput under random loss at 100 and at 1 Mbit/s"),
    judge=_judge,
    look_at="Look for how far to the right CUBIC's fall moves.",
    seeds=5,
    quick_seeds=1,
)
