import { obey } from "../end-to-end/script.ts";
import type { Action, Script } from "../model/server.ts";

/** Numbers of CI runs on the pull request of the n-th piece of work begin after this. */
export const firstRun = 1_000_000;

/** What the agent writes if the n-th work's check is red. */
export const mended = (number: number): string => `loop-${number}-check.txt`;

/** The beginning of the last message of the feedback loop, if the conversation so far is repeated in front of it. */
const ofTheLoop = /^(?:.* wrote in a comment on|.* reviewed pull request #|On your last commit)/gmu;

/**
 * The agent of the chaos obeys its prompt, of what reviewers say every order, and of a red check what its CI run's address says: the log
 * may not be read while the forge is failing. Its last words name each file, so that it is seen where they are shown.
 */
export const script: Script = (message) => {
  const begin = [...message.matchAll(ofTheLoop)].at(-1)?.index;
  if (begin === undefined) return obey(message);
  const asked = message.slice(begin);
  const orders: string[] = asked.match(/^write [^\n]*/gmu) ?? [];
  const [, run] = /\/runs\/(\d+)"/u.exec(asked) ?? [];
  if (run !== undefined) orders.push(`write ${mended(Number(run) - firstRun)}: green, then shell sleep 0.5`);
  const actions: Action[] = orders.flatMap((order) => obey(order).slice(0, -1));
  const files = orders.map((order) => /^write ([^:]*)/u.exec(order)?.[1]);
  return [...actions, { say: `Wrote ${files.join(" and ")}.` }];
};
