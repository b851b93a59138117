import { parse, type ParseError } from "jsonc-parser";
import { z } from "zod";
import { shellQuote } from "../../programs/shell-quote.ts";
import { variableNameSchema } from "../../domain/environments/secret.ts";

const usualPaths = [".devcontainer/devcontainer.json", ".devcontainer.json"];
const inOwnFolder = /^\.devcontainer\/[^/]+\/devcontainer\.json$/u;

/**
 * Which files are the devcontainer file, in the order of the specification (https://containers.dev/implementors/spec/#devcontainerjson).
 * @param committed paths of the commit's files, those below `.devcontainer` among them
 * @returns several in subfolders only if there is no other: a person would choose one of these
 */
export function devcontainerPathsOf(committed: readonly string[]): string[] {
  const found = usualPaths.filter((path) => committed.includes(path));
  return found.length > 0 ? found : committed.filter((path) => inOwnFolder.test(path));
}

/** Whether none of the paths goes before the others. */
export const isForChoice = ([first = "", ...others]: readonly string[]): boolean =>
  others.length > 0 && inOwnFolder.test(first);

/** The parts of a `devcontainer.json` that Offstage uses. */
export interface Devcontainer {
  readonly image: string | null;
  /** The commands that prepare a new container, in order, as one shell script; null if there are none. */
  readonly script: string | null;
  readonly variables: Readonly<Record<string, string>>;
  /** Names of properties that would install something, and that nothing here follows. */
  readonly ignored: readonly string[];
}

const notFollowed = ["build", "dockerFile", "dockerComposeFile", "features"];

const one = z.union([z.string(), z.array(z.string()).min(1)]);
const command = z.union([one, z.record(z.string(), one)]).nullish();
const variables = z.record(z.string(), z.string().nullable()).nullish();
/** Only commands that run once for a new container; those that run at each start or attach are for a person's editor. */
const schema = z.object({
  image: z.string().max(500).nullish().catch(null),
  onCreateCommand: command,
  updateContentCommand: command,
  postCreateCommand: command,
  containerEnv: variables,
  remoteEnv: variables,
});

/**
 * Parses a `devcontainer.json`, which is JSON with comments (https://containers.dev/implementors/json_reference/).
 * @param folder of the repository inside the sandbox, the value of `${containerWorkspaceFolder}`
 * @throws Error saying what is wrong with the file
 */
export function readDevcontainer(text: string, folder: string): Devcontainer {
  const errors: ParseError[] = [];
  const document: unknown = parse(text, errors, { allowTrailingComma: true });
  if (errors.length > 0) throw new Error(`it is no JSON (at character ${errors[0]?.offset})`);
  const read = schema.safeParse(document);
  if (!read.success) {
    const [issue] = read.error.issues;
    throw new Error(`${issue?.path.join(".")}: ${issue?.message}`);
  }
  const { image, onCreateCommand, updateContentCommand, postCreateCommand, containerEnv, remoteEnv } = read.data;
  const fill = (value: string): string => filled(value, folder);
  const lines = [onCreateCommand, updateContentCommand, postCreateCommand].flatMap((given) => linesOf(given, fill));
  return {
    image: image ?? null,
    script: lines.length === 0 ? null : `${lines.join("\n")}\n`,
    variables: variablesOf({ ...containerEnv, ...remoteEnv }, fill),
    ignored: notFollowed.filter((name) => (document as Readonly<Record<string, unknown>>)[name] != null),
  };
}

function linesOf(value: z.infer<typeof command>, fill: (text: string) => string): string[] {
  if (value == null) return [];
  if (typeof value === "string") return value.trim() === "" ? [] : [`(${fill(value)}\n)`];
  if (Array.isArray(value)) return [value.map((word) => shellQuote(fill(word))).join(" ")];
  // Other tools run an object's commands in parallel; running them in sequence has the same result.
  return Object.values(value).flatMap((each) => linesOf(each, fill));
}

/** A text with the values of the file's own variables that are known here; others stay, as those of a shell. */
function filled(text: string, folder: string): string {
  const known: Record<string, string> = {
    containerWorkspaceFolder: folder,
    localWorkspaceFolder: folder,
    containerWorkspaceFolderBasename: folder.slice(folder.lastIndexOf("/") + 1),
    localWorkspaceFolderBasename: folder.slice(folder.lastIndexOf("/") + 1),
  };
  return text.replaceAll(/\$\{(\w+)\}/gu, (whole, variable: string) => known[variable] ?? whole);
}

/**
 * The variables whose value is known here. Those that refer to another machine or to the container's own environment are left
 * out.
 */
function variablesOf(
  given: Readonly<Record<string, string | null>>,
  fill: (text: string) => string,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(given).flatMap(([name, value]) => {
      if (value === null || !variableNameSchema.safeParse(name).success || value.includes("\0")) return [];
      const text = fill(value);
      return text.includes("${") ? [] : [[name, text]];
    }),
  );
}
