import { expect, it } from "vitest";

import { Series } from "./history";

function table(times: number[]) {
  return { rows: times.length, columns: { time_s: Float64Array.from(times), bytes: Float64Array.from(times, (time) => time * 100) } };
}

it("series grow, however much comes at once", () => {
  const series = new Series(["time_s", "bytes", "other"]);
  let next = 0;
  for (const count of [1, 0, 255, 1000, 3]) {
    series.add(table(Array.from({ length: count }, (_, at) => next + at)));
    next += count;
  }
  expect(series.rows).toBe(next);
  expect([...series.column("time_s")]).toEqual(Array.from({ length: next }, (_, at) => at));
  expect(series.column("other").every(Number.isNaN)).toBe(true);
  expect([...series.column("bytes", next - 2)]).toEqual([(next - 2) * 100, (next - 1) * 100]);
});

it("a window begins with the row before it", () => {
  const series = new Series(["time_s", "bytes"]);
  series.add(table([0, 1, 2, 3]));
  expect([-1, 0.5, 2, 9].map((from) => series.rowFor(from))).toEqual([0, 0, 2, 3]);
});

it("a rate in a window is that of the whole run", () => {
  const series = new Series(["time_s", "bytes"]);
  series.add(table([0, 1, 2, 3, 4, 5]));
  expect([...series.rate("bytes", 2, 3)]).toEqual([800, 800, 800]);
  expect([...series.rate("bytes", 2, 0)]).toEqual([NaN, 800, 800, 800, 800, 800]);
});
