import { defineConfig } from "vitest/config";
import solid from "vite-plugin-solid";

// Relative addresses: the folder works below any path of any web server.
export default defineConfig({
  base: "./",
  plugins: [solid()],
  build: { target: "es2022", sourcemap: false, chunkSizeWarningLimit: 800, assetsInlineLimit: 0 },
  worker: { format: "es" },
  test: { include: ["src/**/*.test.ts", "tests/unit/**/*.test.ts"], environment: "node" },
});
