"""Which congestion control should this path run? An answer by simulation of the path itself."""

from fullpipe.advise.advice import BUDGET_S, Advice, advise
from fullpipe.advise.question import Question, Range

__all__ = ["BUDGET_S", "Advice", "Question", "Range", "advise"]
