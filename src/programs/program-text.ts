import { readFileSync } from "node:fs";
import { readdir } from "node:fs/promises";

/** Texts that have been read, by the file's address: a new version that is installed meanwhile must not mix with this one. */
const texts = new Map<string, string>();

/**
 * Reads the texts of all programs that run where our installation is not visible, for `programText` later. To be called when a
 * server starts, since a new version may be installed while it runs.
 */
export async function readProgramTexts(): Promise<void> {
  const root = new URL("..", import.meta.url);
  const names = await readdir(root, { recursive: true });
  for (const name of names) if (/\.(?:sh|cjs|pl)$/u.test(name)) textOf(new URL(name, root));
}

/**
 * The text of a program that runs where our installation is not visible, as in a sandbox, or that another version may replace: it is
 * handed to `sh -c`, `node -e` or `perl -e` as an argument. The file is beside the file that starts it, in the source and in what is built of it, and is read
 * once. An argument has at most 128 KiB (MAX_ARG_STRLEN, execve(2)).
 * @param starter `import.meta.url` of the file that starts it
 * @param name the program's file, relative to that file, with its extension: `.sh`, `.cjs` or `.pl`
 * @throws the system's error if the file can't be read
 */
export function programText(starter: string, name: string): string {
  return textOf(new URL(name, starter));
}

function textOf(file: URL): string {
  const text = texts.get(file.href) ?? readFileSync(file, "utf8");
  texts.set(file.href, text);
  return text;
}
