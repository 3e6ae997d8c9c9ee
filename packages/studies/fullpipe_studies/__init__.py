"""The papers' figures and tables, each claim reproduced by one command: `fullpipe study run PAPER.CLAIM`.

A paper is a package in `papers`, with a docstring (Question, Method, Prediction) and `PAPER`. A claim is a
file in the package, which is found by itself. To add one, write `papers/PAPER/CLAIM.py` and change nothing
else:

    \"\"\"Goodput under random loss.

    Question: how much random loss can each bear?
    Method: one flow for 60 s on 100 Mbit/s, 100 ms, with random loss of 0.001 to 50 %.
    Prediction: CUBIC gives way at 0.1 %, BBR keeps the link's rate up to 5 %.
    \"\"\"

    CLAIM = Claim(
        source="figure 8",
        says="CUBIC's throughput decreases by 10 times at 0.1 percent loss ...",
        worlds=("sim", "kernel"),  # ("sim",) without it
        grid=Grid(
            factors={"controller": ("bbr1", "cubic"), "loss_pct": (0.001, 0.1, 10)},
            quick={"loss_pct": (0.001, 10)},        # --quick; tiny: in the test suite
            tiny={"loss_pct": (10,)},
            document=lambda controller, loss_pct: {...},  # a scenario, as in TOML
        ),
        look_at="Look for ...",
    )

The rest are functions of the file, found by their names: `measure` (a run and its factors -> a row of plain
values, or several), `figure` (the data -> an altair chart), `judge` (the data of one world -> checks) and,
where it has them, `series` (a run -> time series for the figure), `explain` and `texts`. A claim here takes
`alt` from `later`, which spares `study list` the import of altair.

`claim` has these types, `take` measures that claims share, `charts` parts of figures.
A judge compares values of runs with each `Statement` of the paper (`checks`); the checks decide the
verdict, by one rule, which `README.md` here explains. Limits are set from the paper's words before looking at
results, and are not adjusted to fit them. A claim whose scenarios need something that is not built yet names
it in `needs` and waits, and so does one about a controller that is not run yet (`about`). `claims.toml` has
the order of claims, and those not built yet; a claim that is missing there comes last.

`test_studies.py` runs every claim in its tiny form and gives each judge data that must fail. A paper may also
be a package of its own, outside Fullpipe: see `README.md` here.
"""

from types import ModuleType


def register(package: ModuleType | str) -> None:
    """Adds a paper that is a package outside Fullpipe, or the name of one, to those of this process."""
    from fullpipe_studies import catalogue

    catalogue.register(package)
