import type { Subject } from "../answers/answer.ts";
import { forgeEventNames, forgeEventSchema, type ForgeEvent } from "./forge-event.ts";

/** Names of events that are about an issue or a pull request. */
const aboutSubjects: ReadonlySet<string> = new Set(
  forgeEventNames.filter((name) => /^(?:issue|pullRequest)\./u.test(name)),
);
/** Names of events that are about a pull request. */
const aboutPullRequests: ReadonlySet<string> = new Set(
  forgeEventNames.filter((name) => name.startsWith("pullRequest.")),
);

/** Whether deliveries of a forge under this name are about an issue or a pull request. */
export function isAboutSubject(name: string): boolean {
  return aboutSubjects.has(name);
}

/** Whether deliveries of a forge under this name are about an issue. */
export function isAboutIssue(name: string): boolean {
  return aboutSubjects.has(name) && !aboutPullRequests.has(name);
}

/** Whether deliveries of a forge under this name are about a pull request. */
export function isAboutPullRequest(name: string): boolean {
  return aboutPullRequests.has(name);
}

/** Parses a stored payload as a forge event; null if it is none. @param payload of a job or session */
export function readForgeEvent(payload: unknown): ForgeEvent | null {
  return forgeEventSchema.safeParse(payload).data ?? null;
}

/** The issue or pull request that an event is about; null: it is about none. */
export function subjectOf({ name, issue, pullRequest }: ForgeEvent): Subject | null {
  if (!aboutSubjects.has(name)) return null;
  if (pullRequest !== undefined) return { kind: "pullRequest", number: pullRequest.number };
  return issue === undefined ? null : { kind: "issue", number: issue.number };
}
