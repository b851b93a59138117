import { z } from "zod";
import type { SessionDetail } from "../domain/sessions/session.ts";
import { sessionStatuses } from "../domain/sessions/status.ts";
import { bounded } from "./answer.ts";

/** Most characters of what an agent said last. */
const longestSummary = 8_000;

/** The fields of a session that a model needs. */
export const briefSessionSchema = z.object({
  sessionId: z.string(),
  title: z.string(),
  status: z.enum(sessionStatuses),
  /** The page where a person can follow it. */
  htmlUrl: z.string(),
  agent: z.string().nullable(),
  repositories: z.array(z.string()),
  branchName: z.string(),
  pullRequests: z.array(z.object({ url: z.string(), state: z.string() })),
  /** Why it waits, was put off, or failed, and what helps; null if nothing is wrong. */
  problem: z.string().nullable(),
  /** Its agent's last message. */
  summary: z.string().nullable(),
  spentUsd: z.number(),
  createdAt: z.string(),
  finishedAt: z.string().nullable(),
});

/** @param options.withSummary false in lists, which would be long */
export function briefSession(
  session: SessionDetail,
  { withSummary }: { readonly withSummary: boolean },
): z.infer<typeof briefSessionSchema> {
  const { failure, waiting, retry, summary } = session;
  return {
    sessionId: session.id,
    title: session.title,
    status: session.status,
    htmlUrl: session.htmlUrl,
    agent: session.agent,
    repositories: session.repositories.map(({ url }) => url),
    branchName: session.branchName,
    pullRequests: session.pullRequests.map(({ url, state }) => ({ url, state })),
    problem:
      failure !== null
        ? `${failure.reason} ${failure.remedy}`.trim()
        : (waiting?.text ?? (retry === null ? null : `${retry.reason} It is tried again at ${retry.at}.`)),
    summary: withSummary && summary !== null ? bounded(summary, longestSummary) : null,
    spentUsd: session.spentUsd,
    createdAt: session.createdAt,
    finishedAt: session.finishedAt,
  };
}
