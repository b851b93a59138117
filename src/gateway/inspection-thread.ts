import { parentPort } from "node:worker_threads";
import { createBodyCheck, type BodyCheck } from "./bodies/check.ts";
import { operations } from "./bodies/operations.ts";
import type { FromThread, ToThread } from "./inspector.ts";
import { RequestRefusedError } from "./refusal.ts";

/** The thread in which bodies are read, beside the event loop that serves everybody: what it holds of one is a few names. */
const checks = new Map<number, BodyCheck>();
const tell = (message: FromThread): void => parentPort?.postMessage(message, []);

parentPort?.on("message", (message: ToThread) => {
  const { id } = message;
  try {
    if (message.kind === "begin") {
      checks.set(id, createBodyCheck({ ...message, operation: operations[message.operation] }));
      return;
    }
    if (message.kind === "drop") {
      checks.delete(id);
      return;
    }
    const check = checks.get(id);
    if (message.kind === "chunk") {
      check?.push(message.chunk);
      tell({ id, kind: "read" });
      return;
    }
    checks.delete(id);
    if (check !== undefined) tell({ id, kind: "understood", body: check.end() });
  } catch (error) {
    checks.delete(id);
    const status = error instanceof RequestRefusedError ? error.status : 500;
    tell({ id, kind: "refused", status, message: error instanceof Error ? error.message : String(error) });
  }
});
