import { expect, saved, slow, test, visit } from "./lab";

// Nine paths on slow links, each in milliseconds.
const SMALL = "map?x-low=1+Mbit%2Fs&x-high=8+Mbit%2Fs&y-low=10+ms&y-high=40+ms&steps=9&seeds=1&buffer=50+KB&for=throughput&cc=bbr3&cc=cubic";

test("finds who wins where, and says by which rule", async ({ page }) => {
  await visit(page, SMALL);
  await slow(page.getByText(/^81 paths\./)).toBeVisible();
  await expect(page.getByText(/Clear winner: bbr3 \d+ %, cubic \d+ %; none \d+ %\./)).toBeVisible();
  await expect(page.getByText(/95 % confidence interval of its difference to the best is above 1 %/)).toBeVisible();
  // One rectangle a cell, with the pattern of its winner or of none.
  await expect(page.locator(".map-drawing rect[fill^='url(#map-']")).toHaveCount(81 + 3);
});

test("is read and used by keyboard alone", async ({ page }) => {
  await visit(page, SMALL);
  await slow(page.getByText(/^81 paths\./)).toBeVisible();
  const map = page.getByRole("application", { name: /Map of rate/ });
  await map.focus();
  const status = page.getByRole("status").filter({ hasText: "Controller" });
  await expect(status).toContainText("20 ms");
  const middle = await status.textContent();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowUp");
  await expect(status).not.toHaveText(middle ?? "");
  await expect(status.getByRole("row")).toHaveCount(3);
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/#\/compare\?rate=[\d.]+\+[kM]bit%2Fs&rtt=[\d.]+\+ms&buffer=50\+KB&pacing=1&seeds=1/);
});

test("opens the run that is clicked", async ({ page }) => {
  await visit(page, SMALL);
  await slow(page.getByText(/^81 paths\./)).toBeVisible();
  // The lowest row is that of the lowest round-trip time, the first column that of the lowest rate.
  const first = page.locator(".map-drawing rect[fill^='url(#map-']").first();
  // The map may still find its place while the texts around it change.
  await expect(async () => {
    const box = await first.boundingBox();
    await page.mouse.click((box?.x ?? 0) + 3, (box?.y ?? 0) + 3);
    await expect(page).toHaveURL(/#\/compare\?rate=1\+Mbit%2Fs&rtt=10\+ms/, { timeout: 1000 });
  }).toPass();
});

test("keeps what it has computed, and follows the last move of the slider", async ({ page }) => {
  await visit(page, SMALL.replace("buffer=50+KB", "buffer=2+bdp"));
  await slow(page.getByText(/^81 paths\./)).toBeVisible();
  const slider = page.getByRole("slider", { name: "Buffer" });
  await slider.focus();
  for (let press = 0; press < 20; press += 1) await page.keyboard.press("ArrowRight");
  await expect(page.getByRole("textbox", { name: "Buffer, as text" })).not.toHaveValue("2 bdp");
  await slow(page.getByText(/^81 paths\./)).toBeVisible();
  const moved = await page.getByText(/^81 paths\./).textContent();
  await page.getByRole("textbox", { name: "Buffer, as text" }).fill("2 bdp");
  await page.keyboard.press("Enter");
  await slow(page.getByText(/^81 paths\./)).toBeVisible();
  expect(moved).not.toBeNull();
  await expect(page).toHaveURL(/buffer=2\+bdp/);
});

test("says what is wrong as the command line does", async ({ page }) => {
  await visit(page, `${SMALL}&queue=lifo`);
  await slow(page.getByRole("alert").first()).toContainText("path.queue");
  await visit(page, SMALL.replace("x-low=1+Mbit%2Fs", "x-low=fast"));
  await expect(page.getByText("write rates, e.g. 1 Mbit/s")).toBeVisible();
});

test("exports the picture, the numbers and the command", async ({ page }) => {
  await visit(page, `${SMALL}&length=full`);
  await slow(page.getByText(/^81 paths\./)).toBeVisible();
  await page.getByText("Export", { exact: true }).click();
  const csv = (await saved(page, () => page.getByRole("button", { name: "CSV" }).click())).bytes.toString();
  expect(csv.split("\r\n")).toHaveLength(81 + 2);
  // A map has many paths: neither the one of the form, which is not asked for here, nor another is its scenario.
  await expect(page.getByRole("button", { name: "Scenario (TOML)" })).toHaveCount(0);
  await expect(page.getByRole("region", { name: "the command line", exact: true })).toHaveCount(0);
  await expect(page.getByRole("region", { name: "the lines of Python" })).toHaveCount(0);
  const svg = (await saved(page, () => page.getByRole("button", { name: "SVG" }).click())).bytes.toString();
  expect(svg).toMatch(/^<svg xmlns/);
  expect(svg).not.toContain("var(--");
  await expect(page.getByRole("region", { name: "the map on the command line" })).toHaveText(
    "fullpipe map --x='rate=1 Mbit/s..8 Mbit/s' --y='rtt=10 ms..40 ms' --buffer='50 KB' --for=throughput --candidates=bbr3 --candidates=cubic --steps=9 --seeds=1",
  );
});
