import { expect, QUICK, saved, slow, test, visit } from "./lab";

test("a picture is a real PNG at twice the size, and a drawing in vectors", async ({ page }) => {
  await visit(page, "gallery?claim=queue16.fig4");
  await slow(page.locator(".gallery-charts canvas").first()).toBeVisible();
  await page.getByText("Export", { exact: true }).click();
  const png = await saved(page, () => page.getByRole("button", { name: "PNG" }).click());
  expect(png.name).toBe("in-flight.png");
  expect(png.bytes.subarray(1, 4).toString()).toBe("PNG");
  // Width and height are in the first chunk.
  expect([png.bytes.readUInt32BE(16), png.bytes.readUInt32BE(20)]).toEqual([1800, 760]);
  const svg = (await saved(page, () => page.getByRole("button", { name: "SVG" }).click())).bytes.toString();
  expect(svg.match(/<path /g)?.length).toBeGreaterThanOrEqual(2);
  expect(svg).not.toMatch(/<image|var\(--/);
  const csv = (await saved(page, () => page.getByRole("button", { name: "CSV" }).click())).bytes.toString();
  expect(csv).toContain('time [s],"In flight, bbr1 [bytes]","In flight, cubic [bytes]"');
  await expect(page.getByRole("status").filter({ hasText: "Saved in-flight.csv." })).toBeVisible();
});

test("the scenario, the command and the lines of Python are of the setup that is seen", async ({ page }) => {
  await visit(page, `packets?${QUICK}&cc=bbr1&cc=reno`);
  await page.getByText("Export", { exact: true }).click();
  await expect(page.getByRole("region", { name: "the command line" })).toHaveText(
    "fullpipe compare bbr1 reno --rate='5 Mbit/s' --rtt='20 ms' --duration='2 s' --seeds=1",
  );
  await expect(page.getByRole("region", { name: "the lines of Python" })).toContainText('["bbr1", "reno"],');
  const toml = await saved(page, () => page.getByRole("button", { name: "Scenario (TOML)" }).click());
  expect(toml.name).toBe("lab.toml");
  expect(toml.bytes.toString()).toContain('compare = ["bbr1", "reno"]');
});

test("the link that is copied leads to the same", async ({ page, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await visit(page, `packets?${QUICK}&cc=bbr1&cc=reno&run=1`);
  await page.getByText("Export", { exact: true }).click();
  await page.getByRole("button", { name: "Copy link" }).click();
  await expect(page.getByText("Copied the link.")).toBeVisible();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  expect(link).toBe(page.url());
  await page.goto("about:blank");
  await page.goto(link);
  await slow(page.getByRole("combobox", { name: "Run" })).toHaveValue("1");
});

for (const [view, form] of [["live", "shared"], ["compare", "comparison"]] as const) {
  test(`${view} exports what it shows`, async ({ page }) => {
    await visit(page, `${view}?${QUICK}&cc=bbr3&cc=reno`);
    await slow(page.locator("main canvas").last()).toBeVisible();
    await page.getByText("Export", { exact: true }).click();
    await slow(page.getByRole("button", { name: "SVG" })).toBeVisible();
    const svg = (await saved(page, () => page.getByRole("button", { name: "SVG" }).click())).bytes.toString();
    expect(svg).toContain("bbr3");
    const command = page.getByRole("region", { name: "the command line" });
    await expect(command).toContainText(form === "shared" ? "fullpipe run lab.toml --seed 1" : "fullpipe compare bbr3 reno --rate='5 Mbit/s'");
    const log = await saved(page, () => page.getByRole("button", { name: "qlog", exact: true }).click());
    expect(log.bytes.length).toBeGreaterThan(1000);
  });
}
