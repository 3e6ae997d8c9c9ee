import js from "@eslint/js";
import solid from "eslint-plugin-solid/configs/typescript";
import ts from "typescript-eslint";

export default ts.config(
  { ignores: ["dist", "playwright-report", "test-results", "*.config.*"] },
  js.configs.recommended,
  ...ts.configs.strict,
  { files: ["**/*.{ts,tsx}"], ...solid },
  { files: ["public/*.js"], languageOptions: { globals: { document: "readonly", localStorage: "readonly" } } },
  { rules: { "@typescript-eslint/no-non-null-assertion": "error", eqeqeq: "error" } },
);
