"""Draws figures, in a process of its own: the renderer keeps Python's lock while it works.

Input: blobs on stdin, each a Vega-Lite specification as JSON. Output: for each, two blobs on stdout: why
there is no figure, or nothing; and the figure as SVG. A blob is its length in 8 bytes, big endian, and its
bytes. This process ends with its input.
"""

import os
import sys
from struct import Struct

LENGTH = Struct(">Q")


def main() -> None:
    """Draws until the input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # Any other output must not end up between the blobs.
    import vl_convert

    # The first figure takes half a second longer, which passes while that one is prepared.
    vl_convert.vegalite_to_svg('{"mark": "point", "data": {"values": []}}')
    while head := sys.stdin.buffer.read(LENGTH.size):
        spec = sys.stdin.buffer.read(LENGTH.unpack(head)[0]).decode()
        why = svg = ""
        try:
            svg = vl_convert.vegalite_to_svg(spec)
        # A panic of the renderer is no `Exception`.
        except BaseException as error:
            why = str(error) or type(error).__name__
        for text in (why, svg):
            data = text.encode(errors="replace")
            answers.write(LENGTH.pack(len(data)) + data)
        answers.flush()


if __name__ == "__main__":
    main()
