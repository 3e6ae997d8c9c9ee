// Every view loads under the policy of `fullpipe lab`, and asks nobody but the server that it came from.

import { expect, test } from "@playwright/test";

for (const view of ["live", "compare", "map", "packets", "gallery"]) {
  test(`${view} needs nothing but its own server, and no more rights than it has`, async ({ page, baseURL }) => {
    const complaints: string[] = [];
    const asked: string[] = [];
    page.on("console", (wording) => {
      if (wording.type() === "error") complaints.push(wording.text());
    });
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("request", (request) => asked.push(request.url()));
    await page.goto(`#/${view}`);
    await expect(page.getByRole("main")).toBeVisible();
    await page.waitForLoadState("networkidle");
    expect(complaints).toEqual([]);
    expect(asked.length).toBeGreaterThan(1);
    expect(asked.filter((url) => !/^(blob|data):/.test(url) && !url.startsWith(baseURL ?? "-"))).toEqual([]);
  });
}
