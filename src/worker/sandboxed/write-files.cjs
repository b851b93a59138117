/* Reads `{path: content}` as JSON from stdin and writes each file, relative to the working directory, creating its folders. */
const { mkdirSync, readFileSync, writeFileSync } = require("node:fs");
const { dirname } = require("node:path");

for (const [path, content] of Object.entries(JSON.parse(readFileSync(0, "utf8")))) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}
