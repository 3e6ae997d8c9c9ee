import { describe, expect, it } from "vitest";

import { estimate, exactSum, tQuantile } from "./statistics";

// Computed by python/fullpipe/measures/statistics.py.
const QUANTILES: [number, number][] = [[1, 12.70620473617467], [2, 4.3026527297494574], [3, 3.1824463052837055], [4, 2.7764451051977925], [9, 2.2621571627982036], [19, 2.093024054408308], [30, 2.0422724563012338], [99, 1.9842169515864239]];
const ESTIMATES: [values: number[], mean: number, low: number, high: number][] = [
  [[56438250.84518347, 67019042.04420491], 61728646.44469419, -5492203.178046569, 128949496.06743495],
  [[71772227.335347, 84878075.25615747, 66850973.15185383], 74500425.2477861, 51353059.90144144, 97647790.59413077],
  [[83086924.70322211, 3581465.3172417115, 42440416.239651375, 84958747.81284992, 58758735.22918625], 54565257.86043028, 12913057.217928007, 96217458.50293255],
  [[81180143.76580542, 11075330.854129849, 42747145.252612576, 22944982.1031649, 49394716.471997805, 52080765.72560097, 2167162.873412296, 20288952.241282485, 25873930.57498882, 82554738.09096111], 39030786.79539563, 19243593.560685962, 58817980.03010529]];

function close(value: number | null | undefined, expected: number): void {
  expect(Math.abs((value ?? NaN) - expected)).toBeLessThanOrEqual(1e-11 * Math.abs(expected));
}

describe("the interval over seeds", () => {
  it.each(QUANTILES)("has the t of %d degrees of freedom", (degrees, t) => {
    close(tQuantile(degrees), t);
  });

  it.each(ESTIMATES)("is what the command line prints", (values, mean, low, high) => {
    const found = estimate(values);
    expect(found?.mean).toBe(mean);
    close(found?.low, low);
    close(found?.high, high);
  });

  it("is none for one seed, and nothing for no value", () => {
    expect(estimate([5])).toEqual({ mean: 5, low: null, high: null, count: 1 });
    expect(estimate([])).toBeNull();
  });
});

it("sums are rounded once", () => {
  expect(exactSum([1e100, 1, -1e100, 1e-16, 3])).toBe(4);
  expect(exactSum(Array.from({ length: 10 }, () => 0.1))).toBe(1);
  expect(exactSum([1, 1e-16, 1e-16])).toBe(1.0000000000000002);
  expect(exactSum([])).toBe(0);
});
