import { z } from "zod";
import { isBranchName } from "../fields/git-ref.ts";
import { optionalText, text } from "../fields/text.ts";
import { azureServicesHost, azureServicesPath } from "./azure-address.ts";

/** Kinds of forges; `bitbucket`: Bitbucket Cloud; `git`: a plain git server without pull requests. */
export const forgeKinds = ["azure", "github", "gitlab", "gitea", "bitbucket", "bitbucketDataCenter", "git"] as const;
/** See `forgeKinds`. */
export type ForgeKind = (typeof forgeKinds)[number];

/** Body of a repository's creation. */
export const createRepositorySchema = z.object({
  url: text(2_000).meta({ description: "http(s), ssh or scp-like URL, without credentials." }),
  name: text(200).optional(),
  branch: z.string().refine(isBranchName, "is not a valid git branch name").optional().meta({
    description:
      "Default target branch, whose setup gets secrets: an admin's to choose. Else the remote's default branch.",
  }),
  description: optionalText(2_000).optional(),
});
/** See `createRepositorySchema`. */
export type CreateRepository = z.infer<typeof createRepositorySchema>;
/** Body of an update of a repository: fields that are not sent keep their value. */
export const updateRepositorySchema = z.object({
  name: text(200).optional(),
  branch: z.string().refine(isBranchName, "is not a valid git branch name").nullish(),
  description: optionalText(2_000).nullish(),
});
/** See `updateRepositorySchema`. */
export type UpdateRepository = z.infer<typeof updateRepositorySchema>;

/** A repository as the API shows it. */
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
  /** The repository's forge. `configuration` never contains a secret. */
  integration: z
    .object({
      id: z.string(),
      name: z.string(),
      type: z.enum(forgeKinds),
      configuration: z.object({ webUrl: z.string().nullable() }),
    })
    .optional(),
});
/** See `repositorySchema`. */
export type Repository = z.infer<typeof repositorySchema>;

/** A parsed repository address: what git connects to, what is compared, what is shown. */
export interface RepositoryAddress {
  /** Address that git fetches from, canonical: without credentials and without a slash at the end. */
  readonly cloneUrl: string;
  /**
   * Equal for all addresses of one repository: `host/path` without scheme and `.git`, host in lower case; `file:/path`
   * if it is local. All addresses of Azure DevOps Services are as at `dev.azure.com` here, in `host` and in `path`.
   */
  readonly key: string;
  /** `owner/name`, or the last part of the path. */
  readonly name: string;
  /** Host with its port if that is not the scheme's default, in lower case; null if the repository is local. */
  readonly host: string | null;
  readonly path: string;
  readonly local: boolean;
}

/** Why an address can't be used, as the end of a sentence that begins with the field's name. */
export type AddressProblem = { readonly problem: string };

/**
 * Parses a repository's URL: http(s), ssh, scp-like (`git@host:path`), `file://`, or an absolute path.
 * Returns the problem as a sentence's end ("has credentials in it: …") instead of throwing, so that the caller can name
 * the field. The caller decides whether local repositories are allowed.
 */
export function parseRepositoryUrl(input: string): RepositoryAddress | AddressProblem {
  const value = input.trim();
  // eslint-disable-next-line no-control-regex -- a line break in an address would end it in git's files and messages
  if (/[\u0000-\u001f\u007f]|(?! )\s/u.test(value))
    return { problem: "must not contain white space other than spaces" };
  if (value.startsWith("-")) return { problem: "must not start with a dash" };
  if (value.startsWith("/")) return localAddress(value);
  const scp = /^(?:([A-Za-z0-9._-]+)@)?([A-Za-z0-9.-]+):(?!\/\/)(\/?[^:]+)$/u.exec(value);
  // The URL parser would resolve `..`, but git would get the original text.
  if (scp?.[3]?.split("/").includes("..") === true) return { problem: "must not contain .." };
  if (scp !== null) {
    // git decodes nothing in such an address, so a % stands for itself.
    const path = scp[3]?.replace(/^\//u, "").replaceAll("%", "%25").replaceAll("?", "%3F").replaceAll("#", "%23");
    return remoteAddress(`ssh://${scp[1] ?? "git"}@${scp[2]}/${path}`, value);
  }
  return remoteAddress(value, value);
}

/** Removes slashes at the end. `/\/+$/` takes quadratic time on a text with many slashes. */
function withoutLastSlashes(path: string): string {
  let end = path.length;
  while (end > 0 && path.charAt(end - 1) === "/") end -= 1;
  return path.slice(0, end);
}

/** Decodes percent-encoding; null if it is malformed, or contains NUL. */
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
  if (clean !== clean.trim()) return { problem: "must not end in white space" };
  const name = clean.slice(clean.lastIndexOf("/") + 1).replace(/\.git$/u, "");
  return { cloneUrl: clean, key: `file:${clean}`, name, host: null, path: clean, local: true };
}

/**
 * Decodes percent-escapes of unreserved characters (RFC 3986, section 6.2.2.2), which do not change a path's meaning.
 * Null if `/` or `\` is escaped: some servers treat it as a separator, so that `..` could follow.
 */
function withoutNeedlessEscapes(path: string): string | null {
  if (/%(?:2f|5c)/iu.test(path)) return null;
  return path.replaceAll(/%[0-9a-f]{2}/giu, (code) => {
    const character = String.fromCharCode(Number.parseInt(code.slice(1), 16));
    return /[\w.~-]/u.test(character) ? character : code.toUpperCase();
  });
}

/**
 * Removes the default port of ssh (the URL parser removes those of http and https) and the root's dot: the host is the
 * same.
 */
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
    if (parsed.search !== "" || parsed.hash !== "") return { problem: "must have ? and # in its path as %3F and %23" };
    const path = decoded(parsed.pathname);
    if (path === null) return { problem: "has a % that does not begin an escape sequence" };
    // The path is what is stored, so it must parse too.
    return path === path.trim() ? parseRepositoryUrl(path) : { problem: "must not end in white space" };
  }
  if (!["http:", "https:", "ssh:"].includes(parsed.protocol)) {
    return { problem: `has the scheme ${parsed.protocol}// which is not supported: use https, http or ssh` };
  }
  const isSsh = parsed.protocol === "ssh:";
  if (parsed.password !== "" || (!isSsh && parsed.username !== "" && !isOrganization(parsed))) {
    return {
      problem: "must not contain credentials: remove them and configure the forge's token on the server instead",
    };
  }
  if (parsed.search !== "" || parsed.hash !== "") return { problem: "must not have a query or fragment" };
  const isScp = isSsh && !original.includes("://");
  // git decodes no escapes in scp-like addresses.
  const written = isScp ? parsed.pathname : withoutNeedlessEscapes(parsed.pathname);
  if (written === null) return { problem: "must not have an encoded / or \\ in its path" };
  const path = withoutLastSlashes(written).replace(/^\/+/u, "");
  if (path === "" || path === ".git") return { problem: "has no path to a repository" };
  if (path.split("/").some((part) => part === ".." || part === ""))
    return { problem: "has an empty or .. segment in its path" };
  const bare = path.replace(/\.git$/u, "");
  const host = canonicalHost(parsed.host, isSsh);
  // The URL parser does not check the host of an ssh address, which may contain shell syntax.
  if (!/^(?:[a-z0-9._-]+|\[[0-9a-f:.]+\])(?::\d+)?$/u.test(host)) return { problem: "has no host name" };
  const cloneUrl = isScp
    ? original
    : `${parsed.protocol}//${isSsh && parsed.username !== "" ? `${parsed.username}@` : ""}${host}/${path}`;
  const azure = azureServicesPath(host, path, isSsh);
  if (azure !== null) return placed(cloneUrl, azureServicesHost, azure);
  // A repository of Azure DevOps may have a name that ends so, and is not found without it.
  return placed(cloneUrl, host, /(?:^|\/)_git\/[^/]+$/u.test(path) ? path : bare);
}

function placed(cloneUrl: string, host: string, path: string): RepositoryAddress {
  // On Azure DevOps the word _git is between the project and the repository.
  const names = path.split("/").filter((segment, index, all) => segment !== "_git" || index !== all.length - 2);
  return { cloneUrl, key: `${host}/${path}`, name: shown(names.slice(-2).join("/")), host, path, local: false };
}

/** Whether the user's name in an address is only the organization, as in those that Azure DevOps shows for cloning. */
function isOrganization({ host, username, pathname }: URL): boolean {
  return host === azureServicesHost && username.toLowerCase() === pathname.split("/")[1]?.toLowerCase();
}

/** A name for people, without the escapes of its URL; as it is if something in it can't be shown. */
function shown(name: string): string {
  const characters = decoded(name);
  return characters === null || /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(characters) ? name : characters;
}

/** Whether `parseRepositoryUrl` returned a problem. */
export function isAddressProblem(value: RepositoryAddress | AddressProblem): value is AddressProblem {
  return "problem" in value;
}

/** Limits of one repository. */
export const repositoryLimitsSchema = z.object({
  maxRunningSessions: z
    .number()
    .int()
    .min(1)
    .max(100_000)
    .nullable()
    .meta({ description: "Sessions that may run on it at once; null: the server's limit." }),
});
/** See `repositoryLimitsSchema`. */
export type RepositoryLimits = z.infer<typeof repositoryLimitsSchema>;
