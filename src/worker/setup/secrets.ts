import { spellingsOf } from "../../domain/masking/spellings.ts";
import { inside, type InsidePlace, type InsideRun } from "../sandboxed/inside.ts";

/** Shorter lines occur in ordinary files; they are not masked either. */
const shortestLine = 8;
/**
 * So many of these characters in a row occur only in keys: not in a PEM file's header, nor in an address in a service account's
 * JSON.
 */
const keyMaterial = /[\w+=-]{32}/u;

/**
 * Runs inside the sandbox: deletes each file in the home, and each file in the clone outside `.git`, that contains one of the
 * lines on stdin, and prints its name. Of `.git` only submodules are searched, since nothing else of it is archived.
 */
const remover = `
const { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } = require("node:fs");
const { spawnSync } = require("node:child_process");
writeFileSync("/tmp/offstage-needles", readFileSync(0));
const roots = readdirSync(".").filter((name) => name !== ".git").map((name) => "./" + name);
if (existsSync(".git/modules")) roots.push(".git/modules");
roots.push(process.env.HOME);
const options = ["-rlFZ", "--devices=skip", "-f", "/tmp/offstage-needles", "--"];
const found = spawnSync("grep", [...options, ...roots.filter((root) => existsSync(root))], { maxBuffer: 64 * 1024 * 1024, stdio: ["ignore", "pipe", "pipe"] });
if (found.error) throw found.error;
// 1: nothing found (grep(1)). Anything else means that not all was searched.
if (found.status !== 0 && found.status !== 1) throw new Error("grep ended with " + (found.signal ?? found.status) + ": " + found.stderr);
const files = found.stdout.toString().split("\\0").filter((name) => name !== "");
for (const file of files) rmSync(file, { force: true });
process.stdout.write(JSON.stringify(files.map((file) => file.replace(process.env.HOME, "~"))));`;

/**
 * Deletes the files into which a setup script wrote a secret, such as `~/.npmrc`: an agent must not get a secret of the setup
 * phase alone. As with masking, a script can encode a secret so that it is not recognised.
 * @param secrets values of the secrets
 * @returns names of the deleted files, relative to the clone, or to the home (`~/`)
 */
export async function removeSetupSecrets(
  run: InsideRun,
  place: InsidePlace,
  secrets: readonly string[],
): Promise<string[]> {
  const lines = secrets.flatMap(needlesOf);
  if (lines.length === 0) return [];
  let written = "";
  await inside(run, place, { command: process.execPath, arguments: ["-e", remover] }, async (child) => {
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
  const telling = lines.filter((line) => keyMaterial.test(line));
  const looked = lines.length === 1 || telling.length === 0 ? lines : telling;
  return [value.trim(), ...looked]
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
