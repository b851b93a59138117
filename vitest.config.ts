import { defineConfig } from "vitest/config";
import { LongestFirst } from "./test/longest-first.ts";

/** Suites that need no surroundings: they read the sources, or run programs that take no more than a folder. */
const sourceSuites = [
  "test/architecture.test.ts",
  "test/chaos/verify-loop.test.ts",
  "test/conversations/rest.test.ts",
  "test/dashboards.test.ts",
  "test/deployment.test.ts",
  "test/docstrings.test.ts",
  "test/documentation.test.ts",
  "test/inbound/**/*.test.ts",
  "test/programs/*.test.ts",
];

export default defineConfig({
  test: {
    // The provider of the sign-in tests says at length that it is set up for tests.
    onConsoleLog: (log) => !log.includes("oidc-provider"),
    // Real databases, browsers and harnesses run in these suites, and each waits more than a third of its time: two cores carry four.
    maxWorkers: 4,
    sequence: { sequencer: LongestFirst },
    // For what hangs: no test says by its time how fast a machine is.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 180_000 } },
    setupFiles: ["./test/property-seed.ts"],
    reporters: ["default", "./test/count-reporter.ts"],
    projects: [
      { extends: true, test: { name: "unit", include: ["src/**/*.test.{ts,tsx}", ...sourceSuites] } },
      {
        extends: true,
        test: {
          name: "integration",
          include: ["test/**/*.test.ts"],
          exclude: sourceSuites,
          globalSetup: "test/global-setup.ts",
        },
      },
    ],
  },
});
