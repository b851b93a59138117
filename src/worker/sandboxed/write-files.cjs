/*
 * Reads `{path: content}` as JSON from stdin and writes each file, relative to the working directory, creating its folders.
 * Content `{part, unless}` is a part of a file that may be somebody else's: it replaces the part of an earlier time at the file's
 * end, and is left out where a line of the rest matches `unless`.
 */
const { existsSync, mkdirSync, readFileSync, writeFileSync } = require("node:fs");
const { dirname } = require("node:path");

const begin = "# Offstage's part begins";
const end = "# Offstage's part ends";
const earlier = new RegExp(`^${begin}\n[^]*?^${end}\n?`, "gmu");

/** A file's content with our part at its end. Nothing of the rest is changed. */
function withPart(path, { part, unless }) {
  const rest = existsSync(path) ? readFileSync(path, "utf8").replace(earlier, "") : "";
  if (new RegExp(unless, "mu").test(rest)) return rest;
  const separator = rest === "" || rest.endsWith("\n") ? "" : "\n";
  return `${rest}${separator}${begin}\n${part}${end}\n`;
}

for (const [path, content] of Object.entries(JSON.parse(readFileSync(0, "utf8")))) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, typeof content === "string" ? content : withPart(path, content));
}
