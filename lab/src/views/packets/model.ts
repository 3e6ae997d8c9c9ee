// A time-sequence graph's data: sorted columns, the range that is seen, and what is drawn of it.
//
// A screen has a thousand columns and a run a million packets. So what is drawn is decided for each column of pixels: of first
// transmissions the extent and how many, of what matters - retransmissions, drops, losses, SACKs - each place that differs by a pixel.
// Nothing that matters vanishes at any zoom.

import type { Packets, Table } from "../../engine/protocol";

/** A window of the graph: seconds across, bytes upwards. */
export interface View {
  from: number;
  to: number;
  low: number;
  high: number;
}

/** Kinds of what is drawn, in the order in which they lie above each other. */
export const KINDS = ["data", "sack", "lost", "retransmission", "timeout", "probe", "drop"] as const;
export type Kind = (typeof KINDS)[number];

export const NAMES: Record<Kind, string> = {
  data: "data",
  sack: "SACK",
  lost: "found lost",
  retransmission: "retransmission",
  timeout: "retransmission after a timeout",
  probe: "probe",
  drop: "dropped on the path",
};

/** Segments of one kind, by time. */
export interface Marks {
  time_s: Float64Array;
  start: Float64Array;
  end: Float64Array;
}

/** Steps: the ACK line and the edge of the receive window. */
export interface Steps {
  time_s: Float64Array;
  value: Float64Array;
}

/** Plain data for a view from afar: runs of consecutive segments as one. */
export interface Level {
  marks: Marks;
  /** Of how many segments one may be. */
  of: number;
}

export interface Graph {
  marks: Record<Kind, Marks>;
  /** The coarsest first. */
  levels: Level[];
  acks: Steps;
  edge: Steps;
  /** All there is. */
  whole: View;
  truncated_s: number | null;
}

function column(table: Table, name: string): Float64Array {
  return table.columns[name] ?? new Float64Array(table.rows);
}

/** The first index whose time is at least `time`. */
export function firstAt(times: Float64Array, time: number): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] ?? 0) < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

function chosen(table: Table, keep: (row: number) => boolean): Marks {
  const [time, start, end] = [column(table, "time_s"), column(table, "start_bytes"), column(table, "end_bytes")];
  const rows: number[] = [];
  let sorted = true;
  let last = -Infinity;
  for (let row = 0; row < table.rows; row += 1) {
    if (!keep(row)) continue;
    rows.push(row);
    const now = time[row] ?? 0;
    if (now < last) sorted = false;
    last = now;
  }
  if (!sorted) rows.sort((a, b) => (time[a] ?? 0) - (time[b] ?? 0));
  const pick = (values: Float64Array) => Float64Array.from(rows, (row) => values[row] ?? 0);
  return { time_s: pick(time), start: pick(start), end: pick(end) };
}

/** How many columns of pixels the widest screen has: what is together in one of them may be drawn as one. */
const WIDEST = 8192;

/** Runs of up to `of` segments that follow each other in sequence and nearly in time, each as one. */
export function coarser(marks: Marks, of: number, duration_s: number): Marks {
  const { time_s, start, end } = marks;
  const starts: number[] = [];
  const ends: number[] = [];
  let size = 0;
  for (let at = 0; at < time_s.length; at += 1) {
    const begin = starts.at(-1);
    const together =
      begin !== undefined && size < of && start[at] === end[at - 1] && (time_s[at] ?? 0) - (time_s[begin] ?? 0) < duration_s / WIDEST;
    if (together) {
      ends[ends.length - 1] = at;
      size += 1;
    } else {
      starts.push(at);
      ends.push(at);
      size = 1;
    }
  }
  return {
    time_s: Float64Array.from(starts, (at) => time_s[at] ?? 0),
    start: Float64Array.from(starts, (at) => start[at] ?? 0),
    end: Float64Array.from(ends, (at) => end[at] ?? 0),
  };
}

/** The data to draw for a window: as they are, unless more of them are in a column of pixels than can be told apart. */
export function dataFor(graph: Graph, view: View, width: number): Marks {
  const { time_s } = graph.marks.data;
  const seen = firstAt(time_s, view.to) - firstAt(time_s, view.from);
  return graph.levels.find(({ of }) => seen > 8 * of * width)?.marks ?? graph.marks.data;
}

/** Makes the graph of what the engine says of a flow. */
export function graphOf(packets: Packets, duration_s: number): Graph {
  const again = column(packets.sent, "again");
  const dropped = column(packets.sent, "dropped");
  const of = (kind: number) => chosen(packets.sent, (row) => (again[row] ?? 0) === kind);
  const all = () => true;
  const marks: Record<Kind, Marks> = {
    data: of(0),
    retransmission: of(1),
    timeout: of(2),
    probe: of(3),
    drop: chosen(packets.sent, (row) => dropped[row] === 1),
    sack: chosen(packets.sacks, all),
    lost: chosen(packets.lost, all),
  };
  let high = 0;
  for (const { end } of Object.values(marks)) for (const one of end) if (one > high) high = one;
  const time_s = column(packets.acks, "time_s");
  const whole = { from: 0, to: packets.truncated_s ?? duration_s, low: 0, high: Math.max(high, 1) * 1.04 };
  return {
    marks,
    levels: [64, 8].map((of) => ({ of, marks: coarser(marks.data, of, whole.to - whole.from) })),
    acks: { time_s, value: column(packets.acks, "ack_bytes") },
    edge: { time_s, value: column(packets.acks, "edge_bytes") },
    whole,
    truncated_s: packets.truncated_s,
  };
}

/**
 * What is drawn of marks: for each, the column of pixels, and the rows from bottom to top. `count` says how many marks are in it.
 * Filled into arrays that are used again, so that a frame allocates nothing.
 */
export class Drawn {
  x = new Int32Array(4096);
  low = new Float32Array(4096);
  high = new Float32Array(4096);
  count = 0;

  clear(): void {
    this.count = 0;
  }

  add(x: number, low: number, high: number): void {
    if (this.count === this.x.length) {
      const grown = <T extends Int32Array | Float32Array>(old: T, fresh: T) => {
        fresh.set(old);
        return fresh;
      };
      this.x = grown(this.x, new Int32Array(this.count * 2));
      this.low = grown(this.low, new Float32Array(this.count * 2));
      this.high = grown(this.high, new Float32Array(this.count * 2));
    }
    this.x[this.count] = x;
    this.low[this.count] = low;
    this.high[this.count] = high;
    this.count += 1;
  }
}

/**
 * The marks that are seen in a window of `width` by `height` pixels, from the top. Marks of one column that touch, or that lie
 * less than a pixel apart, are drawn as one; none is left out.
 */
export function decimate(marks: Marks, view: View, width: number, height: number, into: Drawn): void {
  into.clear();
  const { time_s, start, end } = marks;
  const perSecond = width / (view.to - view.from);
  const perByte = height / (view.high - view.low);
  const first = firstAt(time_s, view.from);
  let column = -1;
  let begin = 0;
  for (let at = first; at < time_s.length; at += 1) {
    const time = time_s[at] ?? 0;
    if (time > view.to) break;
    const low = start[at] ?? 0;
    const high = end[at] ?? 0;
    if (high < view.low || low > view.high) continue;
    const x = Math.min(width - 1, Math.floor((time - view.from) * perSecond));
    const bottom = height - (low - view.low) * perByte;
    const top = height - (high - view.low) * perByte;
    if (x !== column) {
      column = x;
      begin = into.count;
    }
    // Usually it continues the last one of its column; else one of the others.
    let merged = false;
    for (let other = into.count - 1; other >= begin && other >= into.count - 8; other -= 1) {
      const otherLow = into.low[other] ?? 0;
      const otherHigh = into.high[other] ?? 0;
      if (top <= otherLow + 1 && bottom >= otherHigh - 1) {
        if (bottom > otherLow) into.low[other] = bottom;
        if (top < otherHigh) into.high[other] = top;
        merged = true;
        break;
      }
    }
    if (!merged) into.add(x, bottom, top);
  }
}

/**
 * The corners of a step line in a window: of each column of pixels the first and last value, and the least and most between them.
 * Pairs of x and y in pixels.
 */
export function stepsOf(steps: Steps, view: View, width: number, height: number, into: number[]): void {
  into.length = 0;
  const { time_s, value } = steps;
  if (time_s.length === 0) return;
  const perSecond = width / (view.to - view.from);
  const perByte = height / (view.high - view.low);
  const y = (bytes: number) => height - (bytes - view.low) * perByte;
  const first = Math.max(0, firstAt(time_s, view.from) - 1);
  let column = -Infinity;
  let last = y(value[first] ?? 0);
  let least = last;
  let most = last;
  const close = () => {
    if (column === -Infinity) return;
    into.push(column, most, column, least, column, last);
  };
  for (let at = first; at < time_s.length; at += 1) {
    const time = time_s[at] ?? 0;
    if (time > view.to) break;
    const now = y(value[at] ?? 0);
    const x = Math.max(0, Math.floor((time - view.from) * perSecond));
    if (x !== column) {
      close();
      // A step: flat up to where it changes.
      if (column !== -Infinity) into.push(x, last);
      column = x;
      least = now;
      most = now;
    }
    least = Math.min(least, now);
    most = Math.max(most, now);
    last = now;
  }
  close();
  into.push(width, last);
}

/** What is nearest to a place, within some pixels; what matters before plain data. */
export interface Found {
  kind: Kind;
  time_s: number;
  start: number;
  end: number;
}

export function nearest(graph: Graph, view: View, width: number, height: number, x: number, y: number, within = 12): Found | null {
  const perSecond = width / (view.to - view.from);
  const perByte = height / (view.high - view.low);
  const time = view.from + x / perSecond;
  const bytes = view.low + (height - y) / perByte;
  let best: Found | null = null;
  let closest = within;
  for (const kind of [...KINDS].reverse()) {
    const { time_s, start, end } = graph.marks[kind];
    for (let at = firstAt(time_s, time - within / perSecond); at < time_s.length; at += 1) {
      const when = time_s[at] ?? 0;
      if (when > time + within / perSecond) break;
      const [low, high] = [start[at] ?? 0, end[at] ?? 0];
      const up = bytes < low ? low - bytes : bytes > high ? bytes - high : 0;
      const far = Math.hypot((when - time) * perSecond, up * perByte);
      // A kind that lies above the others is found first, and another must be clearly nearer.
      if (far < closest - (best === null || best.kind === kind ? 0 : 1.5)) {
        closest = far;
        best = { kind, time_s: when, start: low, end: high };
      }
    }
  }
  return best;
}

/** The order of events: by time, then by sequence, then by kind. */
function before(a: Found, b: Found): boolean {
  if (a.time_s !== b.time_s) return a.time_s < b.time_s;
  if (a.start !== b.start) return a.start < b.start;
  return KINDS.indexOf(a.kind) < KINDS.indexOf(b.kind);
}

/** The next event after another one, or after a time; or the one before it: for the keyboard. */
export function next(graph: Graph, kinds: readonly Kind[], from: Found | number, forwards: boolean): Found | null {
  const time = typeof from === "number" ? from : from.time_s;
  const later = (one: Found) => typeof from === "number" || (forwards ? before(from, one) : before(one, from));
  let best: Found | null = null;
  for (const kind of kinds) {
    const { time_s, start, end } = graph.marks[kind];
    let at = firstAt(time_s, time);
    if (!forwards) {
      while ((time_s[at] ?? Infinity) <= time) at += 1;
      at -= 1;
    }
    // Several may be of one time, in any order.
    let reached: number | null = null;
    for (; at >= 0 && at < time_s.length; at += forwards ? 1 : -1) {
      const one = { kind, time_s: time_s[at] ?? 0, start: start[at] ?? 0, end: end[at] ?? 0 };
      if (reached !== null && one.time_s !== reached) break;
      if (!later(one)) continue;
      reached = one.time_s;
      if (best === null || (forwards ? before(one, best) : before(best, one))) best = one;
    }
  }
  return best;
}

/** A window within all there is, no narrower than a microsecond and a byte. */
export function inside(view: View, whole: View): View {
  const span = (low: number, high: number, least: number, from: number, to: number): [number, number] => {
    const length = Math.min(Math.max(high - low, least), to - from);
    const start = Math.min(Math.max(low, from), to - length);
    return [start, start + length];
  };
  const [from, to] = span(view.from, view.to, 1e-6, whole.from, whole.to);
  const [low, high] = span(view.low, view.high, 1, whole.low, whole.high);
  return { from, to, low, high };
}

/** The window made narrower (below 1) or wider about a place that stays where it is; `x` and `y` are shares of it. */
export function zoomed(view: View, factor: number, x: number, y: number, axes: { x: boolean; y: boolean } = { x: true, y: true }): View {
  const across = axes.x ? factor : 1;
  const up = axes.y ? factor : 1;
  const time = view.from + x * (view.to - view.from);
  const bytes = view.low + y * (view.high - view.low);
  return {
    from: time - (time - view.from) * across,
    to: time + (view.to - time) * across,
    low: bytes - (bytes - view.low) * up,
    high: bytes + (view.high - bytes) * up,
  };
}

/** The window moved by shares of itself. */
export function shifted(view: View, x: number, y: number): View {
  const [across, up] = [(view.to - view.from) * x, (view.high - view.low) * y];
  return { from: view.from + across, to: view.to + across, low: view.low + up, high: view.high + up };
}
