import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { createLatest } from "./latest";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

function bench() {
  const begun: number[] = [];
  const ends: (() => void)[] = [];
  const signals: AbortSignal[] = [];
  let superseded = () => false;
  const latest = createLatest<number>((question, signal, newer) => {
    begun.push(question);
    signals.push(signal);
    superseded = newer;
    return new Promise((resolve) => ends.push(resolve));
  });
  const end = async () => {
    ends.shift()?.();
    await vi.advanceTimersByTimeAsync(0);
  };
  return { latest, begun, end, signals, superseded: () => superseded() };
}

it("only the newest of the questions that came meanwhile is worked on", async () => {
  const { latest, begun, end, superseded } = bench();
  for (const question of [1, 2, 3, 4]) latest.ask(question);
  expect(begun).toEqual([1]);
  expect(superseded()).toBe(true);
  await end();
  expect(begun).toEqual([1, 4]);
  expect(superseded()).toBe(false);
  await end();
  latest.ask(5);
  expect(begun).toEqual([1, 4, 5]);
});

it("work that nobody waits for is ended only if it takes long", async () => {
  const { latest, end, signals } = bench();
  latest.ask(1);
  await vi.advanceTimersByTimeAsync(10_000);
  latest.ask(2);
  expect(signals[0]?.aborted).toBe(false);
  await end();
  latest.ask(3);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(signals.map(({ aborted }) => aborted)).toEqual([false, true]);
});

it("nothing begins after it is closed", async () => {
  const { latest, begun, end, signals } = bench();
  latest.ask(1);
  latest.ask(2);
  latest.close();
  expect(signals[0]?.aborted).toBe(true);
  await end();
  expect(begun).toEqual([1]);
});
