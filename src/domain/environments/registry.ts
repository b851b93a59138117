import { z } from "zod";
import { text } from "../fields/text.ts";

/** Kinds of package registries that sandboxes can install from with a credential that stays outside. */
export const registryKinds = ["npm", "pypi", "maven", "cargo", "go", "nuget", "rubygems"] as const;
/** See `registryKinds`. */
export type RegistryKind = (typeof registryKinds)[number];

const credential = text(16_384).regex(/^[\x20-\x7e]+$/u, "must be printable ASCII characters");

/** The scope of a registry, in addition to its kind: whose packages come from it. */
const scopeSchema = z
  .string()
  .max(200)
  .regex(/^[@A-Za-z0-9][\w.@*/,-]*$/u, "must be letters, digits and . _ - @ * / ,");

/** A registry's address: without credentials, and without a query. Ends with `/`, or is NuGet's index. */
const urlSchema = z
  .string()
  .max(2_000)
  .transform((value, context) => {
    const problem = urlProblem(value);
    if (problem === null) return registryAddress(`${new URL(value).href.replace(/\/+$/u, "")}/`);
    context.addIssue(problem);
    return z.NEVER;
  });

/** The address that a tool is configured with. Rows of earlier versions have a `/` behind NuGet's index. */
export function registryAddress(url: string): string {
  return url.replace(/\/index\.json\/$/u, "/index.json");
}

/**
 * The address below which everything gets a registry's credential. It ends with `/`. NuGet is configured with a file, and its
 * packages are beside that (https://learn.microsoft.com/nuget/api/service-index).
 */
export function registryFolder(url: string): string {
  return url.replace(/\/index\.json\/?$/u, "/");
}

/**
 * Further addresses of files at a registry's host, which get its credential too. Each address ends with `/`, and a part
 * `*` of its path stands for any one.
 * - pypi: the address is that of the index, which ends in `/simple/` (PEP 503); Nexus, Artifactory, GitLab and devpi (`/+simple/`) have
 *   the files beside it. Azure Artifacts names project and feed by their ids in the addresses of files
 * - npm: GitLab's address for all of an instance or a group names the files of each project
 *   (https://docs.gitlab.com/user/packages/npm_registry/)
 */
export function fileAddressesOf(kind: RegistryKind, url: string): string[] {
  if (kind === "pypi") {
    const index = /\/\+?simple\/?$/u.exec(url);
    return index === null ? [] : [url.slice(0, index.index + 1), ...azureFiles(url)];
  }
  const gitLab = kind === "npm" ? /\/api\/v4\/(?:groups\/[^/]+\/-\/)?packages\/npm\/?$/u.exec(url) : null;
  return gitLab === null ? [] : [`${url.slice(0, gitLab.index)}/api/v4/projects/*/packages/npm/`];
}

/** Below the feeds of the same project, or of the organization: https://learn.microsoft.com/azure/devops/artifacts/python/. */
function azureFiles(url: string): string[] {
  const feed = /^(https:\/\/[^/]+)((?:\/[^/]+){0,3})\/_packaging\/[^/]+\/pypi\/simple\/?$/u.exec(url);
  if (feed === null) return [];
  const [, host = "", place = ""] = feed;
  const parts = place.split("/").slice(1);
  // There the host names the organization.
  const organizationParts = host.endsWith(".visualstudio.com") ? 0 : 1;
  const ofProject = parts.length > organizationParts ? [...parts.slice(0, -1), "*"] : parts;
  return [`${[host, ...ofProject].join("/")}/_packaging/*/pypi/download/`];
}

function urlProblem(value: string): string | null {
  // Characters that the parser would encode or drop could change the tools' settings that the address is written into.
  const url = URL.parse(value);
  if (!/^https:\/\//iu.test(value) || url === null)
    return "must be an https:// address: the credential is never sent in the clear";
  if (/[^\w.~:/@!$&()*+,;=%[\]-]/u.test(value))
    return "must not have a query, a fragment, or characters that a URL encodes";
  return url.username === "" && url.password === "" ? null : "must not contain credentials: send username and token";
}

/** Body of a registry's creation. */
export const createRegistrySchema = z
  .object({
    kind: z.enum(registryKinds),
    url: urlSchema.meta({
      description:
        "Address that its tool is configured with; everything below it gets the credential. nuget: its index.json, everything beside that, and where it says that packages are, at the same host. pypi: everything beside its `/simple/` too, and on Azure Artifacts the downloads of the project's or organization's feeds. npm: for GitLab's address of an instance or group, the packages of its projects too. cargo: also where its config.json says that its crates are, at the same host.",
    }),
    scope: scopeSchema.nullish().meta({
      description:
        "npm: the scope that comes from it (`@acme`). cargo: its name. go: patterns of its modules, which no checksum database is asked about. Default: everything that its tool installs comes from it.",
    }),
    username: z
      .string()
      .min(1)
      .max(500)
      .regex(/^[^:\p{Cc}]+$/u, "must not contain a colon")
      .nullish()
      .meta({ description: "With it the token is a password (Basic). Without it the token is sent as `Bearer`." }),
    token: credential.meta({ description: "Never shown again, and never in a sandbox." }),
  })
  .superRefine(({ kind, scope }, context) => {
    const problem = scope == null ? null : scopeProblem(kind, scope);
    if (problem !== null) context.addIssue({ code: "custom", path: ["scope"], message: problem });
  });

function scopeProblem(kind: RegistryKind, scope: string): string | null {
  switch (kind) {
    case "npm":
      return /^@[a-z0-9][a-z0-9._-]*$/u.test(scope) ? null : "must be a scope of npm, such as @acme";
    case "cargo":
      return /^[A-Za-z][\w-]*$/u.test(scope) ? null : "must be a registry's name, such as acme";
    case "go":
      return /^[A-Za-z0-9][\w.*/,-]*$/u.test(scope) ? null : "must be patterns of modules, such as go.acme.example/*";
    default:
      return `is for npm, cargo and go only: ${kind} has one registry`;
  }
}

/** Body of a change of a registry's credential. */
export const updateRegistrySchema = z.object({
  token: credential,
});

/** A registry as the API shows it: without its credential. */
export const registrySchema = z.object({
  id: z.uuid(),
  kind: z.enum(registryKinds),
  url: z.string(),
  scope: z.string().nullable(),
  username: z.string().nullable(),
  createdAt: z.iso.datetime(),
  updatedAt: z.iso.datetime(),
});
/** See `registrySchema`. */
export type Registry = z.infer<typeof registrySchema>;
