// How fast the engine is: natively, in node, and in a headless browser, one after another on the same machine.
//
// NATIVE is the example `speed` of crates/wasm, CHROMIUM a browser; without one of them its column is left out.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { Wasm } from "../src/engine/wasm";
import { CASES, measure, type Measured } from "./cases";

const lab = process.cwd();

function native(): (number | undefined)[] {
  const program = process.env["NATIVE"] ?? "";
  if (program === "") return CASES.map(() => undefined);
  const message = execFileSync(program, { input: JSON.stringify(CASES), maxBuffer: 1 << 26 }).toString();
  return JSON.parse(message) as number[];
}

async function inNode(): Promise<Measured[]> {
  const engine = new Wasm(new WebAssembly.Module(readFileSync(`${lab}/src/engine/engine.wasm`)));
  const measured: Measured[] = [];
  for (const one of CASES) measured.push(await measure(one, engine));
  return measured;
}

async function inBrowser(): Promise<(Measured | undefined)[]> {
  const executablePath = process.env["CHROMIUM"] ?? "";
  if (executablePath === "") return CASES.map(() => undefined);
  const { build, preview } = await import("vite");
  const { chromium } = await import("@playwright/test");
  const outDir = `${lab}/node_modules/.bench`;
  await build({ root: `${lab}/bench`, base: "./", configFile: false, logLevel: "error", build: { outDir, emptyOutDir: true, target: "es2022" }, worker: { format: "es" } });
  const server = await preview({ root: `${lab}/bench`, configFile: false, logLevel: "error", build: { outDir }, preview: { port: 0, host: "127.0.0.1" } });
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  try {
    const page = await browser.newPage();
    await page.goto(server.resolvedUrls?.local[0] ?? "");
    return (await page.evaluate("measured")) as Measured[];
  } finally {
    await browser.close();
    await server.close();
  }
}

const columns = { native: native(), node: await inNode(), browser: await inBrowser() };
const rows = CASES.map((one, index) => {
  const packets = columns.node[index]?.packets ?? 0;
  const message = (ms: number | undefined) => (ms === undefined ? "-" : `${ms.toFixed(2)} ms, ${(packets / ms / 1e3).toFixed(1)} M/s`);
  const ratio = (ms: number | undefined) => {
    const native = columns.native[index];
    return ms === undefined || native === undefined ? "-" : (ms / native).toFixed(2);
  };
  const node = columns.node[index]?.best_ms;
  const browser = columns.browser[index]?.best_ms;
  return { case: one.name, packets, native: message(columns.native[index]), node: message(node), "node/native": ratio(node), browser: message(browser), "browser/native": ratio(browser), "first in browser": `${columns.browser[index]?.first_ms.toFixed(0) ?? "-"} ms` };
});
console.table(rows);
console.log(`engine.wasm: ${String(readFileSync(fileURLToPath(new URL("file://" + lab + "/src/engine/engine.wasm"))).length)} bytes; packets a second are data packets sent`);
