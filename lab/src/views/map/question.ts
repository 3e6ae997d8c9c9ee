// The question of a map: the documents of a cell, as `fullpipe map` makes them (python/fullpipe/advisor/question.py).

import type { Document } from "../../engine/protocol";
import { DEFAULTS, type Setup } from "../../state/setup";
import { amountOf } from "../../ui/quantity";

export const GOALS = ["throughput", "delay", "balance", "neighbours"] as const;
export type GoalName = (typeof GOALS)[number];

const PACKET_BYTES = 1500;
/** The part of the rate that is payload: 1448 of the 1500 bytes of a packet. */
const PAYLOAD = 1448 / PACKET_BYTES;

/** A path of the map; the rest is the setup's. */
export interface Cell {
  rate_bps: number;
  rtt_us: number;
}

export interface Range {
  low: number;
  high: number;
}

/** Round values of a decade. */
const ROUND = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10];

function rounded(value: number): number {
  const decade = 10 ** Math.floor(Math.log10(value));
  const off = (one: number) => Math.abs(Math.log(one / value));
  return ROUND.map((digits) => Number((digits * decade).toPrecision(6))).reduce((best, one) => (off(one) < off(best) ? one : best));
}

/** The values of an axis: round ones, about evenly on a logarithmic scale, as long as they remain different; the ends are as given. */
export function axisValues({ low, high }: Range, steps: number): number[] {
  const even = Array.from({ length: steps }, (_, step) => low * (high / low) ** (steps > 1 ? step / (steps - 1) : 0));
  const values = even.map((value, step) => (step === 0 || step === steps - 1 ? value : rounded(value)));
  return values.every((value, step) => step === 0 || (values[step - 1] ?? NaN) < value) ? values : even;
}

/** The path at a place of the map, in the units that a scenario is written in. */
export function cellAt(rate_bps: number, rtt_s: number): Cell {
  return { rate_bps: Math.max(1, Math.round(rate_bps)), rtt_us: Math.max(1, Math.round(rtt_s * 1e6)) };
}

/** How long runs are: as those of `fullpipe map`, or short ones, which a page is not waited for. */
export const LENGTHS = ["short", "full"] as const;
export type Length = (typeof LENGTHS)[number];

interface Bounds {
  /** Round trips, within seconds. */
  rounds: number;
  least_s: number;
  most_s: number;
  /** No more packets and round trips than these, as long as that leaves so many round trips and seconds. */
  packets: number;
  most_rounds: number;
  fast_rounds: number;
  fast_s: number;
}

const BOUNDS: Record<Length, Bounds> = {
  full: { rounds: 300, least_s: 20, most_s: 60, packets: 1.5e6, most_rounds: 5000, fast_rounds: 100, fast_s: 1 },
  short: { rounds: 150, least_s: 10, most_s: 30, packets: 2e5, most_rounds: 5000, fast_rounds: 60, fast_s: 2 },
};

/** How long a path is simulated, in seconds. */
export function durationOf({ rate_bps, rtt_us }: Cell, length: Length): number {
  const { rounds, least_s, most_s, packets, most_rounds, fast_rounds, fast_s } = BOUNDS[length];
  const rtt_s = rtt_us / 1e6;
  const long_s = Math.min(Math.max(least_s, rounds * rtt_s), most_s);
  const fast = Math.min((packets * 8 * PACKET_BYTES) / rate_bps, most_rounds * rtt_s);
  return Math.min(long_s, Math.max(fast, fast_rounds * rtt_s, fast_s));
}

/** The buffer of a path: what was asked, but at least one packet, which a small BDP may be below; none for the default, which the engine knows. */
function bufferOf(buffer: string, { rate_bps, rtt_us }: Cell): { buffer?: string } {
  if (buffer === DEFAULTS.buffer) return {};
  const amount = amountOf("size", buffer);
  const bdp_bytes = (rate_bps * rtt_us) / 8e6;
  return { buffer: amount?.unit === "bdp" && amount.value * bdp_bytes < PACKET_BYTES ? `${String(PACKET_BYTES)} B` : buffer };
}

interface Flow {
  label: string;
  controller: string;
  count?: number;
}

/** The parts of the setup that all cells share. */
export type Shared = Pick<Setup, "buffer" | "loss" | "jitter" | "queue" | "ecn" | "competitors"> & { length: Length };

function document(shared: Shared, cell: Cell, flows: Flow[]): Document {
  const text = JSON.stringify({
    name: "advise",
    duration: `${durationOf(cell, shared.length).toFixed(3)} s`,
    path: {
      rate: `${String(cell.rate_bps)} bit/s`,
      rtt: `${String(cell.rtt_us)} us`,
      ...bufferOf(shared.buffer, cell),
      ...(shared.loss === "" ? {} : { loss: shared.loss }),
      ...(shared.jitter === "" ? {} : { jitter: shared.jitter }),
      queue: shared.queue,
    },
    flows,
    record: { series: false },
    // As `fullpipe map`: the hosts pace every flow, as fq does.
    hosts: { pacing: true, ...(shared.ecn ? { ecn: true } : {}) },
  });
  return { text, format: "json" };
}

/** A whole number of small units in the largest unit that it fills, with every digit: 97249247 bit/s is `97.249247 Mbit/s`. */
function inWords(value: number, units: readonly [size: number, name: string][]): string {
  const [size, name] = units.find(([least]) => value >= least) ?? [1, ""];
  return `${String(value / size)} ${name}`;
}

/** The path of a cell, exactly, as somebody would write it. */
export function cellText({ rate_bps, rtt_us }: Cell): { rate: string; rtt: string } {
  return {
    rate: inWords(rate_bps, [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]]),
    rtt: inWords(rtt_us, [[1e6, "s"], [1e3, "ms"], [1, "us"]]),
  };
}

/** Whom harm is measured on: the first competitor, else the default of most hosts. */
export function neighbourOf(shared: Shared): string {
  return shared.competitors[0]?.controller ?? "cubic";
}

/** The scenarios that a candidate's score needs. */
export interface Plan {
  alone: Document;
  /** Beside a neighbour, and the neighbour by itself. */
  duel?: Document;
  neighbour?: Document;
}

export function planOf(shared: Shared, cell: Cell, candidate: string, goal: GoalName): Plan {
  const others = shared.competitors.map(({ controller, count }) => ({ controller, count, label: `${controller}-neighbour` }));
  const alone = document(shared, cell, [{ label: "you", controller: candidate }, ...others]);
  if (goal !== "neighbours") return { alone };
  const neighbour = neighbourOf(shared);
  return {
    alone,
    duel: document(shared, cell, [{ label: "you", controller: candidate }, { label: "neighbour", controller: neighbour }]),
    neighbour: document(shared, cell, [{ label: "neighbour", controller: neighbour }]),
  };
}

/** The candidate's fair part of what the path carries. */
export function fairBps(shared: Shared, cell: Cell): number {
  return (cell.rate_bps * PAYLOAD) / (1 + shared.competitors.reduce((sum, { count }) => sum + count, 0));
}
