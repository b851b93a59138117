import { readdir } from "node:fs/promises";
import { spaceOf } from "../database/free-space.ts";
import type { WorkerMachine } from "../domain/system/health.ts";
import type { Logger } from "../observability.ts";
import { version } from "./version.ts";

/**
 * A worker's report of its program and its disk.
 * @param folders.data its data folder
 * @param folders.mirrors the folder of its mirrors, which need not be there yet
 * @returns null if the disk does not answer: the worker is there all the same
 */
export async function describeMachine(
  folders: { readonly data: string; readonly mirrors: string },
  neededBytes: number,
  logger: Logger,
): Promise<WorkerMachine | null> {
  try {
    const [space, names] = await Promise.all([spaceOf(folders.data), readdir(folders.mirrors).catch(() => [])]);
    return {
      version,
      nodeVersion: process.versions.node,
      startedAt: new Date(performance.timeOrigin).toISOString(),
      disk: { ...space, neededBytes },
      mirrors: names.filter((name) => name.endsWith(".git")).length,
    };
  } catch (error) {
    logger.warn({ err: error }, "could not look at the disk of the data folder");
    return null;
  }
}
