import { expect, it } from "vitest";

import { choiceOf, choiceText, withParameter } from "./choice";

it("a choice is read and written alike", () => {
  for (const text of ["bbr3", "bbr1:probe_gain=1.5,cwnd_gain=2", "red:min=30 KB"]) {
    expect(choiceText(choiceOf(text))).toBe(text);
  }
});

it("a parameter is set, set again and taken back", () => {
  const once = withParameter("cubic:c=1", "beta", "0.5");
  expect(once).toBe("cubic:c=1,beta=0.5");
  expect(withParameter(once, "beta", "0.6")).toBe("cubic:c=1,beta=0.6");
  expect(withParameter(withParameter(once, "beta", " "), "c", "")).toBe("cubic");
});

it("a value cannot smuggle in another parameter", () => {
  expect(withParameter("cubic", "beta", "0.5,c=9")).toBe("cubic:beta=0.5 c=9");
});
