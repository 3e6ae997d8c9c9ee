import { describe, expect, it } from "vitest";

import { aligned, cornersOf, farText, indexAt, mostOf, noteOf, shown, spansOf, tableOf, topOf, unitFor } from "./series";

describe("lines", () => {
  it("with the same times share them", () => {
    const x = Float64Array.of(1, 2, 3);
    const { times, columns } = aligned([{ x, y: Float64Array.of(4, NaN, 6) }, { x: [1, 2, 3], y: [7, 8, 9] }]);
    expect([...times]).toEqual([1, 2, 3]);
    expect(columns.map((column) => [...column])).toEqual([[4, null, 6], [7, 8, 9]]);
  });

  it("with other times are put on the times of all", () => {
    const { times, columns } = aligned([{ x: [1, 3], y: [10, 30] }, { x: [2, 3, 4], y: [20, NaN, 40] }]);
    expect([...times]).toEqual([1, 2, 3, 4]);
    expect(columns.map((column) => [...column])).toEqual([
      [10, undefined, 30, undefined],
      [undefined, 20, null, 40],
    ]);
  });

  it("may be none", () => {
    expect(aligned([])).toEqual({ times: [], columns: [] });
  });
});

it("finds the last sample before a time", () => {
  expect([0, 1, 1.5, 3, 9].map((time) => indexAt([1, 2, 3], time))).toEqual([-1, 0, 0, 2, 2]);
});

describe("phases", () => {
  it("last until the next begins, and gaps belong to none", () => {
    expect(spansOf([0, 1, 2, 3, 4, 5], [NaN, 0, 0, 1, NaN, 1], ["startup", "drain"])).toEqual([
      { from: 1, to: 3, name: "startup" },
      { from: 3, to: 4, name: "drain" },
      { from: 5, to: 5, name: "drain" },
    ]);
  });
});

describe("values", () => {
  it.each([
    ["rate", 48.2e6, "48.2", "Mbit/s"],
    ["rate", 999e3, "999", "kbit/s"],
    ["time", 0.0402, "40.2", "ms"],
    ["bytes", 250e3, "250", "KB"],
    ["segments", 12_345, "12\u202f345", "segments"],
    ["share", 0.5, "50.0", "%"],
  ] as const)("%s %d are shown as %s %s", (kind, value, text, unit) => {
    const chosen = unitFor(kind, value);
    expect(chosen.unit).toBe(unit);
    expect(shown(value, chosen)).toBe(text);
  });

  it("that are not there are a dash", () => {
    expect([null, undefined, NaN].map((value) => shown(value, unitFor("plain", 1)))).toEqual(["–", "–", "–"]);
  });
});

it("a table has each line's last value at its times", () => {
  const lines = [{ label: "a", series: 0, x: [0, 1, 2], y: [5, NaN, 7] }];
  expect(tableOf({ lines }, -1, 2, 4)).toEqual([
    { time: -1, values: [null] },
    { time: 0, values: [5] },
    { time: 1, values: [null] },
    { time: 2, values: [7] },
  ]);
});

describe("references", () => {
  const link = { value: 5, label: "link", steps: [{ from: 0, value: 10 }, { from: 2, value: 20 }, { from: 4, value: 5 }] };

  it("are steps where they have changed", () => {
    expect(cornersOf(link, 0, 6)).toEqual([[0, 10], [2, 10], [2, 20], [4, 20], [4, 5], [6, 5]]);
    expect(cornersOf(link, 3, 6)).toEqual([[3, 20], [4, 20], [4, 5], [6, 5]]);
    expect(cornersOf(link, 0, 1)).toEqual([[0, 10], [1, 10]]);
    expect(cornersOf({ value: 7, label: "" }, 1, 2)).toEqual([[1, 7], [2, 7]]);
  });

  it("are part of the scale unless they are far above the data", () => {
    expect(topOf(10, [{ value: 50, label: "" }], [0, 1])).toBe(50);
    expect(topOf(10, [{ value: 51, label: "" }, { value: 12, label: "" }], [0, 1])).toBe(12);
    expect(topOf(0, [{ value: 50, label: "" }], [0, 1])).toBe(50);
    expect(topOf(9, [link], [0, 6])).toBe(20);
    expect(topOf(9, [link], [4, 6])).toBe(9);
    const line = { label: "a", x: [0], y: [9e6], series: 0 };
    expect(mostOf({ lines: [line], references: [{ value: 1e9, label: "link" }], extent: [0, 1] })).toBe(9e6);
    expect(farText("rate", "link", 1e9)).toBe("↑ link 1.00 Gbit/s");
  });

  it("are explained where goodput is above the link", () => {
    const line = { label: "a", x: [0, 1, 2, 3], y: [9, 9, 25, 9], series: 0 };
    const steady = [{ value: 10, label: "link" }];
    expect(noteOf([line], steady, 1, [0, 3])).toMatch(/in order.*when a hole is filled/);
    expect(noteOf([line], steady, 1, [2.5, 3])).toBeDefined();
    expect(noteOf([line], steady, 1, [3, 4])).toBeUndefined();
    expect(noteOf([line], steady, 16, [0, 3])).toBeUndefined();
    expect(noteOf([line], [], 0, [0, 3])).toBeUndefined();
  });
});
