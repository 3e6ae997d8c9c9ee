// In the browser: an engine in a worker, as the views have it.

import { createEngine } from "../src/engine/client";
import { CASES, measure, type Measured } from "./cases";

declare global {
  var measured: Promise<Measured[]>;
}

globalThis.measured = (async () => {
  const engine = createEngine();
  const found: Measured[] = [];
  for (const one of CASES) found.push(await measure(one, engine));
  engine.close();
  return found;
})();
