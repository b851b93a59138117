import { expect, test } from "vitest";
import { createService } from "../lifecycle/service.ts";
import { createShutdown } from "./shutdown.ts";

test("what was started last stops first, each once", async () => {
  const stopped: string[] = [];
  const shutdown = createShutdown();
  for (const name of ["database", "api", "worker"]) shutdown.add(() => void stopped.push(name));
  await shutdown.run();
  await shutdown.run();
  expect(stopped).toEqual(["worker", "api", "database"]);
});

test("one that fails keeps none of the others from stopping, and is reported", async () => {
  const stopped: string[] = [];
  const shutdown = createShutdown();
  shutdown.add(() => void stopped.push("database"));
  shutdown.add(() => Promise.reject(new Error("no answer")));
  shutdown.add(() => void stopped.push("worker"));
  await expect(shutdown.run()).rejects.toThrow("no answer");
  expect(stopped).toEqual(["worker", "database"]);
});

test("a service whose start fails halfway stops with the others", async () => {
  const stopped: string[] = [];
  const shutdown = createShutdown();
  shutdown.add(() => void stopped.push("database"));
  const api = createService({
    start: () => Promise.reject(new Error("the port is taken")),
    stop: () => Promise.resolve(void stopped.push("api")),
  });
  await expect(shutdown.start(api)).rejects.toThrow("the port is taken");
  await shutdown.run();
  expect(stopped).toEqual(["api", "database"]);
});
