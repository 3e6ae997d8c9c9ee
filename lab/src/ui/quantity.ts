// Quantities in words with units, for the sliders: where a slider stands for a text, and the text for where it was moved to.
//
// The engine judges what is written; this only has to understand the usual forms. What it does not understand leaves the slider
// where it was.

export type Kind = "rate" | "duration" | "size" | "probability";

/** A number in base units (bit/s, s, bytes, packets, bandwidth-delay products, a fraction), and which unit it is in. */
export interface Amount {
  value: number;
  unit: "base" | "bdp" | "packets";
}

const PREFIXES: Record<string, number> = { "": 1, k: 1e3, m: 1e6, g: 1e9, t: 1e12, ki: 1024, mi: 1024 ** 2, gi: 1024 ** 3 };
const SECONDS: [RegExp, number][] = [
  [/^(ns|nsec|nanoseconds?)$/, 1e-9],
  [/^(us|µs|μs|usec|microseconds?)$/, 1e-6],
  [/^(ms|msec|milliseconds?)$/, 1e-3],
  [/^(s|secs?|seconds?)$/, 1],
  [/^(min|mins|minutes?)$/, 60],
  [/^(h|hours?)$/, 3600],
  [/^(d|days?)$/, 86_400],
];

function factorOf(kind: Kind, message: string): { factor: number; unit: Amount["unit"] } | null {
  const unit = message.replaceAll(" ", "");
  const small = unit.toLowerCase();
  const base = (factor: number | undefined) => (factor === undefined ? null : { factor, unit: "base" as const });
  switch (kind) {
    case "rate": {
      const [, prefix, noun] = /^(|k|m|g|t)(bit\/s|bits\/s|bps|bit|b\/s|byte\/s)$/.exec(small) ?? [];
      if (prefix === undefined || noun === undefined) return null;
      // The one customary exception from "case does not matter": Mb/s are bits, MB/s bytes.
      const bytes = noun === "byte/s" || (noun === "b/s" && unit.endsWith("B/s"));
      return base((PREFIXES[prefix] ?? 1) * (bytes ? 8 : 1));
    }
    case "duration":
      return base(SECONDS.find(([form]) => form.test(small))?.[1]);
    case "size": {
      if (/^bdps?$/.test(small)) return { factor: 1, unit: "bdp" };
      if (/^(packets?|pkts?|segments?)$/.test(small)) return { factor: 1, unit: "packets" };
      const [, prefix] = /^(|k|m|g|ki|mi|gi)(b|bytes?)?$/.exec(small) ?? [];
      return prefix === undefined ? null : base(PREFIXES[prefix]);
    }
    case "probability":
      return base(small === "" ? 1 : /^(%|percent)$/.test(small) ? 0.01 : undefined);
  }
}

/** What a text means; null if it is none of the usual forms. Nothing at all is nothing: no loss, no jitter. */
export function amountOf(kind: Kind, text: string): Amount | null {
  const trimmed = text.trim();
  if (trimmed === "") return kind === "rate" || kind === "size" ? null : { value: 0, unit: "base" };
  const [, number, unit] = /^(\d+(?:\.\d*)?|\.\d+)\s*(.*)$/s.exec(trimmed) ?? [];
  if (number === undefined || unit === undefined) return null;
  if (kind === "duration" && unit === "" && Number(number) === 0) return { value: 0, unit: "base" };
  const scale = factorOf(kind, unit);
  return scale && { value: Number(number) * scale.factor, unit: scale.unit };
}

/** At most `digits` digits that count, and no more than are needed. */
function rounded(value: number, digits = 3): string {
  return String(Number(value.toPrecision(digits)));
}

const STEPS: Record<Kind, [number, string][]> = {
  rate: [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]],
  duration: [[1, "s"], [1e-3, "ms"], [1e-6, "us"], [1e-9, "ns"]],
  size: [[1e9, "GB"], [1e6, "MB"], [1e3, "KB"], [1, "B"]],
  probability: [[0.01, "%"]],
};

/** An amount in words that the engine reads, with at most three digits that count. */
export function textOf(kind: Kind, amount: Amount): string {
  if (amount.unit !== "base") return `${rounded(amount.value)} ${amount.unit}`;
  const value = Number(amount.value.toPrecision(3));
  const steps = STEPS[kind];
  const last = steps.at(-1) ?? [1, ""];
  // The engine takes whole bytes.
  if (kind === "size" && value < 1e3) return `${String(Math.round(value))} B`;
  if (value === 0) return kind === "duration" ? "0 ms" : `0 ${last[1]}`;
  const [size, unit] = steps.find(([step]) => value >= step * 0.9999) ?? last;
  return `${rounded(value / size)} ${unit}`;
}

/** The ends of a slider, in base units. */
export interface Range {
  least: number;
  most: number;
  /** It begins at nothing, and `least` is its first step. */
  nothing?: boolean;
  /** There are no parts: packets. */
  whole?: boolean;
}

export const RANGES: Record<"rate" | "rtt" | "loss" | "jitter", Range> = {
  rate: { least: 1e5, most: 1e10 },
  rtt: { least: 1e-3, most: 1 },
  loss: { least: 1e-5, most: 0.2, nothing: true },
  jitter: { least: 1e-4, most: 0.1, nothing: true },
};

const BUFFERS: Record<Amount["unit"], Range> = {
  base: { least: 1500, most: 1e8 },
  bdp: { least: 0.05, most: 50 },
  packets: { least: 1, most: 20_000, whole: true },
};

/** The slider of a buffer is in the unit that its text is in. */
export function bufferRange(unit: Amount["unit"]): Range {
  return BUFFERS[unit];
}

/** Where a slider stops within a factor of ten: numbers that people choose, at most 12 % apart. */
const ROUND = [
  1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.8, 2, 2.2, 2.5, 2.8, 3, 3.3, 3.6, 4, 4.5, 5, 5.5, 6, 6.5, 7, 7.5, 8, 9,
];

const known = new WeakMap<Range, number[]>();

/** The values of a slider, ascending. */
export function stopsOf(range: Range): number[] {
  let stops = known.get(range);
  if (stops === undefined) {
    stops = range.nothing === true ? [0] : [];
    for (let power = Math.floor(Math.log10(range.least)); 10 ** power <= range.most; power += 1) {
      for (const round of ROUND) {
        const value = Number((round * 10 ** power).toPrecision(2));
        if (value < range.least * 0.9999 || value > range.most * 1.0001) continue;
        if (range.whole !== true || Number.isInteger(value)) stops.push(value);
      }
    }
    known.set(range, stops);
  }
  return stops;
}

/** The stop nearest to a value: equal ratios are equal distances. */
export function stopNear(value: number, range: Range): number {
  const stops = stopsOf(range);
  if (value <= 0) return 0;
  let nearest = stops.length - 1;
  const far = (at: number) => Math.abs(Math.log(value / Math.max(stops[at] ?? 0, range.least / 10)));
  for (let at = nearest - 1; at >= 0; at -= 1) if (far(at) < far(nearest)) nearest = at;
  return nearest;
}

/** How many steps a slider without stops has: fine enough that neighbours differ by about 1 %. */
export const SLIDER_STEPS = 1000;

/** Where a slider without stops stands for a value: equal ratios are equal distances. */
export function positionOf(value: number, range: Range): number {
  if (range.nothing === true && value <= 0) return 0;
  const first = range.nothing === true ? 1 : 0;
  const share = Math.log(value / range.least) / Math.log(range.most / range.least);
  return Math.round(first + Math.min(Math.max(share, 0), 1) * (SLIDER_STEPS - first));
}

/** The value for where such a slider stands, rounded to two digits that count. */
export function valueAt(position: number, range: Range): number {
  if (range.nothing === true && position <= 0) return 0;
  const first = range.nothing === true ? 1 : 0;
  const share = (position - first) / (SLIDER_STEPS - first);
  const value = Number((range.least * (range.most / range.least) ** share).toPrecision(2));
  return range.whole === true ? Math.round(value) : value;
}

/** A rate to be read: `48.2 Mbit/s`. */
export function rateText(bps: number | null | undefined): string {
  return bps === null || bps === undefined || Number.isNaN(bps) ? "–" : textOf("rate", { value: bps, unit: "base" });
}

/** A time to be read: `40.2 ms`. */
export function timeText(seconds: number | null | undefined): string {
  return seconds === null || seconds === undefined || Number.isNaN(seconds)
    ? "–"
    : textOf("duration", { value: seconds, unit: "base" });
}

/** A size to be read: `125 KB`. */
export function sizeText(bytes: number | null | undefined): string {
  return bytes === null || bytes === undefined || Number.isNaN(bytes) ? "–" : textOf("size", { value: bytes, unit: "base" });
}
