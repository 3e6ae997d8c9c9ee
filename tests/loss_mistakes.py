"""A loss-based controller in Python, by the RFCs, with one mistake of its own choice.

It has no PRR and, but for some mistakes, no pacing and no HyStart++.
"""

import math

import fullpipe as fp
from fullpipe import _native

C = 0.4
INFINITE = 1e9


class Window(fp.Controller):
    """What Reno and CUBIC have in common: slow start, reductions, and how they are undone."""

    beta = 0.5

    def __init__(self, mistake: str = "") -> None:
        self.mistake = mistake
        # Else its own bursts are queues, which slow start would see.
        self.paced = mistake.startswith("css")
        self.cwnd = 30.0 if mistake == "large-start" else 10.0
        self.ssthresh: float | None = None
        self.saved: tuple[float, float | None] | None = None
        self.max_flight = 0
        self.reductions = self.lost = self.high = 0
        self.last_ack_s = -1.0
        self.least_rtt_s = math.inf
        self.conservative = False

    # ---- growth ----

    def on_ack(self, ack: _native.Ack) -> None:
        self.max_flight = max(self.max_flight, ack.max_packets_out, ack.prior_in_flight)
        self.watch_rtt(ack)
        if ack.connection.state in ("recovery", "cwr"):
            if self.mistake == "grows-in-recovery":
                self.cwnd += ack.newly_delivered / 4
            return
        acked = self.counted(ack)
        if not self.is_used(ack):
            self.pause(ack)
            return
        if self.ssthresh is None or self.cwnd < self.ssthresh:
            self.slow_start(acked)
        else:
            self.avoid(ack, acked)

    def counted(self, ack: _native.Ack) -> float:
        """The packets by which the window may grow."""
        first, self.last_ack_s = ack.now_s > self.last_ack_s, ack.now_s
        if self.mistake == "first-of-a-batch" and not first:
            return 0
        return min(ack.newly_delivered, 1) if self.mistake == "counts-acks" else ack.newly_delivered

    def is_used(self, ack: _native.Ack) -> bool:
        if self.mistake == "unused-grows":
            return True
        if self.mistake == "paced-is-unused":
            return ack.prior_in_flight >= int(self.cwnd)
        return ack.cwnd_limited

    def slow_start(self, acked: float) -> None:
        growth = acked / 2 if self.mistake == "half-pace" else acked
        if self.conservative:
            growth = acked / (2 if self.mistake == "css-twice" else 4)
        grown = self.cwnd + growth
        limits = [] if self.mistake == "unused-grows" else [2.0 * self.max_flight]
        if self.ssthresh is not None and self.mistake != "beyond-threshold":
            limits.append(self.ssthresh)
        self.cwnd = max(self.cwnd, min([grown, *limits]))

    def watch_rtt(self, ack: _native.Ack) -> None:
        """The mistakes of HyStart++."""
        if ack.rtt_s is None or (self.ssthresh is not None and self.mistake != "css-again"):
            return
        self.least_rtt_s = min(self.least_rtt_s, ack.rtt_s)
        least_s = {"leaves-by-a-spike": 0.002, "css-by-an-eighth": self.least_rtt_s / 8}
        risen = ack.rtt_s - self.least_rtt_s > least_s.get(self.mistake, 0.004)
        self.high = self.high + 1 if risen else 0
        # One RTT may be that of a delayed ACK.
        if self.high < (1 if self.mistake == "leaves-by-a-spike" else 8):
            return
        self.conservative = self.mistake.startswith("css")
        if self.mistake in ("leaves-by-a-spike", "exit-without-maximum"):
            self.ssthresh = self.cwnd
            self.left_slow_start()

    def left_slow_start(self) -> None: ...
    def pause(self, ack: _native.Ack) -> None: ...

    def avoid(self, ack: _native.Ack, acked: float) -> None:
        """Congestion avoidance of Reno."""
        if self.mistake == "integers":
            self.cwnd += 1448 // int(self.cwnd) * acked / 1448
        else:
            self.cwnd += acked / self.cwnd

    def on_transmit_start(self, start: _native.TransmitStart) -> None:
        if self.mistake == "grows-in-a-pause":
            self.cwnd *= 1.5

    # ---- reductions ----

    def on_lost(self, lost: _native.Lost) -> None:
        self.lost += lost.segments
        if self.mistake == "cuts-each-loss" and self.saved is not None:
            self.reduce()

    def on_ce(self, marks: _native.CeMarks) -> None:
        if self.mistake == "cuts-each-echo" and marks.echoed:
            self.reduce()

    def on_state(self, change: _native.StateChange) -> None:
        if change.to == "open" and self.mistake == "few-are-spurious" and self.lost < 5:
            self.restore()
        if change.to == "open":
            self.lost = 0
        if change.to == "loss":
            self.on_timeout(change.reduce)
        elif change.reduce and not (change.to == "cwr" and self.mistake == "ignores-marks"):
            self.saved = None if change.to == "cwr" else (self.cwnd, self.ssthresh)
            if self.mistake != "cuts-once" or self.reductions == 0:
                self.reduce()
            self.saved = self.saved or (self.cwnd, self.ssthresh)

    def on_timeout(self, first: bool) -> None:
        if self.mistake == "no-collapse":
            if first:
                self.reduce()
            return
        if first or self.mistake == "cuts-each-timeout":
            if first:
                self.saved = (self.cwnd, self.ssthresh)
            self.ssthresh = max((self.cwnd if first else self.ssthresh or 0) * self.beta, 2)
        if self.mistake == "stays-at-the-floor":
            self.ssthresh = 2
        if first:
            self.collapsed()
        self.cwnd = 1

    def collapsed(self) -> None: ...

    def reduce(self) -> None:
        self.reductions += 1
        self.cwnd = self.cwnd * self.beta
        if self.mistake != "no-floor":
            self.cwnd = max(self.cwnd, 2)
        self.ssthresh = self.cwnd
        self.max_flight = 0

    def on_undo(self, undo: _native.Undo) -> None:
        if self.mistake != "no-undo":
            self.restore()

    def restore(self) -> None:
        if self.saved is not None:
            self.cwnd = max(self.cwnd, self.saved[0])
            self.ssthresh = self.saved[1]


class Reno(Window):
    """Reno."""


class Cubic(Window):
    """CUBIC."""

    beta = 0.7

    def __init__(self, mistake: str = "") -> None:
        super().__init__(mistake)
        self.w_max = self.k = self.w_est = self.prior = 0.0
        self.kept = (0.0, 0.0)
        self.begun_s: float | None = None
        self.paused_s = self.now_s = 0.0

    def reduce(self) -> None:
        self.kept = (self.w_max, self.prior)
        last = self.w_max
        converges = self.cwnd < last or self.mistake == "always-converges"
        self.prior = self.cwnd
        self.w_max = self.cwnd * (1 + self.beta) / 2 if converges else self.cwnd
        super().reduce()
        aim = last if self.mistake == "falls-to-the-curve" and converges else self.w_max
        height = self.beta * aim if self.mistake == "k-from-beta" else aim - self.cwnd
        self.k = (max(height, 0) / C) ** (1 / 3)
        self.begun_s = None

    def collapsed(self) -> None:
        self.prior = self.cwnd
        self.w_max = self.ssthresh or 0
        self.k, self.begun_s = 0, None

    def left_slow_start(self) -> None:
        self.w_max = INFINITE
        self.k, self.begun_s = 1, None

    def restore(self) -> None:
        super().restore()
        self.w_max, self.k, self.begun_s = self.cwnd, 0, None
        self.prior = self.kept[1]

    def pause(self, ack: _native.Ack) -> None:
        if self.begun_s is not None and self.mistake != "time-runs-on":
            self.begun_s += ack.now_s - self.now_s
        self.now_s = ack.now_s

    def on_transmit_start(self, start: _native.TransmitStart) -> None:
        super().on_transmit_start(start)
        if self.begun_s is not None and self.mistake != "time-runs-on":
            self.begun_s += start.connection.now_s - self.now_s
        self.now_s = start.connection.now_s

    def avoid(self, ack: _native.Ack, acked: float) -> None:
        self.now_s = ack.now_s
        if self.begun_s is None:
            self.begun_s, self.w_est = ack.now_s, self.cwnd
            self.w_max = max(self.w_max, self.cwnd)
        elapsed_s = ack.now_s - self.begun_s
        below = self.w_est < self.prior
        self.w_est += (3 * (1 - self.beta) / (1 + self.beta) if below else 1.0) * acked / self.cwnd
        if self.mistake == "falls-to-the-curve":
            self.cwnd = max(2, self.curve(elapsed_s))
        elif self.curve(elapsed_s) < self.w_est:
            self.cwnd = max(self.cwnd, self.w_est)
        else:
            target = self.curve(elapsed_s + (ack.connection.srtt_s or 0))
            most = INFINITE if self.mistake == "no-cap" else 1.5 * self.cwnd
            self.cwnd += (min(max(target, self.cwnd), most) - self.cwnd) / self.cwnd * acked

    def curve(self, seconds: float) -> float:
        return float(C * (seconds - self.k) ** 3 + self.w_max)
