import js from "@eslint/js";
import solid from "eslint-plugin-solid/configs/typescript";
import ts from "typescript-eslint";

export default ts.config(
  { ignores: ["dist", "playwright-report", "test-results", "*.config.*"] },
  js.configs.recommended,
  ...ts.configs.strict,
  { files: ["**/*.{ts,tsx}"], ...solid },
  { rules: { "@typescript-eslint/no-non-null-assertion": "error", eqeqeq: "error" } },
);
