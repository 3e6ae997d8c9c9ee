import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants } from "node:zlib";

import AxeBuilder from "@axe-core/playwright";

import { expect, QUICK, slow, test, VIEWS, visit } from "./lab";

const small = (view: string) => `${view}?${QUICK}${view === "map" ? "&steps=9&seeds=1&x-high=8+Mbit%2Fs&y-high=40+ms" : ""}`;

for (const view of VIEWS) {
  for (const scheme of ["light", "dark"] as const) {
    test(`${view} has names, roles and contrast: ${scheme}`, async ({ page }) => {
      await page.emulateMedia({ colorScheme: scheme });
      await visit(page, small(view));
      await slow(page.locator("main canvas, main svg").first()).toBeVisible();
      const { violations } = await new AxeBuilder({ page }).analyze();
      expect(violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`)).toEqual([]);
    });
  }

  test(`${view} is 400 pixels wide without scrolling sideways`, async ({ page }) => {
    await page.setViewportSize({ width: 400, height: 800 });
    await visit(page, small(view));
    await slow(page.locator("main canvas, main svg").first()).toBeVisible();
    for (const summary of await page.locator("main details.export > summary").all()) await summary.click();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(400);
  });

  test(`${view} is reached, and each of its controls, by keyboard alone`, async ({ page }) => {
    await visit(page, small(view));
    await slow(page.locator("main canvas, main svg").first()).toBeVisible();
    // Nothing can be pressed that the tabulator does not reach. Radio buttons are one stop.
    const unreachable = await page.evaluate(() =>
      [...document.querySelectorAll<HTMLElement>("main button, main input, main select, main textarea, main a[href], main summary, main [role=application]")]
        .filter((one) => one.tabIndex < 0 && one.checkVisibility() && !one.matches(":disabled"))
        .map((one) => one.outerHTML.slice(0, 120)),
    );
    expect(unreachable).toEqual([]);
    await page.keyboard.press("Tab");
    await expect(page.getByRole("link", { name: "Skip to the content" })).toBeFocused();
    await page.keyboard.press("Enter");
    await expect(page.locator("main")).toBeFocused();
    await page.keyboard.press("Tab");
    await expect(page.locator("main :focus")).toHaveCount(1);
    // What has the focus is seen.
    const outline = await page.evaluate(() => getComputedStyle(document.activeElement ?? document.body).outlineStyle);
    expect(outline).not.toBe("none");
  });

  test(`${view} moves nothing by itself where less motion is wanted`, async ({ page }) => {
    await page.emulateMedia({ reducedMotion: "reduce" });
    await visit(page, small(view));
    await slow(page.locator("main canvas, main svg").first()).toBeVisible();
    const animated = await page.evaluate(() => document.getAnimations().length);
    expect(animated).toBe(0);
  });

  test(`${view} names what is wrong with a link as the command line does`, async ({ page }) => {
    await visit(page, `${view}?rate=fast&toml=`);
    if (view === "gallery") return;
    if (view === "map") {
      await visit(page, `${view}?loss=much`);
      await slow(page.getByRole("alert").first()).toContainText('"much"');
    } else {
      await slow(page.getByRole("alert").first()).toContainText('"fast"');
    }
  });

  const HOSTILE = [
    "rate=%3Cscript%3Ewindow.broken%3D1%3C%2Fscript%3E",
    "cc=%22%3E%3Cimg+src%3Dx+onerror%3Dwindow.broken%3D1%3E&cc=cubic",
    "toml=%5Bpath%5D%0Adeliveries+%3D+%22%2Fetc%2Fpasswd%22",
    "toml=%00%00&seed=1e99&duration=1e99+s",
    "duration=1000000+s&rate=100+Gbit%2Fs",
    "%E0%A4%A&=&&&with=99999999+cubic",
  ];
  for (const [at, one] of HOSTILE.entries()) {
    test(`${view} survives a hostile link: ${String(at + 1)}`, async ({ page }) => {
      await visit(page, `${view}?${one}`);
      await expect(page.locator("main")).not.toBeEmpty();
      await page.waitForFunction(() => document.querySelector("main")?.textContent?.includes("Loading …") === false);
      expect(await page.evaluate(() => (window as { broken?: number }).broken)).toBeUndefined();
      // The page is still there to be used.
      await page.getByRole("link", { name: "Gallery" }).click();
      await expect(page.getByRole("heading", { level: 2 })).toBeVisible();
    });
  }
}

test("what of a link cannot be used is said once, and goes when it is dismissed", async ({ page }) => {
  await visit(page, `map?${small("map").split("?")[1] ?? ""}&for=zzz&seed=banana&with=999+reno`.replace("steps=9", "steps=99999"));
  const message = page.getByText(/^Not all of this link can be used/);
  await expect(message).toHaveText(
    "Not all of this link can be used: seed is “banana”, 1 is used instead; with is “999 reno”, 20 reno is used instead; " +
      "for is “zzz”, balance is used instead; steps is “99999”, 17 is used instead.",
  );
  await page.getByRole("button", { name: "Dismiss" }).click();
  await expect(message).toHaveCount(0);
  await visit(page, "nosuch");
  await expect(message).toContainText("there is no such view, so Live is shown");
  await page.getByRole("link", { name: "Gallery" }).click();
  await expect(message).toHaveCount(0);
});

test("the theme that is chosen holds, and is there at the first paint", async ({ page }) => {
  await visit(page, "gallery");
  await page.getByRole("combobox", { name: "Theme" }).selectOption("dark");
  const dark = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.reload();
  expect(await page.evaluate(() => document.documentElement.dataset["theme"])).toBe("dark");
  expect(await page.evaluate(() => getComputedStyle(document.body).backgroundColor)).toBe(dark);
});

test("all of it is below 2 MB compressed", async ({ page }) => {
  const folder = fileURLToPath(new URL("../../dist", import.meta.url));
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => join(folder, name)).filter((path) => statSync(path).isFile());
  const sizes = files.map((path) => brotliCompressSync(readFileSync(path), { params: { [constants.BROTLI_PARAM_QUALITY]: 6 } }).length);
  const all = sizes.reduce((sum, size) => sum + size, 0);
  await visit(page, "live");
  const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
  console.log(`${String(files.length)} files, ${String(all)} bytes compressed; first paint after ${String(Math.round(paint ?? NaN))} ms`);
  expect(all).toBeLessThan(2_000_000);
});
