import { parse, type ParseError } from "jsonc-parser";
import { z } from "zod";
import { shellQuote } from "../../programs/shell-quote.ts";
import { variableNameSchema } from "../../domain/environments/secret.ts";

/**
 * Paths of the devcontainer file, in the order of the specification
 * (https://containers.dev/implementors/spec/#devcontainerjson).
 */
export const devcontainerPaths = [".devcontainer/devcontainer.json", ".devcontainer.json"];

/** The parts of a `devcontainer.json` that Offstage uses. */
export interface Devcontainer {
  readonly image: string | null;
  /** The commands that prepare a new container, in order, as one shell script; null if there are none. */
  readonly script: string | null;
  readonly variables: Readonly<Record<string, string>>;
}

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
  const lines = [onCreateCommand, updateContentCommand, postCreateCommand].flatMap(linesOf);
  return {
    image: image ?? null,
    script: lines.length === 0 ? null : `${lines.join("\n")}\n`,
    variables: variablesOf({ ...containerEnv, ...remoteEnv }, folder),
  };
}

function linesOf(value: z.infer<typeof command>): string[] {
  if (value == null) return [];
  if (typeof value === "string") return value.trim() === "" ? [] : [`(${value}\n)`];
  if (Array.isArray(value)) return [value.map(shellQuote).join(" ")];
  // Other tools run an object's commands in parallel; running them in sequence has the same result.
  return Object.values(value).flatMap(linesOf);
}

/**
 * The variables whose value is known here. Those that refer to another machine or to the container's own environment are left
 * out.
 */
function variablesOf(given: Readonly<Record<string, string | null>>, folder: string): Record<string, string> {
  const known: Record<string, string> = {
    containerWorkspaceFolder: folder,
    localWorkspaceFolder: folder,
    containerWorkspaceFolderBasename: folder.slice(folder.lastIndexOf("/") + 1),
    localWorkspaceFolderBasename: folder.slice(folder.lastIndexOf("/") + 1),
  };
  return Object.fromEntries(
    Object.entries(given).flatMap(([name, value]) => {
      if (value === null || !variableNameSchema.safeParse(name).success || value.includes("\0")) return [];
      const filled = value.replaceAll(/\$\{(\w+)\}/gu, (whole, variable: string) => known[variable] ?? whole);
      return filled.includes("${") ? [] : [[name, filled]];
    }),
  );
}
