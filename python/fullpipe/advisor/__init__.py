"""Which congestion control should this path run? An answer by simulation of the path itself."""

from fullpipe.advisor.advice import BUDGET_S, Advice, advise
from fullpipe.advisor.question import Question
from fullpipe.scenario.path_fields import Range

__all__ = ["BUDGET_S", "Advice", "Question", "Range", "advise"]
