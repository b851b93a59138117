import { execFileSync } from "node:child_process";
import type { Attempt } from "../../../src/worker/attempt/attempt.ts";
import { createCheckpointer } from "../../../src/worker/checkpoints/checkpointer.ts";
import type { Clone } from "../../../src/worker/clones/clone.ts";
import { exportWork } from "../../../src/worker/steps/export-work.ts";
import { openPullRequests } from "../../../src/worker/steps/open-pull-requests.ts";
import { push } from "../../../src/worker/steps/push.ts";
import type { StepServices } from "./step-world.ts";

/** The folder of a session's first clone. */
export const folderOf = (clones: readonly Clone[]): string => clones[0]?.folder ?? "";

/** git as the agent runs it in the first clone. @returns its stdout */
export function gitIn(clones: readonly Clone[], ...parameters: string[]): string {
  const identity = ["-c", "user.name=Agent", "-c", "user.email=agent@example.com"];
  return execFileSync("git", ["-C", folderOf(clones), ...identity, ...parameters], { encoding: "utf8" }).trim();
}

/** Takes the work out, pushes it, and opens its pull request. */
export async function publish(attempt: Attempt, services: StepServices, clones: readonly Clone[]) {
  const works = await exportWork(attempt, services, clones);
  const { pushed, collided } = await push(
    attempt,
    services,
    works.filter(({ isChanged }) => isChanged),
  );
  await openPullRequests(attempt, services, pushed, "");
  return { works, pushed, collided };
}

/** Takes one checkpoint. @returns whether everything is stored */
export async function takeCheckpoint(
  attempt: Attempt,
  services: StepServices,
  clones: readonly Clone[],
): Promise<boolean> {
  const checkpointer = createCheckpointer(attempt, services);
  checkpointer.start(clones);
  const isStored = await checkpointer.take();
  await checkpointer.stop();
  return isStored;
}
