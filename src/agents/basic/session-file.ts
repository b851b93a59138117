import { mkdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { modelMessageSchema, type ModelMessage } from "ai";
import { z } from "zod";
import { replaceFile } from "../../atomic-file.ts";

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
  // The process can be killed at any time.
  await replaceFile(file, JSON.stringify(session));
}

/** Loads a conversation; null if no conversation has that id. */
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
