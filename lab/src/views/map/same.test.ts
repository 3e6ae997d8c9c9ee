// The page's map is that of the package: `tests/map.py` writes what `fullpipe map` computes into `tests/map.json`.

import { existsSync, readFileSync } from "node:fs";

import { describe, expect, it } from "vitest";

import { Wasm } from "../../engine/wasm";
import { DEFAULTS } from "../../state/setup";
import { compute, Kept, type Point } from "./compute";
import { GOALS, type GoalName } from "./question";

interface Written {
  loss: string;
  buffer: string;
  candidates: string[];
  steps: number;
  seeds: number;
  goals: Record<GoalName, { winner: string | null; ahead: number; scores: Record<string, number> }[]>;
}

const module = new URL("../../engine/engine.wasm", import.meta.url);
const there = existsSync(module);

describe.skipIf(!there)(`the same map as fullpipe map${there ? "" : " (no engine.wasm; run make lab)"}`, () => {
  const message = JSON.parse(readFileSync(new URL("../../../tests/map.json", import.meta.url), "utf8")) as Written;
  const kept = new Kept();

  it.each(GOALS)("for %s", { timeout: 300_000 }, async (goal) => {
    const wasm = new Wasm(new WebAssembly.Module(readFileSync(module)));
    const points: Point[] = [];
    await compute(
      {
        shared: { ...DEFAULTS, buffer: message.buffer, loss: message.loss, length: "full" },
        candidates: message.candidates, goal, x: { low: 1e6, high: 16e6 }, y: { low: 0.01, high: 0.1 }, steps: message.steps, seeds: message.seeds,
      },
      { summaries: (request) => Promise.resolve(wasm.summaries(request)) },
      kept,
      (point) => points.push(point),
      new AbortController().signal,
    );
    expect(points).toHaveLength(message.goals[goal].length);
    for (const { column, row, ranking } of points) {
      const other = message.goals[goal][row * message.steps + column];
      expect(ranking.winner === null ? null : message.candidates[ranking.winner]).toBe(other?.winner);
      expect(ranking.ahead).toBeCloseTo(other?.ahead ?? NaN, 9);
      for (const { candidate, score } of ranking.places) {
        expect(score.mean).toBeCloseTo(other?.scores[message.candidates[candidate] ?? ""] ?? NaN, 9);
      }
    }
  });
});
