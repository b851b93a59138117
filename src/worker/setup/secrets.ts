import { spellingsOf } from "../../domain/masking/spellings.ts";
import type { Run } from "../attempt/run.ts";
import { inside, type InsidePlace } from "../sandboxed/inside.ts";

/** Shorter ones are ordinary words in ordinary files; nor are they masked. */
const shortestLine = 8;
/** What only a key has so many of in a row: no header of a PEM file and no address in a service account's JSON does. */
const keyMaterial = /[\w+=-]{32}/u;

/**
 * Runs inside: removes each file of the home, and of the clone what is not in git, that holds one of the lines on stdin, and
 * names it. `.git` itself is not part of a result, but for its submodules.
 */
const remover = `
const { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } = require("node:fs");
const { spawnSync } = require("node:child_process");
writeFileSync("/tmp/offstage-needles", readFileSync(0));
const roots = readdirSync(".").filter((name) => name !== ".git").map((name) => "./" + name);
if (existsSync(".git/modules")) roots.push(".git/modules");
roots.push(process.env.HOME);
const options = ["-rlFZ", "--devices=skip", "-f", "/tmp/offstage-needles", "--"];
const found = spawnSync("grep", [...options, ...roots], { maxBuffer: 64 * 1024 * 1024, stdio: ["ignore", "pipe", "ignore"] });
if (found.error) throw found.error;
const files = found.stdout.toString().split("\\0").filter((name) => name !== "");
for (const file of files) rmSync(file, { force: true });
process.stdout.write(JSON.stringify(files.map((file) => file.replace(process.env.HOME, "~"))));`;

/**
 * A secret of the setup phase alone is not for the agent: a file into which the script wrote one, such as `~/.npmrc`, is no part
 * of its result. As with masking, who wants to can spell a secret so that nothing recognises it.
 * @returns the names of those files, from the clone or the home (`~/`)
 */
export async function removeSetupSecrets(run: Run, place: InsidePlace, secrets: readonly string[]): Promise<string[]> {
  const lines = secrets.flatMap(needlesOf);
  if (lines.length === 0) return [];
  let written = "";
  await inside(run, place, { command: process.execPath, arguments: ["-e", remover] }, async (child) => {
    child.stdin.end(`${[...new Set(lines)].join("\n")}\n`);
    for await (const chunk of child.stdout.setEncoding("utf8")) written += String(chunk);
  });
  return JSON.parse(written) as string[];
}

/** Lines by which a file is known to hold a value: of several lines, those that hold key material, if there are any. */
function needlesOf(value: string): string[] {
  const lines = value.split("\n").map((line) => line.trim());
  const telling = lines.filter((line) => keyMaterial.test(line));
  const looked = lines.length === 1 || telling.length === 0 ? lines : telling;
  return [value.trim(), ...looked]
    .filter((line) => line.length >= shortestLine)
    .flatMap(writtenAs)
    .filter((line) => line.length >= shortestLine && !line.includes("\n"));
}

/** A line as it is and as programs write it by themselves: in base64, hexadecimal, JSON and URLs. */
function writtenAs(line: string): string[] {
  const url = encodeURIComponent(line);
  return [
    ...spellingsOf(line).map((bytes) => new TextDecoder().decode(bytes)),
    JSON.stringify(line).slice(1, -1),
    url,
    url.replaceAll(/%[0-9A-F]{2}/gu, (code) => code.toLowerCase()),
  ];
}
