// Tests of the page in a real browser, as `fullpipe lab` hands it out.
//
// CHROMIUM is the browser; without it, Playwright's own. FULLPIPE is the command; LAB_PORT a port that is free.

import { defineConfig } from "@playwright/test";

const port = process.env["LAB_PORT"] ?? "8719";
const chromium = process.env["CHROMIUM"] ?? "";

export default defineConfig({
  testDir: "tests/browser",
  forbidOnly: true,
  // The engine takes all cores.
  workers: 1,
  reporter: "list",
  timeout: 60_000,
  use: {
    baseURL: `http://127.0.0.1:${port}/`,
    // Chromium's own sandbox needs rights that containers do not have; the page is ours.
    launchOptions: { args: ["--no-sandbox"], ...(chromium === "" ? {} : { executablePath: chromium }) },
  },
  webServer: {
    command: `"${process.env["FULLPIPE"] ?? "fullpipe"}" lab --port ${port} --no-browser`,
    url: `http://127.0.0.1:${port}/`,
    reuseExistingServer: false,
  },
});
