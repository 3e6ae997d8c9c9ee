// What the browser tests share.

import { expect as strict, test as plain, type Page } from "@playwright/test";

export const VIEWS = ["live", "compare", "map", "packets", "gallery"] as const;

/** A small run: tests do not depend on how fast the machine is. */
export const QUICK = "rate=5+Mbit%2Fs&rtt=20+ms&duration=2+s";

/** Nothing here is a measurement: on a busy machine a page takes its time, and a run more of it. */
export const expect = strict.configure({ timeout: 30_000 });
export const slow = strict.configure({ timeout: 90_000 });

interface Watched {
  /** Every address that was asked for. */
  addresses: string[];
  /** What the page did not catch, and what it complained about. */
  errors: string[];
}

/** A page that is watched: after each test it has thrown nothing and asked no other host. */
export const test = plain.extend<{ watched: Watched }>({
  watched: [
    async ({ page, baseURL }, use, info) => {
      info.setTimeout(240_000);
      const watched: Watched = { addresses: [], errors: [] };
      page.on("request", (request) => watched.addresses.push(request.url()));
      page.on("pageerror", (error) => watched.errors.push(error.message));
      page.on("console", (message) => {
        if (message.type() === "error") watched.errors.push(message.text());
      });
      await use(watched);
      expect(watched.errors).toEqual([]);
      const origin = new URL(baseURL ?? page.url()).origin;
      const strange = watched.addresses.filter((address) => !/^(data|blob):/.test(address) && new URL(address).origin !== origin);
      expect(strange).toEqual([]);
    },
    { auto: true },
  ],
});

/** Goes to a view by its link. */
export async function visit(page: Page, fragment: string): Promise<void> {
  await page.goto(`./#/${fragment}`);
  await expect(page.getByRole("navigation", { name: "Views" })).toBeVisible();
}

/** What is saved when something is pressed: the name, and the content as text. */
export async function saved(page: Page, press: () => Promise<void>): Promise<{ name: string; bytes: Buffer }> {
  const [download] = await Promise.all([page.waitForEvent("download"), press()]);
  const chunks: Buffer[] = [];
  for await (const chunk of await download.createReadStream()) chunks.push(chunk as Buffer);
  return { name: download.suggestedFilename(), bytes: Buffer.concat(chunks) };
}
