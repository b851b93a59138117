import { describe, expect, it } from "vitest";
import { createService, joinServices, type Service } from "./service.ts";

/** A service that notes its calls. */
function noted(calls: string[], name = "it", parts: Partial<Service> = {}): Service {
  return createService({
    async start() {
      calls.push(`start ${name}`);
      await parts.start?.();
    },
    async stop() {
      calls.push(`stop ${name}`);
      await parts.stop?.();
    },
  });
}

describe("a service", () => {
  it("starts once and stops once, however often it is asked", async () => {
    const calls: string[] = [];
    const service = noted(calls);
    await Promise.all([service.start(), service.start()]);
    await service.start();
    await Promise.all([service.stop(), service.stop()]);
    await service.stop();
    expect(calls).toEqual(["start it", "stop it"]);
  });

  it("that never started can be stopped, and stays stopped", async () => {
    const calls: string[] = [];
    const service = noted(calls);
    await service.stop();
    await service.stop();
    await service.start();
    expect(calls).toEqual([]);
  });

  it("that is stopped while it starts is stopped once it has started", async () => {
    const calls: string[] = [];
    const starting = Promise.withResolvers<void>();
    const service = noted(calls, "it", { start: () => starting.promise });
    const started = service.start();
    const stopped = service.stop();
    expect(calls).toEqual(["start it"]);
    starting.resolve();
    await started;
    await stopped;
    expect(calls).toEqual(["start it", "stop it"]);
  });

  it("that could not start rejects to its caller, and is stopped all the same", async () => {
    const calls: string[] = [];
    const service = noted(calls, "it", { start: () => Promise.reject(new Error("the port is taken")) });
    await expect(service.start()).rejects.toThrow("the port is taken");
    await service.stop();
    expect(calls).toEqual(["start it", "stop it"]);
  });
});

describe("joined services", () => {
  it("start in order and stop in reverse order, each even if another fails", async () => {
    const calls: string[] = [];
    const joined = joinServices([
      noted(calls, "one"),
      noted(calls, "two", { stop: () => Promise.reject(new Error("no answer")) }),
      noted(calls, "three"),
    ]);
    await joined.start();
    await expect(joined.stop()).rejects.toThrow("no answer");
    expect(calls).toEqual(["start one", "start two", "start three", "stop three", "stop two", "stop one"]);
  });

  it("stop those that had started if a later one could not start", async () => {
    const calls: string[] = [];
    const joined = joinServices([
      noted(calls, "one"),
      noted(calls, "two", { start: () => Promise.reject(new Error("the port is taken")) }),
      noted(calls, "three"),
    ]);
    await expect(joined.start()).rejects.toThrow("the port is taken");
    await joined.stop();
    expect(calls).toEqual(["start one", "start two", "stop two", "stop one"]);
  });
});
