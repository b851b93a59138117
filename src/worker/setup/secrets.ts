import { spellingsOf } from "../../domain/masking/spellings.ts";
import { programText } from "../../programs/program-text.ts";
import { runCommand, type SandboxFolders, type SandboxedRun } from "../sandboxed/run-command.ts";

/** Shorter lines occur in ordinary files; they are not masked either. */
const shortestLine = 8;
/**
 * So many of these characters in a row occur only in keys: not in a PEM file's header, nor in an address in a service account's
 * JSON.
 */
const keyMaterial = /[\w+=-]{32}/u;

/**
 * Deletes the files into which a setup script wrote a secret, such as `~/.npmrc`: an agent must not get a secret of the setup
 * phase alone. As with masking, a script can encode a secret so that it is not recognised.
 * @param secrets values of the secrets
 * @returns names of the deleted files, relative to the clone, or to the home (`~/`)
 */
export async function removeSetupSecrets(
  run: SandboxedRun,
  place: SandboxFolders,
  secrets: readonly string[],
): Promise<string[]> {
  const lines = secrets.flatMap(needlesOf);
  if (lines.length === 0) return [];
  let written = "";
  const remover = programText(import.meta.url, "remove-secrets.cjs");
  await runCommand(run, place, { command: process.execPath, arguments: ["-e", remover] }, async (child) => {
    child.stdin.end(`${[...new Set(lines)].join("\n")}\n`);
    for await (const chunk of child.stdout.setEncoding("utf8")) written += String(chunk);
  });
  return JSON.parse(written) as string[];
}

/**
 * Lines that show that a file contains a value: the value itself, and its single lines; only those with key material, if there
 * are any.
 */
function needlesOf(value: string): string[] {
  const lines = value.split("\n").map((line) => line.trim());
  const withKeyMaterial = lines.filter((line) => keyMaterial.test(line));
  const searched = lines.length === 1 || withKeyMaterial.length === 0 ? lines : withKeyMaterial;
  return [value.trim(), ...searched]
    .filter((line) => line.length >= shortestLine)
    .flatMap(writtenAs)
    .filter((line) => line.length >= shortestLine && !line.includes("\n"));
}

/** A line in the encodings that programs commonly write: as it is, base64, hexadecimal, JSON and URL. */
function writtenAs(line: string): string[] {
  const url = encodeURIComponent(line);
  return [
    ...spellingsOf(line).map((bytes) => new TextDecoder().decode(bytes)),
    JSON.stringify(line).slice(1, -1),
    url,
    url.replaceAll(/%[0-9A-F]{2}/gu, (code) => code.toLowerCase()),
  ];
}
