import { readFileSync } from "node:fs";

import { digits, type Claim } from "../../src/views/gallery/measure";
import { expect, slow, test, visit } from "./lab";

const { claims } = JSON.parse(readFileSync(new URL("../../src/views/gallery/claims.json", import.meta.url), "utf8")) as { claims: Claim[] };

for (const claim of claims) {
  test(`shows of ${claim.id} what the command line computes`, async ({ page }) => {
    await visit(page, `gallery?claim=${claim.id}`);
    await expect(page.getByRole("heading", { name: claim.title, level: 2 })).toBeVisible();
    await page.getByText("As a table").click();
    for (const number of claim.numbers) {
      const row = page.getByRole("row", { name: `${number.name}, ${number.unit}` });
      await slow(row.getByRole("cell").first()).toHaveText(digits(number.simulated));
    }
    await expect(page.locator(".gallery-charts canvas").first()).toBeVisible();
  });
}

test("computes a changed scenario, and names what is wrong with it", async ({ page }) => {
  await visit(page, "gallery?claim=queue16.fig5");
  await page.getByText("As a table").click();
  const cell = page.getByRole("row", { name: /bbr1, ms/ }).getByRole("cell").first();
  await slow(cell).toHaveText("46.7");
  const scenario = page.getByRole("textbox", { name: "Scenario in TOML" });
  const text = await scenario.inputValue();
  await scenario.fill(text.replace('rtt = "40.0 ms"', 'rtt = "40 parsecs"'));
  await scenario.blur();
  await slow(page.getByRole("alert")).toContainText('path.rtt: "40 parsecs"');
  await scenario.fill(text.replace('rtt = "40.0 ms"', 'rtt = "20 ms"'));
  await scenario.blur();
  await slow(page.getByRole("alert")).toHaveCount(0);
  await slow(cell).not.toHaveText("46.7");
  await expect(page.getByText("The scenario is changed")).toBeVisible();
  await page.getByRole("button", { name: "As it was" }).click();
  await slow(cell).toHaveText("46.7");
});

test("goes from claim to claim, and the link follows", async ({ page }) => {
  await visit(page, "gallery");
  const [first, second] = claims;
  await expect(page.getByRole("heading", { level: 2 })).toHaveText(first?.title ?? "");
  await page.getByRole("button", { name: "Next claim" }).click();
  await expect(page.getByRole("heading", { level: 2 })).toHaveText(second?.title ?? "");
  await expect(page).toHaveURL(new RegExp(`claim=${second?.id ?? ""}`));
  await page.getByRole("button", { name: "Open in Packets" }).click();
  await expect(page).toHaveURL(/#\/packets\?toml=/);
});

test("shows the first claim where the link names none that is known", async ({ page }) => {
  await visit(page, "gallery?claim=%3Cimg+src%3Dx%3E");
  await expect(page.getByRole("heading", { level: 2 })).toHaveText(claims[0]?.title ?? "");
  const message = page.getByText("claim is “<img src=x>”, there is no such claim, so the first one is shown");
  await expect(message).toBeVisible();
  await page.getByRole("button", { name: "Next claim" }).click();
  await expect(message).toHaveCount(0);
});

test("says how many of the flows are drawn, and how to read goodput", async ({ page }) => {
  await visit(page, "gallery?claim=anrw24.ecn");
  await slow(page.getByText("5 of 6 flows are drawn (marked).")).toBeVisible();
  await expect(page.getByText("5 of 6 flows are drawn (not marked).")).toBeVisible();
  await visit(page, "gallery?claim=rfc7928.unresponsive");
  await slow(page.getByText("Goodput counts bytes that arrive in order")).toBeVisible();
});
