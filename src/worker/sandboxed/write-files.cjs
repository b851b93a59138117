/*
 * Reads `{path: content}` as JSON from stdin and writes each file, relative to the working directory, creating its folders.
 * What content can be besides a text is said in harness-files.ts.
 */
const { createHash } = require("node:crypto");
const { existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } = require("node:fs");
const { delimiter, dirname, join } = require("node:path");

const begin = "# Offstage's part begins";
const end = "# Offstage's part ends";
const earlier = new RegExp(`^${begin}(?: [(]([0-9a-f]+)[)])?\n([^]*?)^${end}\n?`, "gmu");

const hashOf = (part) => createHash("sha256").update(part).digest("hex").slice(0, 12);
const textOf = (path) => (existsSync(path) ? readFileSync(path, "utf8") : "");

/** A file without the part that we added earlier. If that part was edited meanwhile, it stays. */
function withoutPart(text) {
  return text.replace(earlier, (_, hash, part) => (hash === undefined || hash === hashOf(part) ? "" : part));
}

/** A file's content with our part in its section, or at its end. Nothing of the rest is changed. */
function withPart(path, { part, unless, beside = [], section }) {
  const rest = withoutPart(textOf(path));
  if (part === "") return rest;
  const said = new RegExp(unless, "mu");
  if ([rest, ...beside.map(textOf)].some((text) => said.test(text))) return rest;
  const marked = `${begin} (${hashOf(part)})\n${part}${end}\n`;
  if (section !== undefined) {
    const header = rest.split("\n").findIndex((line) => line.trim() === section);
    if (header >= 0) {
      const lines = rest.split("\n");
      return [...lines.slice(0, header + 1), `${marked}${lines.slice(header + 1).join("\n")}`].join("\n");
    }
    return withPart(path, { part: `${section}\n${part}`, unless, beside });
  }
  const separator = rest === "" || rest.endsWith("\n") ? "" : "\n";
  return `${rest}${separator}${marked}`;
}

/** The path of a program's file, links followed; null if it is not installed. */
function programFile(name) {
  const found = (process.env.PATH ?? "")
    .split(delimiter)
    .map((folder) => join(folder, name))
    .find((file) => existsSync(file));
  return found === undefined ? null : realpathSync(found);
}

/** The first of an image's own files that there is; an empty text if there is none. */
function imagesOwn(candidates) {
  for (const { path, variable, program } of candidates) {
    const base =
      variable !== undefined ? process.env[variable] : program !== undefined ? programFile(program) : undefined;
    if (base === null || (variable !== undefined && (base === undefined || base === ""))) continue;
    const file = program !== undefined ? join(dirname(base), path) : variable !== undefined ? join(base, path) : path;
    if (existsSync(file)) return readFileSync(file, "utf8");
  }
  return "";
}

/** An image's own file with ours put into it. */
function within({ over, without, ignored, insertions }) {
  const own = imagesOwn(over);
  const base = ignored === undefined ? own : own.replace(new RegExp(ignored, "gu"), "");
  if (base.trim() === "") return without;
  for (const { before, text } of insertions) {
    const at = base.search(new RegExp(before, "u"));
    if (at >= 0) return base.slice(0, at) + text + base.slice(at);
  }
  return without;
}

for (const [name, content] of Object.entries(JSON.parse(readFileSync(0, "utf8")))) {
  const { instead } = content;
  const path = instead !== undefined && existsSync(instead) ? instead : name;
  const text = typeof content === "string" ? content : "over" in content ? within(content) : withPart(path, content);
  // A part that is left out makes no file; a file that is to be empty is written, with its folder.
  if (text === "" && typeof content !== "string" && !existsSync(path)) continue;
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}
