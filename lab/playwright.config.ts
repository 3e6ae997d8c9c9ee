// Tests of the page in a real browser, as `fullpipe lab` hands it out.
//
// CHROMIUM is the browser; without it, Playwright's own. FULLPIPE is the command. LAB_PORT is a port that is free; without it, one that
// other checkouts that run their tests do not use. Workers read this file, too, and inherit the variable.

import { defineConfig } from "@playwright/test";

const port = (process.env["LAB_PORT"] ??= String(20_000 + (process.pid % 10_000)));
const chromium = process.env["CHROMIUM"] ?? "";

export default defineConfig({
  testDir: "tests/browser",
  forbidOnly: true,
  // The engine takes all cores.
  workers: 1,
  // Of a machine that stalls; what passes only then is listed as flaky.
  retries: 1,
  reporter: "list",
  timeout: 120_000,
  expect: { timeout: 30_000 },
  use: {
    baseURL: `http://127.0.0.1:${port}/`,
    viewport: { width: 1440, height: 900 },
    launchOptions: {
      // Chromium's own sandbox needs rights that containers do not have; the page is ours. The others keep it from calling home.
      args: [
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
      ],
      ...(chromium === "" ? {} : { executablePath: chromium }),
    },
  },
  webServer: {
    command: `"${process.env["FULLPIPE"] ?? "fullpipe"}" lab --port ${port} --no-browser`,
    url: `http://127.0.0.1:${port}/`,
    reuseExistingServer: false,
  },
});
