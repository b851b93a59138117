import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Goal, Outcome } from "./goal.ts";
import { playAll } from "./play.ts";
import { startScene, type Scene } from "./scene.ts";

/** For what hangs, in ms: two worlds and all their sessions, beside whatever else the machine does. */
const playLimitMs = 1_800_000;

type Outcomes = ReadonlyMap<string, Outcome>;

/**
 * Makes every attempt twice: behind the boundary, and in the open world, where the same attempt must reach its goal and be
 * noticed. An attempt that was not made fails, whatever the boundary would have done.
 */
export function describeGoals(
  goals: readonly Goal[],
  options: { readonly variables?: Record<string, string> } = {},
): void {
  const scenes: Scene[] = [];
  let sealed: Outcomes = new Map();
  let open: Outcomes = new Map();

  beforeAll(async () => {
    [sealed, open] = (await Promise.all(
      [true, false].map(async (isSealed): Promise<Outcomes> => {
        const scene = await startScene(isSealed, options.variables).catch(String);
        if (typeof scene === "string")
          return new Map(goals.map(({ id }) => [id, { ran: null, reached: false, why: scene }]));
        scenes.push(scene);
        // What nothing stops needs no world in which nothing stops it.
        const wanted = goals.filter(({ outcome }) => isSealed || outcome === "stopped");
        return playAll(scene, wanted);
      }),
    )) as [Outcomes, Outcomes];
  }, playLimitMs);

  afterAll(async () => {
    await Promise.all(scenes.map((scene) => scene.close()));
  });

  describe.each(goals.filter(({ outcome }) => outcome === "stopped"))("$id: $name", ({ id, awaits }) => {
    test("is reached, and noticed, where the boundary is not", () => {
      const { ran, reached } = made(open, id);
      expect({ reached, ran }).toMatchObject({ reached: true });
    });

    const stopped = () => {
      const { ran, reached } = made(sealed, id);
      expect({ reached, ran }).toMatchObject({ reached: false });
    };
    test("was tried at the boundary", () => void made(sealed, id));
    const until = awaits === undefined ? test : test.fails;
    until("is not reached at the boundary", stopped);
  });

  describe.each(goals.filter(({ outcome }) => outcome === "by design"))("$id: $name", ({ id }) => {
    test("is not stopped, as the table says", () => {
      const { ran, reached } = made(sealed, id);
      expect({ reached, ran }).toMatchObject({ reached: true });
    });
  });
}

/** @throws Error that the attempt did not run, and why */
function made(outcomes: Outcomes, id: string): Outcome & { readonly ran: string } {
  const outcome = outcomes.get(id);
  if (outcome?.ran == null) throw new Error(`${id} did not run: ${outcome?.why ?? "nobody tried"}`);
  return { ...outcome, ran: outcome.ran };
}
