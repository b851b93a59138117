import { expect, test } from "vitest";
import type { Attempt } from "../attempt/attempt.ts";
import { beginEarly, type EarlyStartServices } from "./begin-early.ts";
import type { Launch } from "./launch.ts";
import type { WarmPool } from "./warm-pool.ts";

const attempt = {
  session: { sessionId: "s", harness: null, workspaceWorker: null, gate: null },
} as unknown as Attempt;

/** A pool in which nothing can be started early, or it is not known yet. */
async function begun(pool: Pick<WarmPool, "isTried" | "isOn">, more: Partial<Launch> = {}, isKept = false) {
  const [wanted, counted]: [Launch[], string[]] = [[], []];
  const services = {
    metrics: { harnessStarted: (outcome: string) => counted.push(outcome) },
    folders: { isKept: () => isKept },
    gateways: { prepare: () => undefined },
  } as unknown as EarlyStartServices;
  const asked = { ...pool, problem: "no", want: (launch: Launch) => wanted.push(launch) } as unknown as WarmPool;
  const launch = { variables: {}, registries: [], ...more } as unknown as Launch;
  expect(await beginEarly(attempt, services, asked, launch)).toBeNull();
  return { wanted: wanted.length, counted };
}

test("a session that begins before it is known whether sandboxes can be kept ready asks for one", async () => {
  expect(await begun({ isTried: false, isOn: true })).toEqual({ wanted: 1, counted: ["none"] });
  expect(await begun({ isTried: false, isOn: true }, { variables: { A: "1" } })).toEqual({
    wanted: 0,
    counted: ["different"],
  });
  expect(await begun({ isTried: false, isOn: true }, {}, true)).toEqual({ wanted: 0, counted: ["notFirst"] });
});

test("where none can be kept ready, that is counted", async () => {
  expect((await begun({ isTried: true, isOn: true })).counted).toEqual(["off"]);
  expect(await begun({ isTried: false, isOn: false })).toEqual({ wanted: 0, counted: ["off"] });
});
