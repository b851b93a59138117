import type { RepositoryAddress } from "../../domain/repositories/repository.ts";
import { refusedBy } from "../http/refusal.ts";
import type { AzureApi } from "./api.ts";

/** Fields used of a build's record (https://learn.microsoft.com/rest/api/azure/devops/build/timeline/get). */
interface TimelineRecord {
  readonly type?: string;
  readonly result?: string | null;
  readonly finishTime?: string | null;
  readonly log?: { readonly id?: number } | null;
}

/**
 * The address of a build's most informative log: that of the last step that failed, else of the step that ended last.
 * @returns null if the build is gone, or has no log yet
 */
export async function logOfBuild(
  api: AzureApi,
  address: RepositoryAddress,
  build: string,
  signal: AbortSignal,
): Promise<string | null> {
  const { collection, project } = api.repositoryOf(address);
  const base = `/${encodeURIComponent(project)}/_apis/build/builds/${encodeURIComponent(build)}`;
  const answer = await api.call(api.urlOf(collection, `${base}/timeline`), "GET", signal);
  if (answer.status === 404 || answer.status === 204) return null;
  if (answer.status !== 200) throw refusedBy(api.host, answer, "log of a build");
  const { records } = (answer.body ?? {}) as { readonly records?: readonly TimelineRecord[] };
  const logged = (Array.isArray(records) ? records : [])
    .filter(({ log }) => typeof log?.id === "number")
    .toSorted((one, other) => timeOf(one) - timeOf(other));
  const last =
    logged.findLast(({ type, result }) => type === "Task" && result === "failed") ??
    logged.findLast(({ result }) => result === "failed") ??
    logged.at(-1);
  return last === undefined ? null : api.urlOf(collection, `${base}/logs/${last.log?.id}`);
}

function timeOf({ finishTime }: TimelineRecord): number {
  const time = Date.parse(finishTime ?? "");
  return Number.isNaN(time) ? 0 : time;
}
