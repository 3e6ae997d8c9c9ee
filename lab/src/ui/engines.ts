// The engines of the page: each begun when it is first needed, and kept for the visit.

import { createResource, createRoot } from "solid-js";

import { createEngine, createPool, type Pool } from "../engine/client";
import type { Engine } from "../engine/protocol";

let engine: Engine | undefined;
let pool: Pool | undefined;

/** The engine that knows the catalogue, and in which live runs go on. */
export function pageEngine(): Engine {
  engine ??= createEngine();
  return engine;
}

/** Engines for whole runs: one for each core, but at least two, so that two controllers run side by side. */
export function pagePool(): Pool {
  pool ??= createPool(Math.min(Math.max(navigator.hardwareConcurrency, 2), 8));
  return pool;
}

/** What the engine knows; undefined until it has answered. It is asked once a visit. */
export const [catalogue] = createRoot(() => createResource(() => pageEngine().catalogue()));
