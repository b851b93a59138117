import { mkdir, readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { z } from "zod";
import { replaceFile } from "../../atomic-file.ts";
import { isUuid } from "../../domain/fields/uuid.ts";
import type { Terminal } from "../terminal/commands.ts";

const entrySchema = z.object({ server: z.string(), sessionId: z.uuid() });

/**
 * An editor gets a session's name before there is a session of the server, and asks for it by that name in later processes. Each name has
 * a file, below `XDG_STATE_HOME` or `~/.local/state` (https://specifications.freedesktop.org/basedir), on Windows below `LOCALAPPDATA`.
 */
function fileOf(name: string, { environment }: Pick<Terminal, "environment">): string {
  const home = environment["HOME"] ?? homedir();
  const named = process.platform === "win32" ? environment["LOCALAPPDATA"] : environment["XDG_STATE_HOME"];
  const folder = named === undefined || named === "" ? join(home, ".local/state") : named;
  return join(folder, "offstage/acp", `${name}.json`);
}

/** Stores which session of a server an editor's name refers to. */
export async function keepName(
  name: string,
  entry: z.infer<typeof entrySchema>,
  terminal: Pick<Terminal, "environment">,
): Promise<void> {
  const path = fileOf(name, terminal);
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await replaceFile(path, `${JSON.stringify(entry)}\n`, { mode: 0o600 });
}

/** The session that an editor's name refers to: the stored one, or, if the name is a session's own id, that. */
export async function sessionOfName(
  name: string,
  server: string,
  terminal: Pick<Terminal, "environment">,
): Promise<string | null> {
  if (!isUuid(name)) return null;
  try {
    const entry = entrySchema.parse(JSON.parse(await readFile(fileOf(name, terminal), "utf8")));
    return entry.server === server ? entry.sessionId : null;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return name.toLowerCase();
    throw error;
  }
}
