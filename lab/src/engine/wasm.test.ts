import { existsSync, readFileSync } from "node:fs";

import { describe, expect, it } from "vitest";

import { type Document, MistakeError } from "./protocol";
import { Wasm } from "./wasm";

const file = new URL("./engine.wasm", import.meta.url);
const there = existsSync(file);

function engine(): Wasm {
  return new Wasm(new WebAssembly.Module(readFileSync(file)));
}

function toml(text: string): Document {
  return { text, format: "toml" };
}

const ONE = toml('duration = "2 s"\n[path]\nrate = "20 Mbit/s"\nrtt = "30 ms"\n[[flows]]\ncontroller = "cubic"\n');

describe.skipIf(!there)(`the engine${there ? "" : " (no engine.wasm; run make lab)"}`, () => {
  it("knows its controllers, queues and scenarios", () => {
    const { controllers, queues, scenarios, phases, states, version } = engine().catalogue();
    expect(version).toMatch(/^\d+\.\d+\.\d+$/);
    expect(controllers.map(({ name }) => name)).toContain("bbr3");
    expect(queues.map(({ name }) => name)).toContain("fq_codel");
    expect(scenarios.find(({ name }) => name === "five-bbr")?.text).toContain("controller");
    expect([phases[0], states[0]]).toEqual(["slow_start", "open"]);
  });

  it("gives a run's columns in one buffer, with NaN where nothing is", () => {
    const run = engine().run({ document: ONE, seed: 1 });
    const [flow] = run.flows;
    const [queue] = run.queues;
    expect(flow?.rows).toBeGreaterThan(190);
    expect(Object.keys(flow?.columns ?? {})).toEqual([
      "time_s", "cwnd", "ssthresh", "pacing_bps", "inflight", "srtt_s", "min_rtt_s", "delivery_bps", "bandwidth_bps",
      "delivered_bytes", "goodput_bps", "retransmits", "phase", "state",
    ]);
    expect(Object.values(flow?.columns ?? {}).every(({ length }) => length === flow?.rows)).toBe(true);
    expect(flow?.columns["bandwidth_bps"]?.[5]).toBeNaN();
    expect(flow?.columns["ssthresh"]?.[0]).toBeNaN();
    expect(flow?.columns["cwnd"]?.[0]).toBe(10);
    expect(Object.keys(queue?.columns ?? {})).toEqual([
      "time_s", "queue_bytes", "queue_delay_s", "dropped_packets", "early_packets", "marked_packets",
    ]);
    expect(queue?.columns["time_s"]?.buffer).toBe(flow?.columns["time_s"]?.buffer);
    expect((JSON.parse(run.summary) as { flows: { segments_sent: number }[] }).flows[0]?.segments_sent).toBe(run.packets);
  });

  it("names the field of a mistake", () => {
    const wrong = toml('[path]\nrate = "1 parsec"\nrtt = "1 ms"\n[[flows]]\ncontroller = "reno"');
    const mistaken = () => engine().run({ document: wrong, seed: 1 });
    expect(mistaken).toThrow(MistakeError);
    expect(mistaken).toThrow(/^path\.rate: "1 parsec" is not a rate/);
    expect(() => engine().resolve(toml('[path]\ndeliveries = "/etc/passwd"\nrtt = "1 ms"'))).toThrow(/is a file, and there are none here/);
  });

  it("keeps live runs apart, and forgets those that are over", () => {
    const one = engine();
    const [a, b] = [one.open({ document: ONE, seed: 1 }), one.open({ document: ONE, seed: 1 })];
    one.advance(a, 1);
    one.change(a, { rate: "1 Mbit/s" });
    expect(one.advance(b, 1.5).now_s).toBe(1.5);
    expect(one.finish(b).summary).not.toBe(one.finish(a).summary);
    expect(() => one.advance(a, 2)).toThrow(/this live run is over/);
    expect(() => one.advance(99, 2)).toThrow(/this live run is over/);
  });

  it("survives a run that needs all its memory", { timeout: 120_000 }, () => {
    const one = engine();
    const live = one.open({ document: ONE, seed: 1 });
    const huge = toml(
      'duration = "60 s"\n[path]\nrate = "1 Tbit/s"\nrtt = "1 s"\nbuffer = "1 TB"\n[[flows]]\ncontroller = "fixed:cwnd=100000000"\n' +
        'count = 500\n[record]\ninterval = "1 s"\n',
    );
    expect(() => one.run({ document: huge, seed: 1 })).toThrow(/needs more memory than a browser gives it; expected/);
    // Everything of the instance is gone, and the next request gets a new one.
    expect(() => one.advance(live, 1)).toThrow(/this live run is over/);
    expect(one.run({ document: ONE, seed: 1 }).packets).toBeGreaterThan(1000);
  });
});

it("tells what a panic said, and goes on", () => {
  // (func (export "fullpipe_call") (result i32) (unreachable)), and a panic at "panicked at x.rs: a packet was lost".
  const bytes = Buffer.from(
    "AGFzbQEAAAABDQNgAAF/YAF/AX9gAAADBQQBAAIABQMBAAEHUAUGbWVtb3J5AgAQZnVsbHBpcGVfcmVxdWVzdAAADWZ1bGxwaXBlX2NhbGwAAQ9m" +
      "dWxscGlwZV9mb3JnZXQAAg5mdWxscGlwZV9wYW5pYwADChUEBQBBgBALAwAACwMAAQsFAEGABAsLSAIAQYAICyNwYW5pY2tlZCBhdCB4LnJzOiBh" +
      "IHBhY2tldCB3YXMgbG9zdABBgAQLGAAEAAAjAAAAAAAAAAAAAAAAAAAAAAAAAA==",
    "base64",
  );
  const failing = new Wasm(new WebAssembly.Module(bytes));
  expect(() => failing.catalogue()).toThrow("the engine failed: panicked at x.rs: a packet was lost");
  expect(() => failing.catalogue()).toThrow("the engine failed: panicked at x.rs: a packet was lost");
});
