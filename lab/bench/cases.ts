// What is measured, the same in node, in a browser and natively.

import type { Document, RunRequest } from "../src/engine/protocol";

export interface Case {
  name: string;
  /** How often it is carried out; the best time counts. */
  times: number;
  requests: (RunRequest & { method: "run" })[];
}

function bulk(controller: string, rate: string, duration: string): Document {
  const text = `duration = "${duration}"\n[path]\nrate = "${rate}"\nrtt = "40 ms"\n[[flows]]\ncontroller = "${controller}"\n`;
  return { text, format: "toml" };
}

function run(document: Document): RunRequest & { method: "run" } {
  return { method: "run", document, alternative: 0, seed: 1 };
}

export const CASES: Case[] = [
  { name: "bbr1, 1 Gbit/s, 10 s", times: 12, requests: [run(bulk("bbr1", "1 Gbit/s", "10 s"))] },
  { name: "cubic, 1 Gbit/s, 10 s", times: 12, requests: [run(bulk("cubic", "1 Gbit/s", "10 s"))] },
  { name: "bbr3, 1 Gbit/s, 10 s", times: 12, requests: [run(bulk("bbr3", "1 Gbit/s", "10 s"))] },
  {
    name: "bbr1 and cubic, each 100 Mbit/s, 10 s",
    times: 60,
    requests: [run(bulk("bbr1", "100 Mbit/s", "10 s")), run(bulk("cubic", "100 Mbit/s", "10 s"))],
  },
];

/** What was measured: the best time, the first one, and the data packets. */
export interface Measured {
  best_ms: number;
  first_ms: number;
  packets: number;
}

/** Carries out a case with an engine, wherever it is. */
export async function measure(
  { times, requests }: Case,
  engine: { run(request: RunRequest): { packets: number } | Promise<{ packets: number }> },
): Promise<Measured> {
  const taken: number[] = [];
  let packets = 0;
  for (let time = 0; time < times; time += 1) {
    packets = 0;
    const from = performance.now();
    for (const request of requests) packets += (await engine.run(request)).packets;
    taken.push(performance.now() - from);
  }
  return { best_ms: Math.min(...taken), first_ms: taken[0] ?? NaN, packets };
}
