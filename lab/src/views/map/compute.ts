// Computes a map: coarse first, then finer; what was computed once is kept.

import type { Document, Engine } from "../../engine/protocol";
import { axisValues, cellAt, fairBps, planOf, type Cell, type GoalName, type Range, type Shared } from "./question";
import { ranked, scoreOf, type Ranking, type Trial } from "./ranking";

/** What a map is asked. */
export interface Asked {
  shared: Shared;
  candidates: readonly string[];
  goal: GoalName;
  /** bit/s across, seconds upwards. */
  x: Range;
  y: Range;
  steps: number;
  seeds: number;
}

export interface Point {
  column: number;
  row: number;
  cell: Cell;
  /** By candidate, then by seed. */
  trials: Trial[][];
  ranking: Ranking;
}

interface Summary {
  goodput_bps: number;
  rtt_p95_s: number;
  loss_ratio: number;
  total_bps: number;
  /** Of the flow labelled "neighbour". */
  neighbour_bps: number;
}

interface FlowSummary {
  label: string;
  goodput_bps: number;
  loss_ratio: number | null;
  rtt_ms: { p95: number } | null;
}

/** What a score needs of a summary. */
export function summaryOf(text: string): Summary {
  const read = JSON.parse(text) as { flows: FlowSummary[]; total_goodput_bps: number };
  const you = read.flows.find(({ label }) => label === "you");
  const neighbour = read.flows.find(({ label }) => label === "neighbour");
  return {
    goodput_bps: you?.goodput_bps ?? 0,
    rtt_p95_s: you?.rtt_ms ? you.rtt_ms.p95 / 1e3 : Infinity,
    loss_ratio: you?.loss_ratio ?? 0,
    total_bps: read.total_goodput_bps,
    neighbour_bps: neighbour?.goodput_bps ?? 0,
  };
}

/** Summaries by document, the seeds from 1 on. The oldest go when there are too many. */
export class Kept {
  readonly #all = new Map<string, Summary[]>();
  constructor(readonly most = 40_000) {}

  get(text: string, seeds: number): Summary[] | undefined {
    const found = this.#all.get(text);
    return found !== undefined && found.length >= seeds ? found.slice(0, seeds) : undefined;
  }

  set(text: string, summaries: Summary[]): void {
    this.#all.delete(text);
    this.#all.set(text, summaries);
    if (this.#all.size > this.most) {
      const [oldest] = this.#all.keys();
      if (oldest !== undefined) this.#all.delete(oldest);
    }
  }
}

/** The places of a map by the order in which they are computed: every 2^n-th of both axes first, in the end all. */
export function coarseFirst(steps: number): { column: number; row: number; stride: number }[] {
  let stride = 1;
  while (stride * 2 < steps) stride *= 2;
  const seen = new Set<number>();
  const found: { column: number; row: number; stride: number }[] = [];
  for (; stride >= 1; stride /= 2) {
    for (let row = 0; row < steps; row += stride) {
      for (let column = 0; column < steps; column += stride) {
        if (seen.has(row * steps + column)) continue;
        seen.add(row * steps + column);
        found.push({ column, row, stride });
      }
    }
  }
  return found;
}

/** For a place that is not computed yet, the one that stands for it: the nearest that is on a coarser grid. */
export function standIn<T>(column: number, row: number, steps: number, at: (column: number, row: number) => T | undefined): T | undefined {
  for (let stride = 1; stride < steps * 2; stride *= 2) {
    const near = (place: number) => Math.min(Math.round(place / stride) * stride, Math.floor((steps - 1) / stride) * stride);
    const found = at(near(column), near(row));
    if (found !== undefined) return found;
  }
  return undefined;
}

function documentsOf(asked: Asked, cell: Cell): Document[] {
  const plans = asked.candidates.map((candidate) => planOf(asked.shared, cell, candidate, asked.goal));
  return plans.flatMap(({ alone, duel, neighbour }) => [alone, ...(duel === undefined || neighbour === undefined ? [] : [duel, neighbour])]);
}

/** The answer at one place, if all of its runs are known. */
function judged(asked: Asked, column: number, row: number, cell: Cell, of: (document: Document) => Summary[] | undefined): Point | null {
  const trials: Trial[][] = [];
  const rtt_s = cell.rtt_us / 1e6;
  for (const candidate of asked.candidates) {
    const { alone, duel, neighbour } = planOf(asked.shared, cell, candidate, asked.goal);
    const own = of(alone);
    const beside = duel && of(duel);
    const itself = neighbour && of(neighbour);
    if (own === undefined || (duel !== undefined && (beside === undefined || itself === undefined))) return null;
    trials.push(
      own.map((summary, seed) => {
        const alone_bps = itself?.[seed]?.total_bps ?? 0;
        const harm = beside === undefined ? null : alone_bps > 0 ? Math.max(0, 1 - (beside[seed]?.neighbour_bps ?? 0) / alone_bps) : 0;
        return {
          goodput_bps: summary.goodput_bps,
          rtt_p95_s: summary.rtt_p95_s,
          retransmitted: summary.loss_ratio,
          harm,
          used: summary.goodput_bps / fairBps(asked.shared, cell),
          short: Math.min(1, rtt_s / summary.rtt_p95_s),
        };
      }),
    );
  }
  return { column, row, cell, trials, ranking: ranked(trials.map((own) => own.map((trial) => scoreOf(asked.goal, trial)))) };
}

/**
 * Computes a map, and calls `found` for each place as it is known. Resolves when all are; rejects with what an engine refuses, or
 * when `signal` ends it.
 */
export async function compute(
  asked: Asked, engine: Pick<Engine, "summaries">, kept: Kept, found: (point: Point) => void, signal: AbortSignal,
): Promise<void> {
  const seeds = Array.from({ length: asked.seeds }, (_, at) => at + 1);
  const rates = axisValues(asked.x, asked.steps);
  const rtts = axisValues(asked.y, asked.steps);
  const work: Promise<void>[] = [];
  const ended = () => signal.aborted;
  for (const { column, row } of coarseFirst(asked.steps)) {
    const cell = cellAt(rates[column] ?? NaN, rtts[row] ?? NaN);
    const report = () => {
      if (ended()) return;
      const point = judged(asked, column, row, cell, ({ text }) => kept.get(text, asked.seeds));
      if (point !== null) found(point);
    };
    const lacking = new Map(
      documentsOf(asked, cell).filter(({ text }) => kept.get(text, asked.seeds) === undefined).map((one) => [one.text, one]),
    );
    if (lacking.size === 0) {
      report();
      continue;
    }
    const documents = [...lacking.values()];
    work.push(
      engine.summaries({ documents, seeds }).then((rows) => {
        for (const [at, document] of documents.entries()) kept.set(document.text, (rows[at] ?? []).map(summaryOf));
        report();
      }),
    );
  }
  await Promise.all(work);
}
