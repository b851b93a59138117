import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import type { EndedCheck, Feedback } from "./feedback.ts";

/** Most jobs of a check whose logs are read, and most bytes from the end of each. */
const most = { jobs: 5, bytes: 8_192 } as const;

/**
 * Reads the ends of the logs of a check's failed jobs, as one text.
 * @param check as events name it
 * @returns null if there are none to read
 * @throws SessionError as `Feedback` does
 */
export async function readFailedLogs(
  feedback: Pick<Feedback, "failedJobs" | "readLogEnd"> | null,
  address: RepositoryAddress,
  check: EndedCheck,
  signal: AbortSignal,
): Promise<string | null> {
  const jobs = (await feedback?.failedJobs?.(address, check, signal)) ?? [];
  const texts: string[] = [];
  for (const job of jobs.slice(0, most.jobs)) {
    const end = await feedback?.readLogEnd(address, job.id, most.bytes, signal);
    if (end != null) texts.push(`${job.name}:\n${end}`);
  }
  return texts.length === 0 ? null : texts.join("\n\n");
}
