// Who is best: scores and the rule of a ranking, as python/fullpipe/advisor/goals.py and ranking.py have them.

import type { GoalName } from "./question";

/** What one candidate did with one seed. */
export interface Trial {
  goodput_bps: number;
  /** Infinite if nothing was measured. */
  rtt_p95_s: number;
  retransmitted: number;
  /** The share of its goodput alone that a neighbour loses; null if none ran. */
  harm: number | null;
  /** Goodput over the fair part of what the path carries. */
  used: number;
  /** The empty path's round-trip time over the 95th percentile of the flow's. */
  short: number;
}

/** Below this part of the path, a short queue and a kind neighbour are no merit. */
const ENOUGH = 0.8;

export const MEANS: Record<GoalName, string> = {
  throughput: "goodput as a part of the path's rate",
  delay: "the empty path's round-trip time over the 95th percentile of the flow's; less where under 80 % of the rate is used",
  balance: "the used part of the rate, times the empty path's round-trip time over the flow's 95th percentile",
  neighbours: "the part of its goodput that a neighbour keeps; less where under 80 % of the rate is used",
};

/** How well a trial serves a goal: 1 at best, more only beside competitors. */
export function scoreOf(goal: GoalName, trial: Trial): number {
  const enough = Math.min(1, trial.used / ENOUGH);
  switch (goal) {
    case "throughput":
      return trial.used;
    case "delay":
      return trial.short * enough;
    case "balance":
      return Math.min(1, trial.used) * trial.short;
    case "neighbours":
      return (1 - (trial.harm ?? 0)) * enough;
  }
}

/** Student's t with 95 % of the probability between minus and plus it, for 1 to 9 degrees of freedom. */
const T = [12.706205, 4.302653, 3.182446, 2.776445, 2.570582, 2.446912, 2.364624, 2.306004, 2.262157];
export const MOST_SEEDS = T.length + 1;

export interface Estimate {
  mean: number;
  /** The 95 % confidence interval; the mean itself where one seed gives none. */
  low: number;
  high: number;
}

export function estimate(values: readonly number[]): Estimate {
  const mean = values.reduce((sum, one) => sum + one, 0) / values.length;
  const t = T[values.length - 2];
  if (t === undefined) return { mean, low: mean, high: mean };
  const variance = values.reduce((sum, one) => sum + (one - mean) ** 2, 0) / (values.length - 1);
  const half = t * Math.sqrt(variance / values.length);
  return { mean, low: mean - half, high: mean + half };
}

/** Scores that differ by less than this share of the best one count as equal. */
export const ALIKE = 0.01;

export type Standing = "first" | "level" | "behind" | "undecided";

export interface Place {
  /** Its index among the candidates. */
  candidate: number;
  score: Estimate;
  /** How much of the first one's score it lacks, seed by seed. */
  behind: Estimate;
  standing: Standing;
}

export interface Ranking {
  /** The best first. */
  places: Place[];
  /** The index of the clear winner; null if there is none. */
  winner: number | null;
  /** By how much of its score the first one is ahead of the next. */
  ahead: number;
}

/** Ranks candidates by their scores, seed by seed: the same seeds for all. */
export function ranked(scores: readonly (readonly number[])[]): Ranking {
  const sums = scores.map((own) => own.reduce((sum, one) => sum + one, 0));
  // Candidates with equal scores keep the order in which they were named.
  const order = scores.map((_, index) => index).sort((a, b) => (sums[b] ?? 0) - (sums[a] ?? 0));
  const first = scores[order[0] ?? 0] ?? [];
  const best = estimate(first).mean;
  const places = order.map((candidate, place): Place => {
    const own = scores[candidate] ?? [];
    const behind = estimate(own.map((score, seed) => (first[seed] ?? NaN) - score));
    return { candidate, score: estimate(own), behind, standing: place === 0 ? "first" : standingOf(behind, best) };
  });
  const leaders = places.filter(({ standing }) => standing !== "behind");
  const second = places[1];
  return {
    places,
    winner: leaders.length === 1 ? (leaders[0]?.candidate ?? null) : null,
    ahead: second === undefined || best === 0 ? 0 : second.behind.mean / best,
  };
}

function standingOf({ low, high }: Estimate, best: number): Standing {
  const equal = ALIKE * best;
  if (low > equal) return "behind";
  return -equal <= low && high <= equal ? "level" : "undecided";
}
