import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { modelMessageSchema, type ModelMessage } from "ai";
import { z } from "zod";

/** A conversation as stored in the agent's home, for a later process to resume. */
export interface StoredSession {
  readonly id: string;
  messages: ModelMessage[];
}

const schema = z.object({ id: z.string(), messages: z.array(modelMessageSchema) });

/** Stores a conversation. */
export async function saveSession(home: string, session: StoredSession): Promise<void> {
  const file = fileOf(home, session.id);
  await mkdir(dirname(file), { recursive: true });
  // Written atomically: the process can be killed at any time.
  await writeFile(`${file}.new`, JSON.stringify(session));
  await rename(`${file}.new`, file);
}

/** Loads a conversation; null if there is none of that id. */
export async function loadSession(home: string, id: string): Promise<StoredSession | null> {
  // The id becomes part of a path.
  if (!z.uuid().safeParse(id).success) return null;
  try {
    return schema.parse(JSON.parse(await readFile(fileOf(home, id), "utf8")));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

function fileOf(home: string, id: string): string {
  return join(home, ".offstage-agent", `${id}.json`);
}
