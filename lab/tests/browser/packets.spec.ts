import type { Page } from "@playwright/test";

import { expect, QUICK, saved, slow, test, visit } from "./lab";

const graph = (page: Page) => page.getByRole("application", { name: "Time-sequence graph" });

test("shows retransmissions, SACKs and drops of a flow", async ({ page }) => {
  await visit(page, `packets?${QUICK}&loss=2+%25&cc=cubic`);
  await slow(graph(page)).toBeVisible();
  for (const kind of ["data", "SACK", "found lost", "retransmission", "dropped on the path"]) {
    const box = page.getByRole("checkbox", { name: new RegExp(`^${kind} [1-9]`) });
    await expect(box).toBeChecked();
  }
});

test("goes from event to event and zooms by keyboard alone", async ({ page }) => {
  await visit(page, `packets?${QUICK}&loss=2+%25&cc=cubic`);
  await slow(graph(page)).toBeVisible();
  await graph(page).focus();
  const wording = page.locator(".sequence-said");
  await page.keyboard.press("n");
  await expect(wording).toContainText(/bytes [\d,]+ to [\d,]+, at [\d.]+ s/);
  const first = await wording.textContent();
  await page.keyboard.press("n");
  await expect(wording).not.toHaveText(first ?? "");
  await page.keyboard.press("p");
  await expect(wording).toHaveText(first ?? "");
  const window_ = page.locator(".sequence-window");
  const whole = await window_.getAttribute("style");
  await page.keyboard.press("+");
  await expect(window_).not.toHaveAttribute("style", whole ?? "");
  const near = await window_.getAttribute("style");
  await page.keyboard.press("ArrowRight");
  await expect(window_).not.toHaveAttribute("style", near ?? "");
  await page.keyboard.press("0");
  await expect(window_).toHaveAttribute("style", whole ?? "");
});

test("zooms by wheel and moves by drag without scrolling the page", async ({ page }) => {
  await visit(page, `packets?${QUICK}`);
  await slow(graph(page)).toBeVisible();
  const box = await graph(page).boundingBox();
  const [x, y] = [(box?.x ?? 0) + 300, (box?.y ?? 0) + 200];
  const window_ = page.locator(".sequence-window");
  const whole = await window_.getAttribute("style");
  await page.mouse.move(x, y);
  await page.mouse.wheel(0, -600);
  await expect(window_).not.toHaveAttribute("style", whole ?? "");
  expect(await page.evaluate(() => scrollY)).toBe(0);
  const near = await window_.getAttribute("style");
  await page.mouse.down();
  await page.mouse.move(x - 80, y, { steps: 4 });
  await page.mouse.up();
  await expect(window_).not.toHaveAttribute("style", near ?? "");
  await page.getByRole("button", { name: "Reset", exact: true }).last().click();
  await expect(window_).toHaveAttribute("style", whole ?? "");
});

test("shows each flow of each run", async ({ page }) => {
  await visit(page, `packets?${QUICK}&cc=bbr3&cc=cubic&with=1+reno`);
  await slow(graph(page)).toBeVisible();
  await page.getByRole("combobox", { name: "Run" }).selectOption({ label: "cubic" });
  await expect(page).toHaveURL(/run=1/);
  await page.getByRole("combobox", { name: "Flow" }).selectOption({ label: "reno" });
  await expect(page).toHaveURL(/flow=1/);
  await slow(graph(page)).toBeVisible();
  await page.getByRole("combobox", { name: "Paths" }).selectOption({ label: "all controllers on one path" });
  await slow(page.getByRole("combobox", { name: "Flow" }).getByRole("option")).toHaveCount(3);
});

test("exports what is in view, and logs", async ({ page }) => {
  await visit(page, `packets?${QUICK}&loss=2+%25&cc=cubic`);
  await slow(graph(page)).toBeVisible();
  await page.getByText("Export", { exact: true }).click();
  const csv = (await saved(page, () => page.getByRole("button", { name: "CSV" }).click())).bytes.toString().trim().split("\r\n");
  expect(csv[0]).toBe("time [s],what,start [bytes],end [bytes]");
  expect(csv.filter((line) => line.includes("retransmission")).length).toBeGreaterThan(0);
  const svg = (await saved(page, () => page.getByRole("button", { name: "SVG" }).click())).bytes.toString();
  expect(svg).toContain("<title>retransmission</title>");
  const current = await saved(page, () => page.getByRole("button", { name: "qlog", exact: true }).click());
  expect(current.name).toMatch(/\.qlog$/);
  const qvis = await saved(page, () => page.getByRole("button", { name: "qlog for qvis" }).click());
  expect(JSON.parse(qvis.bytes.toString())).toHaveProperty("traces");
});

/** The first question for packets is never answered: that takes long on every machine. */
async function stuck(page: Page): Promise<void> {
  await page.addInitScript(() => {
    let first = true;
    const workers = Worker.prototype as { postMessage: (this: Worker, message: { method?: string }) => void };
    const send = workers.postMessage;
    workers.postMessage = function (message) {
      if (message.method !== "packets" || !first) send.call(this, message);
      else first = false;
    };
  });
}

test("can be cancelled while it takes long, and begun again", async ({ page }) => {
  await stuck(page);
  await visit(page, `packets?${QUICK}&cc=cubic`);
  await expect(page.getByText("Computing …")).toBeVisible();
  await page.getByRole("button", { name: "Cancel" }).click();
  await expect(page.getByText("Cancelled.")).toBeVisible();
  await expect(page.getByRole("button", { name: "Cancel" })).toHaveCount(0);
  await page.getByRole("button", { name: "Compute again" }).click();
  await slow(graph(page)).toBeVisible();
  await expect(page.getByText("Cancelled.")).toHaveCount(0);
});

test("gives up what takes long for what is asked for next", async ({ page }) => {
  await stuck(page);
  await visit(page, `packets?${QUICK}&cc=cubic`);
  await expect(page.getByRole("button", { name: "Cancel" })).toBeVisible();
  await visit(page, `packets?${QUICK}&cc=reno`);
  await slow(graph(page)).toBeVisible();
  await expect(page.getByRole("button", { name: "Cancel" })).toHaveCount(0);
});
