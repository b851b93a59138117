import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createTraces, noTraces } from "./traces.ts";

const traces = JSON.stringify(join(import.meta.dirname, "traces.ts"));

/** Whether a process that makes its traces so has loaded the SDK. */
function loadsSdk(settings: unknown): boolean {
  const source = `import { registerHooks } from "node:module";
    const loaded = [];
    registerHooks({ resolve: (name, context, next) => (loaded.push(name), next(name, context)) });
    const { createTraces } = await import(${traces});
    const made = await createTraces(${JSON.stringify(settings)}, () => undefined);
    await made.close();
    console.log(loaded.some((name) => name.startsWith("@opentelemetry/sdk")));`;
  return JSON.parse(execFileSync(process.execPath, ["--input-type=module", "-e", source], { encoding: "utf8" }));
}

test("the SDK is loaded only if spans have somewhere to go", () => {
  expect(loadsSdk(null)).toBe(false);
  expect(loadsSdk({ endpoint: "http://127.0.0.1:1", headers: {}, serviceName: "x", share: 1 })).toBe(true);
});

test("traces that are off have no spans, and the work is done all the same", async () => {
  const off = await createTraces(null, () => undefined);
  expect(off).toBe(noTraces);
  expect(off.begin("x")).toBeNull();
  expect(await off.span("x", {}, (span) => Promise.resolve([span, "done"]))).toEqual([null, "done"]);
});

const settings = { endpoint: "http://127.0.0.1:1", headers: {}, serviceName: "x" };

test("a share of nothing is propagated, so that other nodes send no spans of it either", async () => {
  const none = await createTraces({ ...settings, share: 0 }, () => undefined);
  const span = none.begin("x");
  expect(span?.traceParent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/u);
  span?.end();
  await none.close();
});

test("an unreachable receiver is reported, and does not keep the process from stopping", async () => {
  const errors: Error[] = [];
  const sending = await createTraces({ ...settings, share: 1 }, (error) => errors.push(error));
  await sending.span("x", {}, () => Promise.resolve());
  await sending.close();
  expect(errors).toHaveLength(1);
});
