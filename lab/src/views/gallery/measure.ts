// The numbers and lines of a claim, from the runs of its scenarios. `lab/claims.py` computes the numbers in the same way.

import type { Line, ValueKind } from "../../charts/series";
import type { RunResult, Table } from "../../engine/protocol";

/** A number of one run, over a part of it: `since` and `until` are fractions of its duration. */
export interface ClaimNumber {
  name: string;
  run: number;
  of: string;
  flow: number;
  since: number;
  until: number;
  unit: string;
  /** What the paper gives, as a range; null where it gives a direction only, which `paper_says` has. */
  paper: number[] | null;
  paper_says: string;
  kernel: number | null;
  /** What the command line computes. */
  simulated: number;
}

export interface Claim {
  id: string;
  claim: string;
  paper: string;
  cite: string;
  figure: string;
  title: string;
  says: string;
  runs: { name: string; toml: string }[];
  seed: number;
  draw: string;
  numbers: ClaimNumber[];
  kernel: string | null;
  /** What must be known to read the chart; empty for nothing. */
  note: string;
  see: string;
  why: string;
  try: string;
}

interface Summary {
  flows: { label: string; loss_ratio: number | null }[];
}

function values(table: Table | undefined, name: string, from: number, to: number): { time: number; value: number }[] {
  const [times, column] = [table?.columns["time_s"], table?.columns[name]];
  if (times === undefined || column === undefined) return [];
  const found: { time: number; value: number }[] = [];
  for (let at = 0; at < times.length; at += 1) {
    const time = times[at] ?? NaN;
    const value = column[at] ?? NaN;
    if (time >= from && time <= to && !Number.isNaN(value)) found.push({ time, value });
  }
  return found;
}

function median(numbers: number[]): number {
  const sorted = [...numbers].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? NaN) + upper) / 2;
}

/** A number of a claim; NaN if the run does not have it. `probing` is the number of the phase ProbeRTT. */
export function measure(number: ClaimNumber, run: RunResult, probing: number): number {
  if (number.of === "loss_pct") {
    const { flows } = JSON.parse(run.summary) as Summary;
    return 100 * (flows[number.flow]?.loss_ratio ?? 0);
  }
  const end = Math.max(0, ...run.flows.map((flow) => flow.columns["time_s"]?.at(-1) ?? 0));
  const [from, to] = [number.since * end, number.until * end];
  const of = (flow: number, name: string) => values(run.flows[flow], name, from, to);
  const grown = (flow: number, name: string) => {
    const rows = of(flow, name);
    return (rows.at(-1)?.value ?? 0) - (rows[0]?.value ?? 0);
  };
  switch (number.of) {
    case "goodput_mbps": {
      const rows = of(number.flow, "delivered_bytes");
      return (8e-6 * grown(number.flow, "delivered_bytes")) / ((rows.at(-1)?.time ?? NaN) - (rows[0]?.time ?? NaN));
    }
    case "share_pct": {
      const all = run.flows.reduce((sum, _, flow) => sum + grown(flow, "delivered_bytes"), 0);
      return (100 * grown(number.flow, "delivered_bytes")) / all;
    }
    case "rtt_ms":
      return 1e3 * median(of(number.flow, "srtt_s").map(({ value }) => value));
    case "resent":
      return grown(number.flow, "retransmits");
    case "probe_rtt_pct": {
      const phases = of(number.flow, "phase");
      return (100 * phases.filter(({ value }) => value === probing).length) / phases.length;
    }
    case "queue_ms":
      return 1e3 * median(values(run.queues[0], "queue_delay_s", from, to).map(({ value }) => value));
    default:
      return NaN;
  }
}

/** What is drawn over time, by the name that the claim has for it. */
export const DRAWN: Record<string, { title: string; kind: ValueKind }> = {
  rtt_ms: { title: "Round-trip time", kind: "time" },
  inflight_kb: { title: "In flight", kind: "bytes" },
  goodput_mbps: { title: "Goodput", kind: "rate" },
  queue_ms: { title: "Queueing delay", kind: "time" },
  retransmits: { title: "Retransmissions so far", kind: "plain" },
};

/** Goodput between samples is noise: it is drawn over this many parts of the run. */
const PARTS = 120;
/** More lines than these could not be told apart. */
const MOST_LINES = 5;

function goodput(table: Table): { x: Float64Array; y: Float64Array } {
  const times = table.columns["time_s"] ?? new Float64Array(0);
  const bytes = table.columns["delivered_bytes"] ?? new Float64Array(0);
  const step = Math.max(1, Math.round(times.length / PARTS));
  const count = Math.max(0, Math.floor((times.length - 1) / step));
  const at = (values: Float64Array, part: number) => values[part * step] ?? NaN;
  return {
    x: Float64Array.from({ length: count }, (_, part) => (at(times, part) + at(times, part + 1)) / 2),
    y: Float64Array.from({ length: count }, (_, part) => (8 * (at(bytes, part + 1) - at(bytes, part))) / (at(times, part + 1) - at(times, part))),
  };
}

/** The lines of a run. `series` is its colour, unless it has several flows: then each has its own. */
export function linesOf(draw: string, run: RunResult, labels: readonly string[], name: string, mss_bytes: number, series: number): Line[] {
  if (draw === "queue_ms") {
    const { time_s, queue_delay_s } = run.queues[0]?.columns ?? {};
    return [{ label: name, x: time_s ?? [], y: queue_delay_s ?? [], series }];
  }
  const several = run.flows.length > 1;
  return run.flows.slice(0, MOST_LINES).map((table, flow): Line => {
    const x = table.columns["time_s"] ?? new Float64Array(0);
    const common = { label: several ? (labels[flow] ?? String(flow + 1)) : name, series: several ? flow : series };
    switch (draw) {
      case "goodput_mbps":
        return { ...common, ...goodput(table) };
      case "inflight_kb":
        return { ...common, x, y: (table.columns["inflight"] ?? x).map((segments) => segments * mss_bytes) };
      case "retransmits":
        return { ...common, x, y: table.columns["retransmits"] ?? [] };
      default:
        return { ...common, x, y: table.columns["srtt_s"] ?? [] };
    }
  });
}

/** What is not drawn, of a run by its name, or of the only one; empty if everything is. */
export function undrawn(draw: string, run: RunResult, name: string): string {
  if (draw === "queue_ms" || run.flows.length <= MOST_LINES) return "";
  return `${String(MOST_LINES)} of ${String(run.flows.length)} flows are drawn${name === "" ? "" : ` (${name})`}.`;
}

/** A value as it is shown: three digits that count. */
export function digits(value: number | null | undefined): string {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString("en").replaceAll(",", "\u202f");
  return value.toFixed(size >= 100 || size === 0 ? 0 : size >= 10 ? 1 : 2);
}
