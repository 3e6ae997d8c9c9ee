import { expect, type Page, test } from "@playwright/test";

const rows = (page: Page) => page.locator("table.measures tbody tr");
const charts = (page: Page) => page.getByRole("figure");

/** Until the newest setting is computed. */
async function settled(page: Page): Promise<void> {
  await expect(page.locator(".compare:not([data-busy]) table.measures")).toBeVisible();
}

test("two controllers, their measures and four charts", async ({ page }) => {
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(error.message));
  await page.goto("./#/compare?rate=20+Mbit/s&duration=4+s");
  await settled(page);
  await expect(rows(page)).toHaveCount(2);
  await expect(page.locator("table.measures caption")).toHaveText("1 seed");
  await expect(rows(page).nth(1)).toContainText(/cubic.*Mbit\/s/);
  await expect(charts(page)).toHaveCount(4);
  await expect(charts(page).nth(0)).toHaveAccessibleName("Goodput over 100 ms, Mbit/s");
  expect(errors).toEqual([]);
});

test("a setting without effect is noted beside the form", async ({ page }) => {
  await page.goto("./#/compare?duration=1+s&pacing=1&cc=bbr1&cc=bbr3");
  await settled(page);
  await expect(page.getByText("hosts.pacing = true has no effect")).toBeVisible();
});

test("after a slider has moved, the numbers are those of where it stands", async ({ page, context }) => {
  await page.goto("./#/compare?rate=20+Mbit/s&duration=4+s");
  await settled(page);
  const before = await rows(page).allTextContents();
  const slider = page.getByRole("slider", { name: "Rate, slider" });
  await slider.focus();
  for (let press = 0; press < 12; press += 1) await slider.press(press % 3 === 2 ? "ArrowLeft" : "ArrowRight");
  await expect(page.getByRole("textbox", { name: "Rate", exact: true })).toHaveValue("30 Mbit/s");
  await expect(page).toHaveURL(/rate=30\+Mbit/);
  const other = await context.newPage();
  await other.goto(page.url());
  await settled(other);
  const expected = await rows(other).allTextContents();
  await expect.poll(() => rows(page).allTextContents()).toEqual(expected);
  expect(expected).not.toEqual(before);
});

test("several seeds give intervals", async ({ page }) => {
  await page.goto("./#/compare?rate=5+Mbit/s&duration=3+s&loss=1+%25");
  await settled(page);
  const seeds = page.getByRole("spinbutton", { name: "Seeds" });
  await seeds.fill("3");
  await seeds.press("Enter");
  await expect(page.locator("table.measures caption")).toContainText("Mean of 3 seeds with 95 % interval");
  await expect(rows(page).nth(0)).toContainText("±");
});

test("the number of seeds is in the link, and stays there", async ({ page }) => {
  await page.goto("./#/compare?rate=5+Mbit/s&duration=2+s");
  await settled(page);
  const seeds = page.getByRole("spinbutton", { name: "Seeds" });
  await seeds.fill("3");
  await seeds.press("Enter");
  await expect(page).toHaveURL(/seeds=3/);
  await page.reload();
  await expect(seeds).toHaveValue("3");
  await expect(page.locator("table.measures caption")).toContainText("Mean of 3 seeds");
  // A change of the setup keeps it, and the way to another view and back, too.
  await page.getByRole("slider", { name: "Rate, slider" }).press("ArrowRight");
  await expect(page).toHaveURL(/rate=5\.5.*seeds=3/);
  await page.getByRole("link", { name: "Packets" }).click();
  await expect(page).toHaveURL(/packets/);
  await page.goBack();
  await expect(seeds).toHaveValue("3");
  await page.goto("./#/compare?rate=5+Mbit/s&duration=2+s&seeds=999");
  await expect(seeds).toHaveValue("30");
});

test("whose phases are shaded is said, whatever controllers come and go", async ({ page }) => {
  await page.goto("./#/compare?rate=5+Mbit/s&duration=2+s");
  await settled(page);
  const shade = page.getByRole("combobox", { name: "Shade the phases of" });
  const wording = () => shade.evaluate((select: HTMLSelectElement) => select.selectedOptions[0]?.textContent);
  await expect.poll(wording).toBe("bbr3");
  await page.getByRole("button", { name: "Add a controller" }).click();
  await expect(rows(page)).toHaveCount(3);
  await shade.selectOption({ index: 2 });
  const third = await wording();
  await page.getByRole("combobox", { name: "Controller 1" }).selectOption("vegas");
  await expect(rows(page).nth(0)).toContainText("vegas");
  await expect.poll(wording).toBe(third);
  await page.getByRole("button", { name: "Remove controller 3" }).click();
  await expect(rows(page)).toHaveCount(2);
  await expect.poll(wording).toBe("cubic");
  await shade.selectOption("none");
  await page.getByRole("combobox", { name: "Controller 1" }).selectOption("reno");
  await expect(rows(page).nth(0)).toContainText("reno");
  await expect.poll(wording).toBe("none");
});

test("a mistake is said where the result would be", async ({ page }) => {
  await page.setViewportSize({ width: 400, height: 800 });
  await page.goto("./#/compare?rate=banana");
  await expect(page.getByRole("region", { name: "Comparison" })).toContainText(/The setup is wrong: path\.rate.*banana/);
  await expect(page.getByText("Computing …")).toHaveCount(0);
});

test("of a scenario of one's own each flow has a row, and not all are drawn", async ({ page }) => {
  const flow = '[[flows]]\ncontroller = "reno"\n';
  const toml = `duration = "2 s"\n[path]\nrate = "5 Mbit/s"\nrtt = "20 ms"\nbuffer = "1 bdp"\n${flow.repeat(10)}`;
  await page.goto(`./#/compare?${new URLSearchParams({ toml }).toString()}`);
  await settled(page);
  await expect(rows(page)).toHaveCount(11);
  await expect(rows(page).nth(10)).toContainText("all flows");
  await expect(rows(page).nth(0)).toContainText("%");
  await expect(page.locator(".about")).toContainText("8 of 10 flows are drawn.");
});

test("one crosshair and one zoom for all charts, by mouse and by keys", async ({ page }) => {
  await page.goto("./#/compare?rate=20+Mbit/s&duration=4+s");
  await settled(page);
  const last = page.locator(".chart").nth(3).locator(".legend li").first();
  const end = await last.textContent();
  const plot = page.locator(".chart").nth(0).locator(".u-over");
  await plot.hover({ position: { x: 60, y: 40 } });
  await expect(last).not.toHaveText(end ?? "");
  // By drag.
  const box = await plot.boundingBox();
  if (box === null) throw new Error("the plot is not there");
  await page.mouse.move(box.x + 100, box.y + 30);
  await page.mouse.down();
  await page.mouse.move(box.x + 300, box.y + 30, { steps: 4 });
  await page.mouse.up();
  await expect(page.getByRole("button", { name: "Reset zoom" })).toHaveCount(4);
  await page.getByRole("button", { name: "Reset zoom" }).first().click();
  await expect(page.getByRole("button", { name: "Reset zoom" })).toHaveCount(0);
  // By keys.
  const focused = page.locator(".chart").nth(1).locator(".plot");
  await focused.focus();
  await focused.press("+");
  await expect(page.getByRole("button", { name: "Reset zoom" })).toHaveCount(4);
  await focused.press("Shift+ArrowRight");
  await focused.press("ArrowRight");
  await expect(page.locator(".chart").nth(1).locator("[aria-live]")).toContainText(/s: bbr3 [\d.]+, cubic [\d.]+/);
  await focused.press("0");
  await expect(page.getByRole("button", { name: "Reset zoom" })).toHaveCount(0);
});

test("a drag zooms to what was dragged over, in every chart", async ({ page }) => {
  await page.goto("./#/compare?rate=20+Mbit/s&duration=4+s");
  await settled(page);
  await page.getByRole("button", { name: "Goodput over 100 ms, Mbit/s as a table" }).click();
  await page.getByRole("button", { name: /^Queue, .* as a table$/ }).click();
  const plot = page.locator(".chart").nth(1).locator(".u-over");
  const box = await plot.boundingBox();
  if (box === null) throw new Error("the plot is not there");
  await page.mouse.move(box.x + box.width * 0.25, box.y + 30);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.75, box.y + 30, { steps: 4 });
  await page.mouse.up();
  await expect(page.getByRole("button", { name: "Reset zoom" })).toHaveCount(4);
  const tables = page.locator(".chart-table tbody");
  await expect(tables).toHaveCount(2);
  const time = async (table: number, row: number) => Number(await tables.nth(table).locator("tr").nth(row).locator("th").textContent());
  for (const table of [0, 1]) {
    expect(Math.abs((await time(table, 0)) - 1)).toBeLessThan(0.03);
    expect(Math.abs((await time(table, 20)) - 3)).toBeLessThan(0.03);
  }
});

test("a chart is a table, too", async ({ page }) => {
  await page.goto("./#/compare?rate=20+Mbit/s&duration=4+s");
  await settled(page);
  await page.getByRole("button", { name: "RTT, smoothed, ms as a table" }).click();
  const table = page.getByRole("region", { name: "RTT, smoothed, ms: table" });
  await expect(table.getByRole("row")).toHaveCount(22);
  await expect(table.getByRole("columnheader")).toHaveText(["Time, s", "bbr3", "cubic"]);
});

test("up to four controllers, with parameters, beside competitors", async ({ page }) => {
  await page.goto("./#/compare?rate=5+Mbit/s&duration=3+s");
  await settled(page);
  await page.getByRole("button", { name: "Add a controller" }).click();
  await page.getByRole("button", { name: "Add a controller" }).click();
  await expect(page.getByRole("button", { name: "Add a controller" })).toHaveCount(0);
  await expect(rows(page)).toHaveCount(4);
  await page.getByRole("button", { name: "Parameters of cubic" }).click();
  const beta = page.getByRole("group", { name: "Parameters of cubic" }).getByRole("textbox", { name: "beta", exact: true });
  await beta.fill("0.5");
  await beta.press("Enter");
  await expect(rows(page).nth(1)).toContainText("cubic:beta=0.5");
  await beta.fill("9");
  await beta.press("Enter");
  await expect(page.getByRole("combobox", { name: "Controller 2" })).toHaveAttribute("aria-invalid", "true");
  await expect(page.getByRole("combobox", { name: "Controller 2" })).toHaveAccessibleDescription(/out of range/);
  await beta.fill("");
  await beta.press("Enter");
  await expect(page.getByRole("combobox", { name: "Controller 2" })).not.toHaveAttribute("aria-invalid");
  await page.getByRole("button", { name: "Add competitors" }).click();
  await expect(page.getByRole("columnheader", { name: "Share" })).toBeVisible();
  await page.getByRole("button", { name: "Remove controller 4" }).click();
  await expect(rows(page)).toHaveCount(3);
});

for (const theme of ["light", "dark"] as const) {
  test(`fits 400 px, ${theme}`, async ({ page }) => {
    await page.setViewportSize({ width: 400, height: 800 });
    await page.emulateMedia({ colorScheme: theme });
    await page.goto("./#/compare?rate=5+Mbit/s&duration=3+s");
    await settled(page);
    await expect(charts(page)).toHaveCount(4);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(400);
  });
}

test("how often a moving slider is answered", async ({ page }) => {
  test.skip(process.env["LAB_SPEED"] === undefined, "a measurement, printed for LAB_SPEED=1");
  await page.goto("./#/compare?rate=100+Mbit/s");
  await settled(page);
  const measure = () =>
    page.evaluate(async () => {
      const bench = document.querySelector<HTMLElement>(".compare");
      const slider = document.querySelector<HTMLInputElement>('input[aria-label="RTT, slider"]');
      if (bench === null || slider === null) throw new Error("no slider");
      const count = () => Number(bench.dataset["computed"]);
      const [before, began] = [count(), performance.now()];
      for (let turn = 0; performance.now() - began < 5000; turn += 1) {
        slider.value = String(36 + (turn % 8));
        slider.dispatchEvent(new Event("input", { bubbles: true }));
        await new Promise(requestAnimationFrame);
      }
      return ((count() - before) * 1000) / (performance.now() - began);
    });
  await measure();
  const often = await measure();
  process.stdout.write(`${often.toFixed(1)} comparisons of 10 s at 100 Mbit/s, two controllers, a second\n`);
  expect(often).toBeGreaterThan(0);
});

test("a goodput above the link is explained, where there is one", async ({ page }) => {
  await page.goto("./#/compare?rate=20+Mbit/s&duration=4+s&loss=1+%25&cc=cubic");
  await settled(page);
  await expect(page.locator(".chart-note")).toHaveText(/bytes delivered in order, so it can exceed the link/);
  await page.goto("./#/compare?rate=20+Mbit/s&duration=4+s&cc=vegas&buffer=10+bdp");
  await expect(rows(page)).toContainText(["vegas"]);
  await expect(page.locator(".chart-note")).toHaveCount(0);
});
