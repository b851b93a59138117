import type { ForgeEvent } from "../automations/forge-event.ts";
import { findMention } from "./mention.ts";
import { happeningOf } from "./happening.ts";

/**
 * What src/store/sql/triggers/steers.sql looks up when an event arrives, to tell at little cost whether it may give a session more work: whether it
 * calls Offstage by name, and the pull requests, the branch and the commit that it is about.
 */
export interface SteeringHint {
  readonly isCalled: boolean;
  readonly numbers: readonly number[];
  readonly branch: string | null;
  readonly sha: string | null;
}

/** @param mention the word that calls Offstage. @returns null if the event steers nothing, whatever there is */
export function steeringHintOf(event: ForgeEvent, mention: string): SteeringHint | null {
  const read = happeningOf(event);
  if (read === null) return null;
  const { where, happening } = read;
  if (happening.type === "said" && findMention(happening.body, mention) !== null)
    return { isCalled: true, numbers: [], branch: null, sha: null };
  const hint = { isCalled: false, numbers: [], branch: null, sha: null };
  if (where.kind === "branch") return { ...hint, branch: where.branch };
  if (where.kind === "checks") return { ...hint, numbers: where.numbers, branch: where.branch, sha: where.sha };
  if (where.kind === "issue") return null;
  const saysNothing = happening.type === "said" && !happening.asksForChanges && happening.group === null;
  // Its pull request may not be recorded yet, while the commit that its mark names is.
  const sha = happening.type === "said" ? (happening.mark?.sha ?? null) : null;
  return saysNothing ? null : { ...hint, numbers: [where.number], sha };
}
