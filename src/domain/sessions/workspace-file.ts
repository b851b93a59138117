import { z } from "zod";
import { optionalText } from "../fields/text.ts";

// The files of a session's workspace as others may look at them: lists of folders, and texts.

/** Most entries of one page of a folder, and how many a page has if none are asked for. */
export const mostEntries = 1_000;
const usualEntries = 200;
/** Most characters of one part of a text, and how many a part has if none are asked for. */
export const mostCharacters = 500_000;
const usualCharacters = 200_000;
/** Most bytes of a file that can be read at all. */
export const readableBytes = 1024 ** 2;
const longestPath = 4_096;

/**
 * Schema of a path from the workspace's root. What leads nowhere in a folder of git's has no meaning here either: `..`, empty parts, and
 * git's own folder.
 */
const pathSchema = optionalText(longestPath)
  .refine((path) => path === "" || path.split("/").every(isName), "must be names of folders and a file, parted by /")
  .meta({ description: "Path from the workspace's root, which has a folder for each repository." });

/** Whether a name can be that of a file which is shown. */
export function isName(name: string): boolean {
  return name !== "" && name !== "." && name !== ".." && name.toLowerCase() !== ".git";
}

/** Query of the list of a folder. */
export const listFilesQuerySchema = z.object({
  path: pathSchema.default(""),
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(mostEntries)
    .default(usualEntries)
    .meta({ description: `1 to ${mostEntries}, default ${usualEntries}` }),
  cursor: z
    .string()
    .max(8_192)
    .regex(/^[\w-]*$/u, "must be the nextCursor of the previous page")
    .optional()
    .meta({ description: "nextCursor of the previous page" }),
});

/** Query of a part of a file. */
export const readFileQuerySchema = z.object({
  path: pathSchema.default(""),
  offset: z.coerce
    .number()
    .int()
    .min(0)
    .max(readableBytes)
    .default(0)
    .meta({ description: "nextOffset of the part before; default 0" }),
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(mostCharacters)
    .default(usualCharacters)
    .meta({ description: `Most characters, 1 to ${mostCharacters}, default ${usualCharacters}` }),
});

/** Of when files are. */
const fromSchema = z.enum(["checkpoint", "work", "pushed", "start"]).meta({
  description:
    "Of when they are: of the last checkpoint while the agent works, of the work as it was last taken out of its sandbox, as it was pushed, or of the commit that the session began on.",
});
/** See `fromSchema`. */
export type FilesFrom = z.infer<typeof fromSchema>;

/** An entry of a folder. */
export const workspaceEntrySchema = z.object({
  name: z.string().meta({ description: "What is no text in it is replaced." }),
  path: z
    .string()
    .nullable()
    .meta({ description: "From the workspace's root; null: it can't be asked for, for its name." }),
  type: z.enum(["folder", "file", "link", "submodule", "other"]),
  bytes: z.number().int().nullable().meta({ description: "Of a file." }),
  change: z.enum(["added", "changed"]).nullable().meta({
    description: "What became of it, or of something in a folder, since the commit that the session began on.",
  }),
});
/** See `workspaceEntrySchema`. */
export type WorkspaceEntry = z.infer<typeof workspaceEntrySchema>;

/** A page of a folder of a session's workspace. */
export const workspaceFolderSchema = z.object({
  path: z.string(),
  from: fromSchema.nullable().meta({ description: "Null at the root of the workspace, if it has the repositories." }),
  entries: z.array(workspaceEntrySchema).meta({ description: "Folders first, each by name." }),
  complete: z
    .boolean()
    .meta({ description: "False if the folder has more than the 50,000 entries that are looked at." }),
  nextCursor: z.string().nullable(),
});
/** See `workspaceFolderSchema`. */
export type WorkspaceFolder = z.infer<typeof workspaceFolderSchema>;

/** A part of a file of a session's workspace. */
export const workspaceFileSchema = z.object({
  path: z.string(),
  from: fromSchema,
  type: z.enum(["file", "link"]),
  bytes: z.number().int(),
  text: z.string().nullable().meta({
    description: "With secrets replaced by [secret]; where a link leads; null: the file is no text in UTF-8.",
  }),
  offset: z.number().int(),
  nextOffset: z.number().int().nullable().meta({ description: "Where the text goes on; null: that was its end." }),
  complete: z.boolean().meta({ description: "False of a file of more than 1 MiB, of which only so much can be read." }),
});
/** See `workspaceFileSchema`. */
export type WorkspaceFile = z.infer<typeof workspaceFileSchema>;

/** What an API node asks a worker. */
export type FileQuestion =
  | { readonly kind: "list"; readonly path: string; readonly limit: number; readonly cursor: string | null }
  | { readonly kind: "read"; readonly path: string; readonly limit: number; readonly offset: number };

/** Why a worker has no files to show. */
export type FileProblem =
  | "missing"
  | "no folder"
  | "no file"
  | "not kept"
  | "empty submodule"
  | "bad cursor"
  | "not read"
  | "failed";

/** What a worker answers. */
export type FileAnswer =
  | { readonly folder: WorkspaceFolder }
  | { readonly file: WorkspaceFile }
  | { readonly problem: FileProblem };
