import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseAst } from "vite";

/** A docstring whose words do not fit what it stands before. */
export interface Complaint {
  /** Path from `src`, and the line of the docstring or the declaration. */
  readonly place: string;
  readonly problem: string;
}

/** A node of the syntax tree (https://github.com/estree/estree, with the nodes of TypeScript-ESTree). */
interface Node {
  readonly type: string;
  readonly start: number;
  readonly [field: string]: unknown;
}

/** Complains of the docstrings of all TypeScript files below `src` that are no tests. */
export async function complaintsBelow(src: string): Promise<Complaint[]> {
  const names = (await readdir(src, { recursive: true })).filter((name) => /(?<!\.test|\.d)\.tsx?$/u.test(name));
  const found = await Promise.all(
    names.map(async (name) => complaintsOf(name, await readFile(join(src, name), "utf8"))),
  );
  return found.flat();
}

/**
 * Complains of each `@param` that names nothing in its function's signature, and of each exported declaration without a docstring.
 * @param path named in the complaints
 */
export function complaintsOf(path: string, source: string): Complaint[] {
  const program = parseAst(source, { lang: path.endsWith("x") ? "tsx" : "ts" }) as unknown as Node;
  const nodes = [...nodesIn(program)];
  const placeOf = (offset: number): string => `${path}:${source.slice(0, offset).split("\n").length}`;
  const documented = new Map<number, string>();
  for (const { 0: comment, index } of source.matchAll(/\/\*\*[\s\S]*?\*\//gu))
    documented.set(index + comment.length + spaceAt(source, index + comment.length), comment);
  const exports = nodes.filter(isExport);
  const withoutDocstring = exports
    .filter((node) => !documented.has(node.start) && !exports.some((each) => isOverload(each, node)))
    .map(({ start }) => ({ place: placeOf(start), problem: "is exported without a docstring" }));
  const wrong = [...documented].flatMap(([start, comment]) => {
    const tags = [...comment.matchAll(/@param ([\w.]+)/gu)].map(([, name = ""]) => name);
    const signature = tags.length === 0 ? undefined : signatureAt(nodes, start);
    const known = new Set(signature === undefined ? [] : namesIn(signature, nodes));
    return tags
      .filter((tag) => !known.has(tag.split(".").at(-1) ?? ""))
      .map((tag) => ({ place: placeOf(start), problem: `names @param ${tag}, which its signature does not` }));
  });
  return [...withoutDocstring, ...wrong];
}

function spaceAt(source: string, offset: number): number {
  return /^\s*/u.exec(source.slice(offset))?.[0].length ?? 0;
}

function* nodesIn(value: unknown): Generator<Node> {
  if (typeof value !== "object" || value === null) return;
  if ("type" in value && "start" in value) yield value as Node;
  for (const inner of Object.values(value)) yield* nodesIn(inner);
}

/** What is declared where it is exported. */
function isExport({ type, declaration }: Node): boolean {
  return type === "ExportNamedDeclaration" && declaration !== null && declaration !== undefined;
}

/** Whether an earlier export is a signature of the same function. */
function isOverload(earlier: Node, { start, declaration }: Node): boolean {
  const name = nameOf((declaration as Node)["id"]);
  return earlier.start < start && name !== "" && nameOf((earlier["declaration"] as Node)["id"]) === name;
}

/** The parameters of the outermost function or method that begins at an offset. */
function signatureAt(nodes: readonly Node[], start: number): readonly Node[] | undefined {
  const outermost = nodes.find((node) => node.start === start);
  return [...nodesIn(outermost)].find((node) => Array.isArray(node["params"]) && !/TypeParameter/u.test(node.type))?.[
    "params"
  ] as readonly Node[] | undefined;
}

/** Names of parameters, of what they are taken apart into, and of the fields of their types, if the types are in the same file. */
function namesIn(parameters: readonly Node[], nodes: readonly Node[]): string[] {
  const within = [...nodesIn(parameters)];
  const types = new Set(
    within.filter(({ type }) => type === "TSTypeReference").map((node) => nameOf(node["typeName"])),
  );
  const declared = nodes.filter(
    ({ type, id }) => /^TS(?:Interface|TypeAlias)Declaration$/u.test(type) && types.has(nameOf(id)),
  );
  return [...within, ...declared.flatMap((node) => [...nodesIn(node)])].flatMap((node) => [
    nameOf(node),
    nameOf(node["key"]),
  ]);
}

function nameOf(node: unknown): string {
  return typeof node === "object" && node !== null && "name" in node && typeof node.name === "string" ? node.name : "";
}
