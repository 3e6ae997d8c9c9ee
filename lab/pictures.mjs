// The pictures of docs/tutorials/lab.md. First `make lab` and `fullpipe lab --no-browser`; then, here: node pictures.mjs [ADDRESS [NAME...]]
//
// CHROMIUM is the browser; without it, Playwright's own.

import { chromium } from "@playwright/test";

const address = process.argv[2] ?? "http://127.0.0.1:8714/";
const folder = new URL("../docs/tutorials/lab/", import.meta.url).pathname;
const wide = { viewport: { width: 1280, height: 860 }, colorScheme: "light" };
const narrow = { viewport: { width: 400, height: 860 }, colorScheme: "dark" };

async function seconds(page, least) {
  await page.waitForFunction((time) => Number(/[\d.]+/.exec(document.querySelector(".clock")?.textContent ?? "0")?.[0]) >= time, least);
}

const PICTURES = [
  ["live", wide, "#/live?cc=bbr3&cc=cubic", (page) => seconds(page, 9)],
  ["compare", wide, "#/compare?cc=bbr1&cc=bbr3&cc=cubic", (page) => page.getByText(/runs, .* packets/).waitFor()],
  ["map", wide, "#/map?cc=bbr3&cc=cubic", (page) => page.getByText(/^289 paths/).waitFor({ timeout: 600_000 })],
  ["packets", wide, "#/packets?cc=cubic&buffer=100+KB", async (page) => {
    await page.getByRole("button", { name: "Next event" }).click();
    for (let times = 0; times < 6; times += 1) await page.getByRole("button", { name: "Zoom in" }).click();
  }],
  ["gallery", wide, "#/gallery?claim=queue16.fig5", (page) => page.getByText("What to see").waitFor()],
  ["narrow", narrow, "#/live?cc=bbr3&cc=cubic", (page) => seconds(page, 6)],
];

const executablePath = process.env.CHROMIUM;
// With names, only these are drawn.
const wanted = process.argv.slice(3);
const browser = await chromium.launch({ args: ["--no-sandbox", "--disable-gpu"], ...(executablePath ? { executablePath } : {}) });
for (const [name, look, fragment, ready] of PICTURES) {
  if (wanted.length > 0 && !wanted.includes(name)) continue;
  const context = await browser.newContext(look);
  const page = await context.newPage();
  await page.goto(address + fragment, { waitUntil: "networkidle" });
  await ready(page);
  // Canvases are drawn in the next frames.
  await page.waitForTimeout(1000);
  await page.screenshot({ path: `${folder}${name}.png` });
  await context.close();
}
await browser.close();
