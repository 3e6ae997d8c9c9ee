import { describe, expect, it, vi } from "vitest";

import { createEngine, createPool, type Source, type WorkerLike } from "./client";
import { type Document, MistakeError } from "./protocol";
import type { Question, Reply } from "./serve";

const MODULE = new WebAssembly.Module(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]));
const DOCUMENT: Document = { text: "", format: "toml" };

/** A worker whose answers the test gives. */
class Fake implements WorkerLike {
  onmessage: ((event: { data: Reply }) => void) | null = null;
  onerror: ((event: { message?: string }) => void) | null = null;
  ended = false;
  readonly asked: Exclude<Question, { module: WebAssembly.Module }>[] = [];
  modules = 0;

  postMessage(question: Question): void {
    if ("module" in question) this.modules += 1;
    else this.asked.push(question);
  }

  terminate(): void {
    this.ended = true;
  }

  answer(reply: Omit<Reply, "id"> & object, place = 0): void {
    const [question] = this.asked.splice(place, 1);
    this.onmessage?.({ data: { id: question?.id ?? -1, ...reply } as Reply });
  }
}

function fakes(module: () => Promise<WebAssembly.Module> = () => Promise.resolve(MODULE)): Source & { workers: Fake[] } {
  const workers: Fake[] = [];
  return {
    workers,
    worker: () => {
      const made = new Fake();
      workers.push(made);
      return made;
    },
    module,
  };
}

/** All that was asked of all workers. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
}

describe("an engine", () => {
  it("asks its worker after the module is there, and gives each its own answer", async () => {
    const source = fakes();
    const engine = createEngine(source);
    const [first, second] = [engine.resolve(DOCUMENT), engine.summaries({ documents: [], seeds: [] })];
    await settled();
    const [worker] = source.workers;
    expect(worker?.modules).toBe(1);
    expect(worker?.asked.map(({ method, given }) => [method, given])).toEqual([
      ["resolve", [DOCUMENT]],
      ["summaries", [{ documents: [], seeds: [] }]],
    ]);
    worker?.answer({ value: "second" }, 1);
    worker?.answer({ value: "first" });
    expect([await first, await second]).toEqual(["first", "second"]);
  });

  it("throws a mistake as one, and anything else as a failure", async () => {
    const source = fakes();
    const engine = createEngine(source);
    const asked = [engine.resolve(DOCUMENT), engine.resolve(DOCUMENT)];
    await settled();
    const parts = { field: "path", given: null, expected: null, fix: null };
    source.workers[0]?.answer({ mistake: { message: "path: it is wrong", ...parts } });
    source.workers[0]?.answer({ failure: "the engine failed: boom" });
    await expect(asked[0]).rejects.toMatchObject({ name: "MistakeError", mistake: { field: "path" } });
    await expect(asked[1]).rejects.toThrow("the engine failed: boom");
    await expect(asked[1]).rejects.not.toBeInstanceOf(MistakeError);
  });

  it("rejects what is under way when it is closed, and what is asked later", async () => {
    const source = fakes();
    const engine = createEngine(source);
    const asked = engine.catalogue();
    await settled();
    engine.close();
    await expect(asked).rejects.toThrow("the engine was closed");
    await expect(engine.catalogue()).rejects.toThrow("the engine was closed");
    expect(source.workers[0]?.ended).toBe(true);
  });

  it("says why there is no module, and that a worker has failed", async () => {
    const missing = createEngine(fakes(() => Promise.reject(new Error("the engine could not be fetched: 404 Not Found"))));
    await expect(missing.catalogue()).rejects.toThrow("404 Not Found");
    const source = fakes();
    const asked = createEngine(source).catalogue();
    await settled();
    source.workers[0]?.onerror?.({ message: "no such script" });
    await expect(asked).rejects.toThrow("the engine's worker failed: no such script");
  });

  it("steers a live run by its number", async () => {
    const source = fakes();
    const engine = createEngine(source);
    const opening = engine.open({ document: DOCUMENT, seed: 1 });
    await settled();
    const [worker] = source.workers;
    worker?.answer({ value: 7 });
    const live = await opening;
    void live.advance(1.5);
    void live.change({ rate: "1 Mbit/s" });
    void live.finish();
    live.close();
    await settled();
    expect(worker?.asked.map(({ method, given }) => [method, ...given])).toEqual([
      ["advance", 7, 1.5],
      ["change", 7, { rate: "1 Mbit/s" }],
      ["finish", 7],
      ["close", 7],
    ]);
  });
});

describe("a pool", () => {
  const run = { document: DOCUMENT, seed: 1 };

  it("gives a request to a worker that is free, and makes no more than it may", async () => {
    const source = fakes();
    const pool = createPool(2, source);
    expect(source.workers).toHaveLength(0);
    const asked = [pool.run(run), pool.run(run), pool.run(run)];
    await settled();
    expect(source.workers.map((worker) => worker.asked.length)).toEqual([1, 1]);
    source.workers[1]?.answer({ value: "b" });
    await settled();
    expect(source.workers.map((worker) => worker.asked.length)).toEqual([1, 1]);
    source.workers[1]?.answer({ value: "c" });
    source.workers[0]?.answer({ value: "a" });
    expect(await Promise.all(asked)).toEqual(["a", "b", "c"]);
  });

  it("does not begin what is cancelled while it waits", async () => {
    const source = fakes();
    const pool = createPool(1, source);
    const cancel = new AbortController();
    const first = pool.run(run);
    const second = pool.cancelledBy(cancel.signal).run(run);
    const third = pool.summaries({ documents: [], seeds: [] });
    await settled();
    cancel.abort();
    await expect(second).rejects.toThrow(/abort/);
    source.workers[0]?.answer({ value: "a" });
    await first;
    await settled();
    expect(source.workers[0]?.asked.map(({ method }) => method)).toEqual(["summaries"]);
    source.workers[0]?.answer({ value: [] });
    await third;
    await expect(pool.cancelledBy(cancel.signal).run(run)).rejects.toThrow(/abort/);
  });

  it("replaces a worker that goes on with what is cancelled, and keeps one that is soon done", async () => {
    vi.useFakeTimers();
    try {
      const source = fakes();
      const pool = createPool(1, source);
      const cancel = new AbortController();
      const soon = pool.cancelledBy(cancel.signal).run(run);
      await settled();
      cancel.abort();
      await expect(soon).rejects.toThrow(/abort/);
      source.workers[0]?.answer({ value: "late" });
      await settled();
      vi.advanceTimersByTime(1000);
      expect(source.workers.map(({ ended }) => ended)).toEqual([false]);

      const again = new AbortController();
      const long = pool.cancelledBy(again.signal).run(run);
      const next = pool.run(run);
      await settled();
      again.abort();
      await expect(long).rejects.toThrow(/abort/);
      vi.advanceTimersByTime(1000);
      await settled();
      expect(source.workers.map(({ ended }) => ended)).toEqual([true, false]);
      source.workers[1]?.answer({ value: "next" });
      expect(await next).toBe("next");
    } finally {
      vi.useRealTimers();
    }
  });

  it("keeps a worker after a mistake, and replaces it after a failure", async () => {
    const source = fakes();
    const pool = createPool(1, source);
    const asked = [pool.run(run), pool.run(run), pool.run(run)];
    await settled();
    source.workers[0]?.answer({ mistake: { message: "m", field: null, given: null, expected: null, fix: null } });
    await expect(asked[0]).rejects.toBeInstanceOf(MistakeError);
    await settled();
    source.workers[0]?.answer({ failure: "boom" });
    await expect(asked[1]).rejects.toThrow("boom");
    await settled();
    expect(source.workers.map(({ ended }) => ended)).toEqual([true, false]);
    source.workers[1]?.answer({ value: "ok" });
    expect(await asked[2]).toBe("ok");
  });

  it("rejects all when it is closed", async () => {
    const source = fakes();
    const pool = createPool(1, source);
    const asked = [pool.run(run), pool.run(run)];
    await settled();
    pool.close();
    for (const one of asked) await expect(one).rejects.toThrow("the engine was closed");
    await expect(pool.run(run)).rejects.toThrow("the engine was closed");
    expect(source.workers.every(({ ended }) => ended)).toBe(true);
  });
});
