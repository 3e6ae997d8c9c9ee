import js from "@eslint/js";
import solid from "eslint-plugin-solid/configs/typescript";
import ts from "typescript-eslint";

export default ts.config(
  { ignores: ["dist", "playwright-report", "test-results", "*.config.*"] },
  js.configs.recommended,
  ...ts.configs.strict,
  { files: ["**/*.{ts,tsx}"], ...solid },
  { files: ["pictures.mjs"], languageOptions: { globals: { document: "readonly", process: "readonly", URL: "readonly" } } },
  { files: ["public/*.js"], languageOptions: { globals: { document: "readonly", localStorage: "readonly" } } },
  { rules: { "@typescript-eslint/no-non-null-assertion": "error", eqeqeq: "error" } },
);
