// Where the packets are: in the queue, on their way to the receiver, or, as ACKs, on their way back.
//
// The engine says after each step how many segments each flow has sent, what the queue has dropped and what waits in it. So the n-th
// packet that the queue took is known to wait while fewer than n have left; and when the n-th has left, it is on its way for the
// one-way delay, and its ACK as long. Where a step is longer than a packet, it left at an even pace within it.
//
// A dot is every `each`-th packet. Which ones: those with n = id * each + `phase`. At high speed the pipe's content changes completely
// between two frames; `phase` then follows, so that the dots move no faster than an eye can. How many there are in each place, and of
// which flow, stays true.

import type { Step } from "../../engine/protocol";

interface Moment {
  at_s: number;
  /** How many packets the queue had taken and how many had left it. */
  taken: number;
  left: number;
  /** How many segments each flow had sent. */
  sent: number[];
}

export interface Dot {
  flow: number;
  /** Stays the same while the dot moves. */
  id: number;
  /** In the queue: which one in its row, from the link's side, counted in dots. On the way: 0 at the link, 1 at the receiver, 2 back. */
  at: number;
}

export interface Scene {
  /** How many packets a dot stands for. */
  each: number;
  queue: Dot[];
  way: Dot[];
  /** Packets dropped and marked by the queue since the scene before. */
  dropped: number;
  marked: number;
  /** How many times slower than true the dots move; 1 if they do not. */
  slowed: number;
}

/** How many dots fit in the pipe and its way back, and in the queue. */
const MOST_DOTS = 260;
/** A dot needs at least this long from the link to the receiver, in seconds of the eye. */
const SHORTEST_WAY_S = 1.4;
/** More moments than this are thinned out from the oldest. */
const MOST_MOMENTS = 4000;

export class Flight {
  #moments: Moment[] = [];
  #phase = 0;
  #each = 1;
  #drawn_left = 0;
  #dropped = 0;
  #marked = 0;
  #seen = { dropped: 0, marked: 0 };
  #slowed = 1;

  constructor(private readonly mss_bytes: number) {}

  /** What a step says. `queue` is the index of the bottleneck's. */
  add(step: Step, queue: number): void {
    const sent = step.flows.map(({ segments_sent }) => segments_sent);
    const at = step.queues[queue];
    const last = this.#moments.at(-1);
    const dropped = at?.dropped_packets ?? 0;
    const taken = Math.max(sent.reduce((sum, one) => sum + one, 0) - dropped, last?.taken ?? 0);
    // What waits is in bytes, and the last packet may be short.
    const left = Math.min(Math.max(taken - (at?.backlog_bytes ?? 0) / this.mss_bytes, last?.left ?? 0), taken);
    this.#seen = { dropped, marked: at?.marked_packets ?? 0 };
    if (last !== undefined && last.at_s >= step.now_s) this.#moments.pop();
    this.#moments.push({ at_s: step.now_s, taken, left, sent });
    if (this.#moments.length > MOST_MOMENTS) this.#moments.splice(0, MOST_MOMENTS / 4);
  }

  /** The dots now. `passed_s` is how long ago the scene before was drawn, for the eye; `delay_s` the one-way delay of the path. */
  scene(delay_s: number, passed_s: number): Scene {
    const now = this.#moments.at(-1);
    const counts = { dropped: this.#seen.dropped - this.#dropped, marked: this.#seen.marked - this.#marked };
    this.#dropped = this.#seen.dropped;
    this.#marked = this.#seen.marked;
    if (now === undefined) return { each: 1, queue: [], way: [], slowed: 1, ...counts };
    const oldest = this.#leftAt(now.at_s - 2 * delay_s);
    const shown = now.taken - oldest;
    this.#choose(shown);
    this.#follow(now, delay_s, passed_s);
    const queue: Dot[] = [];
    const way: Dot[] = [];
    const each = this.#each;
    const last = Math.floor((now.taken - this.#phase) / each);
    for (let id = last; ; id -= 1) {
      const n = id * each + this.#phase;
      if (n <= oldest || n <= 0) break;
      if (n > now.left) queue.push({ id, flow: this.#flowOf(n, id), at: (n - now.left) / each });
      else {
        const at = delay_s > 0 ? (now.at_s - this.#leftWhen(n)) / delay_s : 2;
        if (at > 2) break;
        way.push({ id, flow: this.#flowOf(n, id), at });
      }
    }
    return { each, queue, way, slowed: this.#slowed, ...counts };
  }

  /** One dot for 1, 2, 5, 10, … packets; with some slack, so that it does not flutter between two of them. */
  #choose(shown: number): void {
    const fits = (each: number, most: number) => shown / each <= most;
    if (fits(this.#each, MOST_DOTS) && (this.#each === 1 || !fits(this.#each / 2.5, MOST_DOTS * 0.8))) return;
    let each = 1;
    for (let step = 0; !fits(each, MOST_DOTS); step += 1) each *= step % 3 === 1 ? 2.5 : 2;
    this.#each = each;
  }

  /** Lets the dots follow what moves too fast to be seen. */
  #follow(now: Moment, delay_s: number, passed_s: number): void {
    const moved = now.left - this.#drawn_left;
    this.#drawn_left = now.left;
    const inPipe = now.left - this.#leftAt(now.at_s - delay_s);
    const most = Math.max((inPipe / SHORTEST_WAY_S) * Math.min(passed_s, 0.1), this.#each * 0.02);
    if (moved > most) this.#phase += moved - most;
    const slowed = moved > most && passed_s > 0 ? moved / most : 1;
    this.#slowed += 0.15 * (slowed - this.#slowed);
  }

  /** How many packets had left the queue at a time. */
  #leftAt(at_s: number): number {
    const [before, after] = this.#around((moment) => moment.at_s <= at_s);
    if (before === undefined) return 0;
    if (after === undefined || after.at_s === before.at_s) return before.left;
    return before.left + ((after.left - before.left) * (at_s - before.at_s)) / (after.at_s - before.at_s);
  }

  /** When the n-th packet left the queue. */
  #leftWhen(n: number): number {
    const [before, after] = this.#around((moment) => moment.left < n);
    if (after === undefined) return before?.at_s ?? 0;
    if (before === undefined) return after.at_s;
    return before.at_s + ((after.at_s - before.at_s) * (n - before.left)) / (after.left - before.left);
  }

  /** Of which flow the n-th packet is: by the shares of what was sent in its step. */
  #flowOf(n: number, id: number): number {
    const [before, after] = this.#around((moment) => moment.taken < n);
    const sent = (after ?? before)?.sent ?? [];
    const grown = sent.map((count, flow) => Math.max(count - (after === undefined ? 0 : (before?.sent[flow] ?? 0)), 0));
    const all = grown.reduce((sum, one) => sum + one, 0);
    // The golden ratio's multiples are spread evenly: neighbours are mixed as the shares are.
    let point = ((((id * 0.618_033_988_75) % 1) + 1) % 1) * all;
    for (const [flow, count] of grown.entries()) {
      point -= count;
      if (point < 0) return flow;
    }
    return 0;
  }

  /** The last moment for which `is` holds, and the one after; it holds from the first moment up to some. */
  #around(is: (moment: Moment) => boolean): [Moment | undefined, Moment | undefined] {
    let low = 0;
    let high = this.#moments.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const moment = this.#moments[middle];
      if (moment !== undefined && is(moment)) low = middle + 1;
      else high = middle;
    }
    return [this.#moments[low - 1], this.#moments[low]];
  }
}
