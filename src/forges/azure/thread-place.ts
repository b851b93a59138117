import type { RepositoryCall } from "../forge.ts";
import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import { linesTo } from "../feedback/diff-hunk.ts";
import type { CommentPlace } from "../../domain/conversations/facts.ts";
import type { DeliveredComment } from "../feedback/feedback.ts";
import { refusedBy } from "../http/refusal.ts";

/** Fields used of a thread (https://learn.microsoft.com/rest/api/azure/devops/git/pull-request-threads/get). */
interface Thread {
  readonly threadContext?: {
    /** From the repository's root, with a slash before it. */
    readonly filePath?: string | null;
    readonly rightFileStart?: { readonly line?: number } | null;
    readonly leftFileStart?: { readonly line?: number } | null;
  } | null;
}

/**
 * The place of a thread, which no delivery of its comments has. Azure DevOps has no diffs as text: instead of a hunk
 * there are the lines before the commented one, as the pull request's newest commit has them; of lines that the change
 * took away none.
 * @returns null if it is on no lines, or gone
 */
export async function readThreadPlace(
  host: string,
  call: RepositoryCall,
  address: RepositoryAddress,
  { number, threadId }: DeliveredComment,
  signal: AbortSignal,
): Promise<CommentPlace | null> {
  if (threadId === null) return null;
  const answer = await call(address, "GET", `/pullRequests/${number}/threads/${encodeURIComponent(threadId)}`, signal);
  if (answer.status === 404) return null;
  if (answer.status !== 200) throw refusedBy(host, answer, "thread of comments");
  const { threadContext: context } = (answer.body ?? {}) as Thread;
  if (context?.filePath == null) return null;
  const path = context.filePath.replace(/^\//u, "");
  const [right, left] = [context.rightFileStart?.line ?? null, context.leftFileStart?.line ?? null];
  const hunk =
    right === null ? null : await readLines(call, address, { number, filePath: context.filePath, line: right }, signal);
  return { path, line: right ?? left, hunk };
}

async function readLines(
  call: RepositoryCall,
  address: RepositoryAddress,
  { number, filePath, line }: { readonly number: number; readonly filePath: string; readonly line: number },
  signal: AbortSignal,
): Promise<string | null> {
  const pull = await call(address, "GET", `/pullrequests/${number}`, signal);
  const { lastMergeSourceCommit: head } = (pull.body ?? {}) as {
    readonly lastMergeSourceCommit?: { readonly commitId?: string } | null;
  };
  if (head?.commitId === undefined) return null;
  const query = new URLSearchParams({
    path: filePath,
    includeContent: "true",
    $format: "json",
    "versionDescriptor.versionType": "commit",
    "versionDescriptor.version": head.commitId,
  });
  const file = await call(address, "GET", `/items?${query.toString()}`, signal);
  const { content } = (file.body ?? {}) as { readonly content?: unknown };
  return file.status === 200 && typeof content === "string" ? linesTo(content, line) : null;
}
