import type { Reporter, TestModule } from "vitest/node";

/** Ends the run with its count alone on a line, for people and for whatever reads the log. */
export default class CountReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    const count = { passed: 0, failed: unhandledErrors.length, skipped: 0, pending: 0 };
    for (const module of modules) {
      const tests = [...module.children.allTests()];
      for (const test of tests) count[test.result().state] += 1;
      // A file that could not be loaded has no tests, and has failed all the same.
      if (module.state() === "failed" && !tests.some((test) => test.result().state === "failed")) count.failed += 1;
    }
    const skipped = count.skipped === 0 ? "" : `, ${count.skipped} skipped`;
    // On the next turn, so that the line is the last one after the default reporter's summary.
    setImmediate(() => process.stdout.write(`${count.passed} passed, ${count.failed} failed${skipped}\n`));
  }
}
