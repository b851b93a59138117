import { isAlias, isMap, isScalar, LineCounter, parseDocument, visit } from "yaml";
import { longestAutomationFile } from "../domain/automations/automation-file.ts";
import { InvalidInputError, messageOf } from "../domain/errors/errors.ts";
import { cutProblem } from "./cut-problem.ts";

/** Nodes of a file: no automation needs as many, and each takes time. */
const mostNodes = 5_000;

/**
 * Reads YAML 1.2 without aliases, each key once in a map, and only what JSON has. A file of 64 KiB can take seconds:
 * untrusted files are read in a process that can be killed (`Templates.readYaml`).
 * @throws InvalidInputError with the place and the problem
 */
export function readYaml(content: string): unknown {
  if (Buffer.byteLength(content) > longestAutomationFile) {
    throw new InvalidInputError(`has more than ${longestAutomationFile / 1024} KiB`);
  }
  const lines = new LineCounter();
  const placeOf = (offset: number | undefined): string => {
    if (offset === undefined) return "";
    const { line, col } = lines.linePos(offset);
    return `line ${line}, column ${col}: `;
  };
  try {
    // Keys are compared by us: the library compares each with all others.
    const options = { schema: "core", version: "1.2", uniqueKeys: false, merge: false, lineCounter: lines } as const;
    const document = parseDocument(content, { ...options, prettyErrors: false, logLevel: "error" });
    const [problem] = [...document.errors, ...document.warnings];
    if (problem !== undefined) throw new InvalidInputError(`${placeOf(problem.pos[0])}${problem.message}`);
    let nodes = 0;
    visit(document, {
      Node(_key, node) {
        nodes += 1;
        if (nodes > mostNodes) throw new InvalidInputError(`has more than ${mostNodes} values`);
        if (isAlias(node)) throw new InvalidInputError(`${placeOf(node.range?.[0])}aliases (*) are not allowed`);
        if (!isMap(node)) return;
        const keys = new Set<unknown>();
        for (const { key } of node.items) {
          const place = isScalar(key) ? placeOf(key.range?.[0]) : "";
          if (!isScalar(key) || typeof key.value !== "string") {
            throw new InvalidInputError(`${place}a key must be a text: put it in quotes`);
          }
          if (keys.has(key.value)) throw new InvalidInputError(`${place}the key ${key.value} is there twice`);
          keys.add(key.value);
        }
      },
    });
    return document.toJS({ maxAliasCount: 0 });
  } catch (error) {
    if (error instanceof InvalidInputError) throw new InvalidInputError(cutProblem(error.message), { cause: error });
    const words = messageOf(error).includes("call stack") ? "is nested too deeply" : messageOf(error);
    throw new InvalidInputError(cutProblem(`the file ${words}`), { cause: error });
  }
}
