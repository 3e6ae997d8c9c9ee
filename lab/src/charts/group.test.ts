import { expect, it } from "vitest";

import { dragged, moved, scaled } from "./group";

it("zooms about a time, which stays where it is", () => {
  expect(scaled([0, 10], [0, 10], 0.5, 2)).toEqual([1, 6]);
  expect(scaled([1, 6], [0, 10], 0.5, 1)).toEqual([1, 3.5]);
});

it("is reset by zooming out to all there is", () => {
  expect(scaled([1, 6], [0, 10], 2, 3)).toBeNull();
});

it("stays within what there is", () => {
  expect(scaled([0, 2], [0, 10], 2, 2)).toEqual([0, 4]);
  expect(moved([6, 9], [0, 10], 1)).toEqual([7, 10]);
  expect(moved([1, 3], [0, 10], -1)).toEqual([0, 2]);
});

it("takes what a drag chose, but nothing shorter than a millisecond", () => {
  expect(dragged([1, 2], [0, 10])).toEqual([1, 2]);
  const [from, to] = dragged([4.9999, 5.0001], [0, 10]) ?? [];
  expect(from).toBeCloseTo(4.9995, 9);
  expect(to).toBeCloseTo(5.0005, 9);
  expect(dragged([0, 1e-5], [0, 10])?.[0]).toBe(0);
  expect(dragged([0, 10], [0, 10])).toBeNull();
});
