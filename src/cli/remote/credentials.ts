import { mkdir, readFile } from "node:fs/promises";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { z } from "zod";
import { replaceFile } from "../../atomic-file.ts";
import { InvalidInputError, messageOf } from "../../domain/errors/errors.ts";
import type { Terminal } from "../terminal/commands.ts";

const credentialSchema = z.union([
  z.object({ key: z.string() }),
  /** Of a person who allowed it in their browser. */
  z.object({ accessToken: z.string(), refreshToken: z.string(), expiresAt: z.number() }),
]);
/** With what a server is asked. */
export type Credential = z.infer<typeof credentialSchema>;
const fileSchema = z.object({
  /** Address of the server that commands use unless another is named. */
  current: z.string().nullable(),
  servers: z.record(z.string(), credentialSchema),
});
/** The stored credentials of `offstage login`. */
export type Credentials = z.infer<typeof fileSchema>;

/**
 * Path of the file with keys and tokens of servers: below `XDG_CONFIG_HOME` or `~/.config` (https://specifications.freedesktop.org/basedir),
 * on Windows below `APPDATA`.
 */
export function credentialsFile({ environment }: Pick<Terminal, "environment">): string {
  const home = environment["HOME"] ?? homedir();
  const named = process.platform === "win32" ? environment["APPDATA"] : environment["XDG_CONFIG_HOME"];
  const folder = named === undefined || named === "" ? join(home, ".config") : named;
  return join(folder, "offstage", "credentials.json");
}

/** @throws InvalidInputError if the file exists but can't be read, or is not ours */
export async function readCredentials(terminal: Pick<Terminal, "environment">): Promise<Credentials> {
  const path = credentialsFile(terminal);
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return { current: null, servers: {} };
    throw new InvalidInputError(`${path} can't be read (${code ?? messageOf(error)}): see who may read it`);
  }
  const read = fileSchema.safeParse(parsed(text));
  if (read.success) return read.data;
  throw new InvalidInputError(`${path} can't be read: delete it, and sign in again with \`offstage login\``);
}

/** Writes the file so that only its owner can read it. */
export async function writeCredentials(
  terminal: Pick<Terminal, "environment">,
  credentials: Credentials,
): Promise<void> {
  const path = credentialsFile(terminal);
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await replaceFile(path, `${JSON.stringify(credentials, null, 2)}\n`, { mode: 0o600 });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
