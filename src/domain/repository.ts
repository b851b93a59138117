import { z } from "zod";
import { isBranchName } from "./git-ref.ts";
import { optionalText, text } from "./text.ts";

export const forgeKinds = ["github", "gitea", "git"] as const;
export type ForgeKind = (typeof forgeKinds)[number];

export const createRepositorySchema = z.object({
  url: text(2_000).meta({ description: "http(s), ssh or scp-like URL, without credentials." }),
  name: text(200).optional(),
  branch: z.string().refine(isBranchName, "is not a valid git branch name").optional().meta({
    description:
      "Default target branch, whose setup gets secrets: an admin's to choose. Else the remote's default branch.",
  }),
  description: optionalText(2_000).optional(),
});
export type CreateRepository = z.infer<typeof createRepositorySchema>;
export const updateRepositorySchema = z.object({
  name: text(200).optional(),
  branch: z.string().refine(isBranchName, "is not a valid git branch name").nullish(),
  description: optionalText(2_000).nullish(),
});
export type UpdateRepository = z.infer<typeof updateRepositorySchema>;

export const repositorySchema = z.object({
  id: z.uuid(),
  name: z.string(),
  url: z.string(),
  branch: z.string().nullable(),
  description: z.string().nullable(),
  organizationId: z.uuid(),
  enabledAt: z.iso.datetime().nullable(),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
  /** The forge it lives on. Never a secret in `configuration`. */
  integration: z
    .object({
      id: z.string(),
      name: z.string(),
      type: z.enum(forgeKinds),
      configuration: z.object({ webUrl: z.string().nullable() }),
    })
    .optional(),
});
export type Repository = z.infer<typeof repositorySchema>;

/** A repository's address after the edge: what is connected, compared and shown. */
export interface RepositoryAddress {
  /** As git fetches it, canonical: no credentials, no trailing slash, no `.git` doubled. */
  readonly cloneUrl: string;
  /** Compared to find the same repository again: scheme-less host/path, lower-cased host, without `.git`. */
  readonly key: string;
  /** `owner/name`, or the last part of the path. */
  readonly name: string;
  readonly host: string | null;
  readonly path: string;
  readonly local: boolean;
}

export type AddressProblem = { readonly problem: string };

/**
 * Reads a repository's URL: http(s), ssh, scp-like (`git@host:path`), or `file://` and absolute paths.
 * Returns the problem as a sentence's end ("has credentials in it: …") instead of throwing, so that the edge can name the field.
 * Whether local repositories are allowed is the caller's to decide.
 */
export function parseRepositoryUrl(input: string): RepositoryAddress | AddressProblem {
  const value = input.trim();
  if (/\s/u.test(value)) return { problem: "has white space in it" };
  if (value.startsWith("-")) return { problem: "must not start with a dash" };
  if (value.startsWith("/")) return localAddress(value);
  const scp = /^(?:([A-Za-z0-9._-]+)@)?([A-Za-z0-9.-]+):(?!\/\/)(\/?[^:]+)$/u.exec(value);
  // Read as a URL they would be gone, and git would be given them all the same.
  if (scp?.[3]?.split("/").includes("..") === true) return { problem: "must not contain .." };
  if (scp !== null) return remoteAddress(`ssh://${scp[1] ?? "git"}@${scp[2]}/${scp[3]?.replace(/^\//u, "")}`, value);
  return remoteAddress(value, value);
}

/** As `/\/+$/` finds them, which would look through each run of slashes from each of its own. */
function withoutLastSlashes(path: string): string {
  let end = path.length;
  while (end > 0 && path.charAt(end - 1) === "/") end -= 1;
  return path.slice(0, end);
}

/** Null where a % stands for no byte of a character, or for NUL. */
function decoded(path: string): string | null {
  try {
    const characters = decodeURIComponent(path);
    return characters.includes("\0") ? null : characters;
  } catch {
    return null;
  }
}

function localAddress(path: string): RepositoryAddress | AddressProblem {
  if (path.split("/").includes("..")) return { problem: "must not contain .." };
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.length === 0) return { problem: "has no path to a repository" };
  const clean = `/${parts.join("/")}`;
  const name = clean.slice(clean.lastIndexOf("/") + 1).replace(/\.git$/u, "");
  return { cloneUrl: clean, key: `file:${clean}`, name, host: null, path: clean, local: true };
}

/**
 * Without the escapes of characters that need none (RFC 3986, section 6.2.2.2): a server reads the same name either way. Null if
 * a separator is written as one, which some servers read as a separator, so that `..` may follow it.
 */
function withoutNeedlessEscapes(path: string): string | null {
  if (/%(?:2f|5c)/iu.test(path)) return null;
  return path.replaceAll(/%[0-9a-f]{2}/giu, (code) => {
    const character = String.fromCharCode(Number.parseInt(code.slice(1), 16));
    return /[\w.~-]/u.test(character) ? character : code.toUpperCase();
  });
}

/** A host with the port that its scheme has anyway, or with the root's dot at its end, is the same host. */
function canonicalHost(host: string, isSsh: boolean): string {
  return (isSsh ? host.replace(/:22$/u, "") : host).toLowerCase().replace(/\.(?=:\d+$|$)/u, "");
}

function remoteAddress(url: string, original: string): RepositoryAddress | AddressProblem {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    return { problem: "is not a URL: write https://host/owner/name, ssh://git@host/owner/name or git@host:owner/name" };
  }
  if (parsed.protocol === "file:") {
    const path = decoded(parsed.pathname);
    return path === null ? { problem: "has a % that begins no escape sequence" } : localAddress(path);
  }
  if (!["http:", "https:", "ssh:"].includes(parsed.protocol)) {
    return { problem: `has the scheme ${parsed.protocol}// which is not supported: use https, http or ssh` };
  }
  const isSsh = parsed.protocol === "ssh:";
  if (parsed.password !== "" || (!isSsh && parsed.username !== "")) {
    return { problem: "has credentials in it: remove them and configure the forge's token on the server instead" };
  }
  if (parsed.search !== "" || parsed.hash !== "") return { problem: "must not have a query or fragment" };
  const isScp = isSsh && !original.includes("://");
  // Of an scp-like address git decodes nothing.
  const written = isScp ? parsed.pathname : withoutNeedlessEscapes(parsed.pathname);
  if (written === null) return { problem: "must not have a / or \\ in its path that is written with %" };
  const path = withoutLastSlashes(written).replace(/^\/+/u, "");
  if (path === "" || path === ".git") return { problem: "has no path to a repository" };
  if (path.split("/").some((part) => part === ".." || part === ""))
    return { problem: "has an empty or .. part in its path" };
  const bare = path.replace(/\.git$/u, "");
  const host = canonicalHost(parsed.host, isSsh);
  // Of ssh's addresses a URL leaves the host as it is, with all that means something to a shell.
  if (!/^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d+)?$/u.test(host)) return { problem: "has no name of a host in it" };
  return {
    cloneUrl: isScp
      ? original
      : `${parsed.protocol}//${isSsh && parsed.username !== "" ? `${parsed.username}@` : ""}${host}/${path}`,
    key: `${host}/${bare}`,
    name: bare.split("/").slice(-2).join("/"),
    host,
    path: bare,
    local: false,
  };
}

/** Whether `parseRepositoryUrl` found a problem. */
export function isAddressProblem(value: RepositoryAddress | AddressProblem): value is AddressProblem {
  return "problem" in value;
}

export const repositoryLimitsSchema = z.object({
  maxRunningSessions: z
    .number()
    .int()
    .min(1)
    .max(100_000)
    .nullable()
    .meta({ description: "Sessions that may run on it at once; null: the server's limit." }),
});
export type RepositoryLimits = z.infer<typeof repositoryLimitsSchema>;
