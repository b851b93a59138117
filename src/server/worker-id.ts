import { randomUUID } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { replaceFile } from "../atomic-file.ts";

/**
 * The worker's id. It stays the same after a restart, so that a worker that was killed recovers its own sessions at
 * once.
 */
export async function readWorkerId(dataDirectory: string): Promise<string> {
  const file = join(dataDirectory, "worker-id");
  try {
    const known = await readFile(file, "utf8");
    // The file may be empty after a power failure. Two workers with an empty id would take each other's sessions for
    // their own.
    if (known !== "") return known;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  const id = `${hostname()}-${randomUUID()}`;
  await mkdir(dataDirectory, { recursive: true });
  await replaceFile(file, id, { mode: 0o600, durable: true });
  return id;
}
