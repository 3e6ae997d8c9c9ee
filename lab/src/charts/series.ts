// What a chart shows, as plain data: the same for the canvas, the table for screen readers, and an export.

/** What the values of a chart are. */
export type ValueKind = "rate" | "time" | "bytes" | "segments" | "share" | "plain";

export interface Line {
  label: string;
  /** Seconds, ascending. */
  x: ArrayLike<number>;
  /** NaN where there is no value. */
  y: ArrayLike<number>;
  /** Which colour and dash, counted from 0. */
  series: number;
  /** Another dash than that of its colour: a second quantity of the same flow. */
  dash?: number;
  width?: number;
  /** Not listed in the legend: one of many alike. */
  unlisted?: boolean;
}

/** A time in which something holds: a phase. */
export interface Span {
  from: number;
  to: number;
  name: string;
}

/** The phases of one flow, drawn as a strip. */
export interface Lane {
  label: string;
  series: number;
  spans: Span[];
}

/** A value to compare with: the link's rate, what the paper says. */
export interface Reference {
  value: number;
  label: string;
  /** The colour of a series; that of quiet text unless said. */
  series?: number;
  /** What it was and from when on, in seconds, ascending, to the present value: drawn as steps. */
  steps?: readonly Step[];
}

/** A value that holds from a time on. */
export interface Step {
  from: number;
  value: number;
}

/** Something that happened at a time: a change of the path. */
export interface Mark {
  at: number;
  label: string;
}

export interface ChartContent {
  title: string;
  kind: ValueKind;
  lines: Line[];
  /** From and to, in seconds; what the reset of the zoom leads to. */
  extent: readonly [number, number];
  lanes?: Lane[];
  /** Whose phases shade the whole height. */
  shade?: Lane | undefined;
  references?: Reference[];
  marks?: Mark[];
  /** What has to be known to read it. */
  note?: string | undefined;
}

/** How values are written: divided by `scale`, followed by `unit`. */
export interface Unit {
  scale: number;
  unit: string;
}

const UNITS: Record<ValueKind, Unit[]> = {
  rate: [
    { scale: 1e9, unit: "Gbit/s" },
    { scale: 1e6, unit: "Mbit/s" },
    { scale: 1e3, unit: "kbit/s" },
    { scale: 1, unit: "bit/s" },
  ],
  time: [{ scale: 1, unit: "s" }, { scale: 1e-3, unit: "ms" }, { scale: 1e-6, unit: "µs" }],
  bytes: [{ scale: 1e9, unit: "GB" }, { scale: 1e6, unit: "MB" }, { scale: 1e3, unit: "KB" }, { scale: 1, unit: "B" }],
  segments: [{ scale: 1, unit: "segments" }],
  share: [{ scale: 0.01, unit: "%" }],
  plain: [{ scale: 1, unit: "" }],
};

/** The unit in which the largest of some values is between 1 and 1000, or nearly so. */
export function unitFor(kind: ValueKind, most: number): Unit {
  const units = UNITS[kind];
  return units.find(({ scale }) => most >= scale * 1.5) ?? units.at(-1) ?? { scale: 1, unit: "" };
}

/** A value in a unit, with three digits that count. */
export function shown(value: number | null | undefined, unit: Unit): string {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const scaled = value / unit.scale;
  const size = Math.abs(scaled);
  if (size >= 1000) return Math.round(scaled).toLocaleString("en").replaceAll(",", "\u202f");
  return scaled.toFixed(size >= 100 || size === 0 ? 0 : size >= 10 ? 1 : 2);
}

/** The corners of a reference from one time to another: two for each value that it has there. */
export function cornersOf({ value, steps }: Reference, from: number, to: number): [time: number, value: number][] {
  if (steps === undefined || steps.length === 0) return [[from, value], [to, value]];
  return steps.flatMap((step, index): [number, number][] => {
    const begin = index === 0 ? from : Math.max(step.from, from);
    const end = Math.min(steps[index + 1]?.from ?? to, to);
    return begin < end ? [[begin, step.value], [end, step.value]] : [];
  });
}

/** How many times larger than the data a reference may be to be part of the scale: beyond, the data would lie flat at zero. */
const FARTHEST = 5;

/** The upper end of the scale for data up to `most`, and the references from one time to another that are not too far from it. */
export function topOf(most: number, references: readonly Reference[], [from, to]: readonly [number, number]): number {
  const levels = references.flatMap((reference) => cornersOf(reference, from, to).map(([, value]) => value));
  return Math.max(most, ...levels.filter((level) => !(most > 0) || level <= most * FARTHEST));
}

/** A reference that is above the scale, in words. */
export function farText(kind: ValueKind, label: string, value: number): string {
  // In the largest unit in which it is at least 1.
  const unit = unitFor(kind, value * 1.5);
  return `↑ ${label} ${shown(value, unit)}${unit.unit === "" ? "" : ` ${unit.unit}`}`;
}

/** The largest value of the lines, and of the references that are part of the scale; 0 if there is none. */
export function mostOf(content: Pick<ChartContent, "lines" | "references" | "extent">): number {
  let most = 0;
  for (const { y } of content.lines) {
    for (let at = 0; at < y.length; at += 1) {
      const value = y[at] ?? NaN;
      if (value > most) most = value;
    }
  }
  return topOf(most, content.references ?? [], content.extent);
}

type Column = (number | null | undefined)[] | Float64Array;

function sameTimes(a: ArrayLike<number>, b: ArrayLike<number>): boolean {
  if (a === b) return true;
  if (a.length !== b.length) return false;
  for (let at = 0; at < a.length; at += 1) if (a[at] !== b[at]) return false;
  return true;
}

/** Values for the canvas: gaps are null there. */
function gapped(y: ArrayLike<number>): Column {
  let gaps = !(y instanceof Float64Array);
  for (let at = 0; !gaps && at < y.length; at += 1) gaps = Number.isNaN(y[at]);
  return gaps ? Array.from(y, (value) => (Number.isNaN(value) ? null : value)) : (y as Float64Array);
}

/**
 * Lines over one axis of times. Where their times are not the same, over all times of all of them: undefined, which is bridged,
 * where a line has none.
 */
export function aligned(lines: readonly Pick<Line, "x" | "y">[]): { times: Column; columns: Column[] } {
  const [first] = lines;
  if (first === undefined) return { times: [], columns: [] };
  if (lines.every(({ x }) => sameTimes(x, first.x))) {
    return { times: gapped(first.x), columns: lines.map(({ y }) => gapped(y)) };
  }
  const times = [...new Set(lines.flatMap(({ x }) => Array.from(x)))].sort((a, b) => a - b);
  const columns = lines.map(({ x, y }) => {
    let next = 0;
    return times.map((time) => {
      if (x[next] !== time) return undefined;
      const value = y[next] ?? NaN;
      next += 1;
      return Number.isNaN(value) ? null : value;
    });
  });
  return { times, columns };
}

/** The last index whose time is at most `time`; -1 if all are later. */
export function indexAt(times: ArrayLike<number>, time: number): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] ?? Infinity) <= time) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** The phases of a flow: one span from where a phase begins to where another does. */
export function spansOf(times: ArrayLike<number>, phases: ArrayLike<number>, names: readonly string[]): Span[] {
  const spans: Span[] = [];
  let last: Span | undefined;
  for (let at = 0; at < times.length; at += 1) {
    const time = times[at] ?? NaN;
    const phase = phases[at] ?? NaN;
    const name = Number.isNaN(phase) ? undefined : names[phase];
    if (last !== undefined) last.to = time;
    if (name === last?.name) continue;
    last = name === undefined ? undefined : { from: time, to: time, name };
    if (last !== undefined) spans.push(last);
  }
  return spans;
}

const PHASE_WORDS: Record<string, [name: string, short: string]> = {
  slow_start: ["slow start", "slow start"],
  congestion_avoidance: ["congestion avoidance", "avoidance"],
  recovery: ["recovery", "recovery"],
  loss: ["loss recovery", "loss"],
  startup: ["Startup", "Startup"],
  drain: ["Drain", "Drain"],
  probe_bw_up: ["ProbeBW up", "up"],
  probe_bw_down: ["ProbeBW down", "down"],
  probe_bw_cruise: ["ProbeBW cruise", "cruise"],
  probe_bw_refill: ["ProbeBW refill", "refill"],
  probe_rtt: ["ProbeRTT", "RTT"],
  fixed: ["fixed", "fixed"],
  competing: ["competing", "competing"],
};

/** A phase as people call it. */
export function phaseName(phase: string): string {
  return PHASE_WORDS[phase]?.[0] ?? phase.replaceAll("_", " ");
}

/** The same, short enough for a strip. */
export function phaseShort(phase: string): string {
  return PHASE_WORDS[phase]?.[1] ?? phaseName(phase);
}

/** How strongly a phase is shaded, 0 to 1: those that change the rate most, most. */
export function phaseWeight(phase: string): number {
  switch (phase) {
    case "startup":
    case "slow_start":
      return 1;
    case "drain":
    case "recovery":
    case "loss":
    case "probe_rtt":
      return 0.7;
    case "probe_bw_up":
      return 0.5;
    case "probe_bw_down":
    case "probe_bw_refill":
      return 0.25;
    default:
      return 0;
  }
}

/** At most `rows` times from `from` to `to`, evenly spaced, and each line's value there: a table to be read out. */
export function tableOf(
  content: Pick<ChartContent, "lines">,
  from: number,
  to: number,
  rows = 21,
): { time: number; values: (number | null)[] }[] {
  return Array.from({ length: rows }, (_, row) => {
    const time = from + ((to - from) * row) / Math.max(rows - 1, 1);
    return {
      time,
      values: content.lines.map(({ x, y }) => {
        const value = y[indexAt(x, time)] ?? NaN;
        return Number.isNaN(value) ? null : value;
      }),
    };
  });
}

/**
 * Why a goodput is above the link's rate, if one is at a time that is shown. `slack_bps`: by how much it can be for a packet that is
 * counted whole in the stretch in which it arrives.
 */
export function noteOf(
  lines: readonly Line[], link: readonly Reference[], slack_bps: number, [from, to]: readonly [number, number],
): string | undefined {
  const most = Math.max(...link.flatMap((reference) => cornersOf(reference, from, to).map(([, value]) => value)), 0) + slack_bps;
  if (link.length === 0) return undefined;
  const over = lines.some(({ x, y }) => {
    for (let at = Math.max(indexAt(x, from), 0); at < y.length && (x[at] ?? Infinity) <= to; at += 1) if ((y[at] ?? NaN) > most) return true;
    return false;
  });
  return over ? "Goodput counts bytes delivered in order, so it can exceed the link when a hole is filled." : undefined;
}
