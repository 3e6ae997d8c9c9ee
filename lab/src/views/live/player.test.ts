import { describe, expect, it } from "vitest";

import { MistakeError, type Alternative, type Change, type Engine, type Live, type Mistake, type Step } from "../../engine/protocol";
import { createPlayer, type Frames, type PlayState } from "./player";

const ALTERNATIVE: Alternative = {
  name: "",
  duration_s: 10,
  mss_bytes: 1448,
  flows: [],
  queues: [],
  facts: { rate_bps: null, rtt_s: null, bdp_bytes: null, buffer_bytes: null },
};

const MISTAKE: Mistake = { message: "rate: no", field: "rate", given: null, expected: null, fix: null };

/** Frames and a clock that only the test moves; an engine that takes `cost` milliseconds for a second of a run. */
function bench(cost = 1) {
  let now_ms = 0;
  let next: ((now: number) => void) | undefined;
  const frames: Frames = {
    request: (frame) => {
      next = frame;
      return 1;
    },
    cancel: () => {
      next = undefined;
    },
    now: () => now_ms,
  };
  const log: string[] = [];
  let refuses = false;
  let waiting: (() => void)[] | null = null;
  const held = () => (waiting === null ? Promise.resolve() : new Promise<void>((resolve) => waiting?.push(resolve)));
  let opened = 0;
  const open = (): Promise<Live> => {
    opened += 1;
    const mine = opened;
    let at = 0;
    return Promise.resolve({
      advance: async (until: number): Promise<Step> => {
        await held();
        now_ms += (until - at) * cost;
        at = Math.min(until, 10);
        return { now_s: at, end_s: 10, running: at < 10, flows: [], queues: [], flow_series: [], queue_series: [] };
      },
      change: (change: Change) => {
        log.push(`${String(mine)} ${JSON.stringify(change)}`);
        return refuses ? Promise.reject(new MistakeError(MISTAKE)) : Promise.resolve();
      },
      finish: () => Promise.reject(new Error("not asked for here")),
      close: () => log.push(`${String(mine)} closed`),
    });
  };
  const engine = { resolve: () => Promise.resolve({ document: {}, alternatives: [ALTERNATIVE], notes: [] }), open } as unknown as Engine;
  const seen = { states: [] as PlayState[], steps: [] as number[], mistakes: [] as (Mistake | null)[], reached: [] as (number | null)[] };
  const player = createPlayer(
    engine,
    {
      onState: (state) => seen.states.push(state),
      onOpen: () => undefined,
      onStep: (step) => seen.steps.push(step.now_s),
      onChange: (change, at_s) => log.push(`changed ${Object.keys(change).join()} at ${at_s.toFixed(3)}`),
      onMistake: (mistake) => seen.mistakes.push(mistake),
      onFailure: (message) => log.push(message),
      onReached: (speed) => seen.reached.push(speed),
    },
    frames,
  );
  const settle = async () => {
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
  };
  return {
    player, seen, log, settle,
    idle: () => next === undefined,
    refuse: () => {
      refuses = true;
    },
    hold: () => {
      waiting = [];
    },
    release: () => {
      const all = waiting ?? [];
      waiting = null;
      for (const one of all) one();
    },
    frame: async (after_ms = 16) => {
      now_ms += after_ms;
      const due = next;
      next = undefined;
      due?.(now_ms);
      await settle();
    },
    open: async () => {
      player.open({ document: { text: "", format: "toml" }, seed: 1 });
      await settle();
    },
  };
}

describe("a live run", () => {
  it("advances by what has passed, times the speed", async () => {
    const { player, seen, open, frame } = bench();
    await open();
    await frame(16);
    expect(seen.steps.at(-1)).toBeCloseTo(0.016, 9);
    player.setSpeed(0.1);
    const before = seen.steps.at(-1) ?? 0;
    await frame(20);
    expect((seen.steps.at(-1) ?? 0) - before).toBeCloseTo(0.002, 4);
  });

  it("asks for no more than the engine does in 8 ms, and says which speed it reaches", async () => {
    const { player, seen, open, frame } = bench(100);
    await open();
    player.setSpeed(100);
    for (let at = 0; at < 50; at += 1) await frame(8);
    const steps = seen.steps.slice(-2);
    expect((steps[1] ?? 0) - (steps[0] ?? 0)).toBeLessThanOrEqual(0.081);
    const reached = seen.reached.filter((one) => one !== null);
    expect(reached.length).toBeGreaterThan(0);
    expect(Math.max(...reached)).toBeLessThan(11);
  });

  it("has one request at a time, however slow the answer is", async () => {
    const { seen, hold, release, open, frame, settle } = bench();
    await open();
    hold();
    for (let at = 0; at < 10; at += 1) await frame();
    expect(seen.steps).toHaveLength(0);
    release();
    await settle();
    expect(seen.steps).toHaveLength(1);
  });

  it("does nothing at all while it is paused, over or hidden", async () => {
    const { player, seen, idle, open, frame } = bench();
    await open();
    expect(idle()).toBe(false);
    player.setHidden(true);
    expect(idle()).toBe(true);
    player.setHidden(false);
    await frame();
    player.pause();
    await frame();
    expect(idle()).toBe(true);
    player.play();
    player.setSpeed(100);
    for (let at = 0; at < 500 && seen.states.at(-1) !== "ended"; at += 1) await frame();
    expect(seen.states.at(-1)).toBe("ended");
    await frame();
    expect(idle()).toBe(true);
  });

  it("steps once while it is paused", async () => {
    const { player, seen, idle, open, frame } = bench();
    await open();
    player.step(0.01);
    await frame();
    await frame();
    expect(seen.steps).toEqual([0.01]);
    expect(idle()).toBe(true);
  });
});

describe("a change of the path", () => {
  it("is sent once a frame, whatever moved before it", async () => {
    const { player, log, open, frame } = bench();
    await open();
    for (const rate of ["1 Mbit/s", "2 Mbit/s", "3 Mbit/s"]) player.change({ rate });
    player.change({ rtt: "9 ms" });
    await frame();
    expect(log[0]).toBe('1 {"rate":"3 Mbit/s","rtt":"9 ms"}');
    expect(log).toHaveLength(2);
  });

  it("is sent while the run is paused, too", async () => {
    const { player, log, seen, idle, open, frame } = bench();
    await open();
    player.pause();
    player.change({ loss: "1 %" });
    await frame();
    await frame();
    expect(log).toEqual(['1 {"loss":"1 %"}', "changed loss at 0.000"]);
    expect(seen.steps).toEqual([]);
    expect(idle()).toBe(true);
  });

  it("that is refused is a mistake, and the run goes on", async () => {
    const { player, seen, refuse, open, frame } = bench();
    await open();
    refuse();
    player.change({ rate: "fast" });
    await frame();
    await frame();
    expect(seen.mistakes.at(-1)).toEqual(MISTAKE);
    expect(seen.states.at(-1)).toBe("playing");
    expect(seen.steps.length).toBeGreaterThan(0);
  });
});

describe("another run", () => {
  it("replaces the one before, whose answers are void", async () => {
    const { player, seen, log, hold, release, open, frame, settle } = bench();
    await open();
    hold();
    await frame();
    await open();
    release();
    await settle();
    expect(log).toContain("1 closed");
    expect(seen.steps).toHaveLength(0);
    await frame();
    expect(seen.steps[0]).toBeLessThan(0.1);
    player.close();
    expect(log).toContain("2 closed");
  });

  it("stays paused if the one before was", async () => {
    const { player, seen, open } = bench();
    await open();
    player.pause();
    await open();
    expect(seen.states.at(-1)).toBe("paused");
  });
});
