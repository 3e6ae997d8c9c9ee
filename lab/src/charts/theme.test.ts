import { expect, it } from "vitest";

import { DASHES, dashOf, seriesVariable } from "./theme";

it("draws no two of the first 25 series alike", () => {
  const looks = Array.from({ length: 25 }, (_, index) => `${seriesVariable(index)} ${dashOf(index).join(",")}`);
  expect(new Set(looks).size).toBe(25);
  expect(DASHES.map((_, index) => dashOf(index))).toEqual(DASHES);
});
