import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    // Real databases, browsers and harnesses run in these suites: two at a time is what a small machine carries.
    maxWorkers: 2,
    testTimeout: 90_000,
    hookTimeout: 90_000,
    reporters: ["default", "./test/count-reporter.ts"],
    projects: [
      { extends: true, test: { name: "unit", include: ["src/**/*.test.{ts,tsx}"] } },
      {
        extends: true,
        test: { name: "integration", include: ["test/**/*.test.ts"], globalSetup: "test/global-setup.ts" },
      },
    ],
  },
});
