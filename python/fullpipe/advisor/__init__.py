"""Which congestion control should this path run? An answer by simulation of the path itself.

What it is made of is imported when it is used: the options of commands need the names of goals alone.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    from fullpipe.advisor.advice import Advice as Advice
    from fullpipe.advisor.advice import advise as advise
    from fullpipe.advisor.question import Question as Question

_HOME = {"Advice": "advice", "advise": "advice", "Question": "question"}


def __getattr__(name: str) -> "Any":
    from importlib import import_module

    if name in _HOME:
        return getattr(import_module(f"fullpipe.advisor.{_HOME[name]}"), name)
    raise AttributeError(f"module 'fullpipe.advisor' has no attribute {name!r}")
