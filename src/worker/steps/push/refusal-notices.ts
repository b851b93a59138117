import type { RefusedRepository } from "../../../domain/errors/refused-repositories.ts";
import type { Attempt } from "../../attempt/attempt.ts";

/** Reports refusals of repositories on the session's page, while the work on the others is delivered. */
export interface RefusalNotices {
  /** The work may not be pushed: nothing was sent to the repository's forge. */
  notPushed(refused: readonly RefusedRepository[]): Promise<void>;
  /** The forge did not take the work. */
  notTaken(refused: readonly RefusedRepository[]): Promise<void>;
}

/** Notices of one publishing: the same is said once, however often it comes up again. */
export function createRefusalNotices({ mask, emit }: Pick<Attempt, "mask" | "emit">): RefusalNotices {
  const said = new Set<string>();
  async function say(refused: readonly RefusedRepository[], about: (name: string) => string): Promise<void> {
    for (const { name, error } of refused) {
      const words = `${about(name)}, which holds back no other repository: ${mask.text(error.message)}`;
      const text = words.slice(0, 2_000).toWellFormed();
      if (said.has(text)) continue;
      said.add(text);
      await emit({ type: "notice", data: { level: "warning", text } });
    }
  }
  return {
    notPushed: (refused) => say(refused, (name) => `The work on ${name} may not be pushed`),
    notTaken: (refused) => say(refused, (name) => `${name} did not take the work`),
  };
}
