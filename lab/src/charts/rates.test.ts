import { expect, it } from "vitest";

import { rateOver } from "./rates";

it("a rate is over the window, or over what there is of it", () => {
  const times = [0, 1, 2, 3, 4];
  expect([...rateOver(times, [0, 1, 3, 6, 10], 2)]).toEqual([NaN, 8, 12, 20, 28]);
  expect([...rateOver(times, [0, 1, 3, 6, 10], 0.5)]).toEqual([NaN, 8, 16, 24, 32]);
});

it("no sample and one sample have none", () => {
  expect([...rateOver([], [], 1)]).toEqual([]);
  expect([...rateOver([5], [9], 1)]).toEqual([NaN]);
});
