import { expect, type Page, test } from "@playwright/test";

import { saved } from "./lab";

const clock = (page: Page) => page.locator(".clock");
const flows = (page: Page) => page.locator("table.flows tbody tr");

async function seconds(page: Page): Promise<number> {
  return Number(/([\d.]+) s/.exec((await clock(page).textContent()) ?? "")?.[1] ?? NaN);
}

async function past(page: Page, time_s: number): Promise<void> {
  await expect.poll(() => seconds(page)).toBeGreaterThan(time_s);
}

async function is(page: Page, state: string): Promise<void> {
  await expect(page.locator(".live")).toHaveAttribute("data-state", state);
}

test("a run plays, with its flows and their phases by name", async ({ page }) => {
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(error.message));
  await page.goto("./#/live?rate=10+Mbit/s");
  await past(page, 0.3);
  await expect(flows(page)).toHaveCount(2);
  await expect(flows(page).nth(0)).toContainText("bbr3");
  await expect(flows(page).nth(0)).toContainText(/Startup|Drain|ProbeBW|ProbeRTT/);
  await expect(flows(page).nth(1)).toContainText(/slow start|avoidance|recovery/);
  await expect(page.locator("canvas.path")).toBeVisible();
  await expect(page.getByRole("figure")).toHaveCount(4);
  expect(errors).toEqual([]);
});

test("a paused run asks for no frame, and goes on from where it was", async ({ page }) => {
  await page.addInitScript(() => {
    const request = window.requestAnimationFrame.bind(window);
    const counted = window as unknown as { frames: number };
    counted.frames = 0;
    window.requestAnimationFrame = (frame) => {
      counted.frames += 1;
      return request(frame);
    };
  });
  await page.goto("./#/live?rate=10+Mbit/s");
  await past(page, 0.05);
  await page.getByRole("button", { name: "Pause" }).click();
  await is(page, "paused");
  // What was under way has come back once the clock stands still.
  await expect.poll(async () => {
    const before = await seconds(page);
    await page.waitForTimeout(100);
    return (await seconds(page)) - before;
  }).toBe(0);
  const frames = () => page.evaluate(() => (window as unknown as { frames: number }).frames);
  const before = await frames();
  await page.waitForTimeout(300);
  expect(await frames()).toBe(before);
  const at = await seconds(page);
  await page.getByRole("button", { name: "Play", exact: true }).click();
  await past(page, at);
});

test("keys alone play, pause, step, restart and set the speed", async ({ page }) => {
  await page.goto("./#/live?rate=10+Mbit/s");
  await past(page, 0.05);
  await page.keyboard.press("Space");
  await is(page, "paused");
  await page.keyboard.press("r");
  await is(page, "paused");
  await expect.poll(() => seconds(page)).toBe(0);
  for (const time of [0.01, 0.02, 0.03]) {
    await page.keyboard.press("s");
    await expect.poll(() => seconds(page)).toBe(time);
  }
  await page.keyboard.press("[");
  await expect(page.locator(".speed output")).toHaveText("0.63×");
  await page.keyboard.press("]");
  await page.keyboard.press("]");
  await expect(page.locator(".speed output")).toHaveText("1.6×");
  await page.keyboard.press("Space");
  await past(page, 0.03);
  // A key in a field is for the field.
  const rate = page.getByRole("textbox", { name: "Rate", exact: true });
  await rate.focus();
  await rate.press("r");
  await is(page, "playing");
  await past(page, 0.03);
});

test("the path changes while the run goes on", async ({ page }) => {
  await page.goto("./#/live?rate=10+Mbit/s");
  await past(page, 0.2);
  await page.getByRole("textbox", { name: "Rate", exact: true }).fill("5 Mbit/s");
  await page.keyboard.press("Enter");
  await expect(page.locator(".notice")).toContainText("5 Mbit/s from");
  expect(await seconds(page)).toBeGreaterThan(0.2);
  // Loss was none: it can change, too.
  await page.getByRole("slider", { name: "Loss, slider" }).press("ArrowRight");
  await expect(page.locator(".notice")).toContainText("loss 0.001 % from");
  await page.getByRole("slider", { name: "RTT, slider" }).press("ArrowRight");
  await expect(page.locator(".notice")).toContainText("RTT 45 ms from");
  await page.getByRole("textbox", { name: "Buffer", exact: true }).fill("20 KB");
  await page.keyboard.press("Enter");
  await expect(page.locator(".notice")).toContainText("buffer 20 KB from");
  await expect(page).toHaveURL(/rate=5\+Mbit%2Fs.*rtt=45\+ms.*buffer=20\+KB/);
});

test("what a run cannot change begins it again, and says so", async ({ page }) => {
  await page.goto("./#/live?rate=10+Mbit/s");
  await past(page, 0.2);
  await page.getByRole("button", { name: "Add competitors" }).click();
  await expect(page.locator(".notice")).toContainText("Begun again");
  await expect(flows(page)).toHaveCount(3);
  await page.getByRole("combobox", { name: "Queue" }).selectOption("codel");
  await past(page, 0.1);
  await expect(page).toHaveURL(/queue=codel/);
});

test("a mistake is at the field that it names, and the run goes on", async ({ page }) => {
  await page.goto("./#/live?rate=10+Mbit/s");
  await past(page, 0.05);
  const rate = page.getByRole("textbox", { name: "Rate", exact: true });
  await rate.fill("10 parsecs");
  await rate.press("Enter");
  await expect(rate).toHaveAttribute("aria-invalid", "true");
  await expect(rate).toHaveAccessibleDescription(/is not a rate/);
  const at = await seconds(page);
  await past(page, at);
  await rate.fill("8 Mbit/s");
  await rate.press("Enter");
  await expect(rate).not.toHaveAttribute("aria-invalid");
  // Of a whole scenario, too.
  await page.goto("./#/live?rtt=soon");
  await expect(page.getByRole("textbox", { name: "RTT", exact: true })).toHaveAttribute("aria-invalid", "true");
  await page.getByRole("textbox", { name: "RTT", exact: true }).fill("20 ms");
  await page.keyboard.press("Enter");
  await past(page, 0.05);
});

test("a run ends, and can be played again", async ({ page }) => {
  await page.goto("./#/live?rate=1+Mbit/s");
  await past(page, 0.01);
  for (let press = 0; press < 10; press += 1) await page.keyboard.press("]");
  await expect(page.locator(".speed output")).toHaveText("100×");
  await is(page, "ended");
  expect(await seconds(page)).toBe(200);
  await page.getByRole("button", { name: "Play again" }).click();
  await expect.poll(() => seconds(page)).toBeLessThan(200);
});

test("a scenario of one's own is played; its mistakes are at the text", async ({ page }) => {
  await page.goto("./#/live?rate=10+Mbit/s");
  await page.getByRole("button", { name: "Write TOML yourself" }).click();
  const text = page.getByRole("textbox", { name: "Scenario (TOML)" });
  await expect(text).toHaveValue(/rate = "10 Mbit\/s"/);
  await text.fill('duration = "5 s"\n[path]\nrate = "1 Mbit/s"\nrtt = "20 ms"\nbuffer = "9 KB"\n[[flows]]\ncontroller = "vegas"\n');
  await text.blur();
  await expect(flows(page)).toHaveCount(1);
  await expect(flows(page)).toContainText("vegas");
  await text.fill("[path]\nrate = 5\n");
  await text.blur();
  await expect(text).toHaveAttribute("aria-invalid", "true");
});

test("who wants less motion gets numbers", async ({ page }) => {
  await page.emulateMedia({ reducedMotion: "reduce" });
  await page.goto("./#/live?rate=10+Mbit/s");
  await past(page, 0.1);
  await expect(page.locator("canvas.path")).toHaveCount(0);
  await expect(page.locator(".numbers")).toContainText("10 Mbit/s");
});

test("another theme is drawn at once, even while nothing runs", async ({ page }) => {
  await page.goto("./#/live?rate=10+Mbit/s");
  await past(page, 0.2);
  await page.keyboard.press("Space");
  await is(page, "paused");
  const pictures = () => page.evaluate(() => [...document.querySelectorAll("canvas")].map((canvas) => canvas.toDataURL()));
  // What was under way is drawn once two looks are alike.
  await expect.poll(async () => {
    const before = await pictures();
    await page.waitForTimeout(100);
    return JSON.stringify(await pictures()) === JSON.stringify(before);
  }).toBe(true);
  const before = await pictures();
  await page.getByRole("combobox", { name: "Theme" }).selectOption("dark");
  await expect.poll(async () => (await pictures()).filter((picture, at) => picture === before[at]).length).toBe(0);
  expect(before).toHaveLength(5);
});

for (const theme of ["light", "dark"] as const) {
  test(`fits 400 px, ${theme}`, async ({ page }) => {
    await page.setViewportSize({ width: 400, height: 800 });
    await page.emulateMedia({ colorScheme: theme });
    await page.goto("./#/live?rate=10+Mbit/s&with=2+reno");
    await past(page, 0.1);
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(400);
    await page.locator(".fold > summary").click();
    await expect(page.getByRole("textbox", { name: "Rate", exact: true })).toBeVisible();
    expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(400);
  });
}

/** What is written on canvases. */
async function writings(page: Page): Promise<() => Promise<string[]>> {
  await page.addInitScript(() => {
    const written = new Set<string>();
    (window as unknown as { written: Set<string> }).written = written;
    const fill = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (this: CanvasRenderingContext2D, ...given) {
      written.add(given[0]);
      fill.apply(this, given);
    };
  });
  return () => page.evaluate(() => [...(window as unknown as { written: Set<string> }).written]);
}

test("the picture calls flows as the table does, and says who dropped", async ({ page }) => {
  const written = await writings(page);
  await page.goto("./#/live?rate=10+Mbit/s&cc=cubic&cc=cubic");
  await past(page, 0.2);
  await expect(flows(page).nth(1)).toContainText("cubic-2");
  const texts = await written();
  expect(texts.filter((text) => /^cubic-1 \d/.test(text))).not.toEqual([]);
  expect(texts.filter((text) => /^cubic-2 \d/.test(text))).not.toEqual([]);
  expect(texts).toContain("0 dropped by the queue");
});

test("a goodput above the link is explained", async ({ page }) => {
  await page.goto("./#/live?rate=20+Mbit/s&loss=1+%25&cc=cubic");
  for (let press = 0; press < 3; press += 1) await page.keyboard.press("]");
  await expect(page.locator(".chart-note")).toHaveText(/bytes delivered in order, so it can exceed the link/);
});

test("a link far above what flows deliver is written at the edge", async ({ page }) => {
  const written = await writings(page);
  await page.goto("./#/live?rate=1+Gbit/s&loss=5+%25&cc=reno");
  await expect.poll(async () => (await written()).includes("↑ link 1.00 Gbit/s")).toBe(true);
});

test("the past keeps the link that it had", async ({ page }) => {
  await page.goto("./#/live?rate=10+Mbit/s");
  await past(page, 0.3);
  await page.getByRole("textbox", { name: "Rate", exact: true }).fill("7 Mbit/s");
  await page.keyboard.press("Enter");
  await expect(page.locator(".notice")).toContainText("7 Mbit/s from");
  await past(page, (await seconds(page)) + 0.2);
  await page.getByText("Export", { exact: true }).click();
  const { bytes } = await saved(page, () => page.getByRole("button", { name: /SVG/ }).first().click());
  const points = /<polyline points="([^"]*)"/.exec(bytes.toString())?.[1]?.split(" ") ?? [];
  expect(points).toHaveLength(4);
  expect(new Set(points.map((point) => point.split(",")[1])).size).toBe(2);
});

test("a link with a mistake says so, and is played once it is corrected", async ({ page }) => {
  await page.goto("./#/live?rate=banana");
  await expect(page.getByRole("region", { name: "Live run" })).toContainText(/The setup is wrong, so there is no run: path\.rate.*banana/);
  await expect(page.getByRole("button", { name: "Try again" })).toHaveCount(0);
  await expect(page.getByRole("button", { name: "Play" })).toBeDisabled();
  await expect(page.getByRole("table")).toHaveCount(0);
  await page.getByRole("textbox", { name: "Rate", exact: true }).fill("10 Mbit/s");
  await page.keyboard.press("Enter");
  await past(page, 0.05);
  await expect(page.getByText("The setup is wrong")).toHaveCount(0);
});

test("an emptied scenario is a mistake, not the form", async ({ page }) => {
  await page.goto("./#/live?rate=10+Mbit/s");
  await page.getByRole("button", { name: "Write TOML yourself" }).click();
  const text = page.getByRole("textbox", { name: "Scenario (TOML)" });
  await text.fill("");
  await text.blur();
  await expect(text).toHaveAttribute("aria-invalid", "true");
  await page.getByRole("button", { name: "Back to the form" }).click();
  await expect(page.getByRole("textbox", { name: "Rate", exact: true })).toBeVisible();
});
