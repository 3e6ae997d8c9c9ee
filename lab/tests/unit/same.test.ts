// The same numbers: equal scenario and seed give the same summary in the browser's engine and in the native one, to the last byte.
//
// `tests/same/summaries.py` writes the native ones; FULLPIPE_SUMMARIES names its file (`make test-lab` does both).

import { existsSync, readFileSync } from "node:fs";

import { describe, expect, it } from "vitest";

import type { Document } from "../../src/engine/protocol";
import { Wasm } from "../../src/engine/wasm";

interface Line {
  document: Document;
  seed: number;
  summaries: string[];
}

const module = new URL("../../src/engine/engine.wasm", import.meta.url);
const file = process.env["FULLPIPE_SUMMARIES"] ?? "";
const missing = !existsSync(module) ? "no engine.wasm; run make lab" : file === "" ? "FULLPIPE_SUMMARIES is not set" : "";

describe.skipIf(missing !== "")(`the same numbers${missing === "" ? "" : ` (${missing})`}`, () => {
  const lines = missing === "" ? readFileSync(file, "utf8").trim().split("\n").map((line) => JSON.parse(line) as Line) : [];

  it("in every one of at least 200 scenarios", { timeout: 300_000 }, () => {
    const engine = new Wasm(new WebAssembly.Module(readFileSync(module)));
    let runs = 0;
    for (const { document, seed, summaries } of lines) {
      for (const [alternative, summary] of summaries.entries()) {
        const run = engine.run({ document, alternative, seed });
        expect(run.summary, document.text).toBe(summary);
        runs += 1;
      }
      // Another way there: the run in steps, on a path that could change.
      if (runs % 10 === 0 && summaries.length === 1) {
        const live = engine.open({ document, seed });
        for (let now = 0.1; engine.advance(live, now).running; now += 0.37);
        expect(engine.finish(live).summary, document.text).toBe(summaries[0]);
      }
    }
    expect(runs).toBeGreaterThanOrEqual(200);
  });
});
