/** The host at which Azure DevOps Services has all organizations today, and where all their older addresses lead. */
export const azureServicesHost = "dev.azure.com";

const sshHosts = new Set(["ssh.dev.azure.com", "vs-ssh.visualstudio.com"]);
const oldHost = /^(?<organization>[a-z0-9-]+)\.visualstudio\.com$/u;

/** The problem with an address of a forge that `isOldAzureAddress`. */
export const oldAzureAddress = "must be written https://dev.azure.com/<organization>";

/** Whether a forge's address is an older one of an organization, which serves the same repositories as today's. */
export function isOldAzureAddress(url: string): boolean {
  return oldHost.test(URL.parse(url)?.hostname ?? "");
}

/**
 * The path of a repository at `dev.azure.com`, always as `organization/project/_git/repository`, however its address is written:
 * - `dev.azure.com/organization/_git/repository`, if the project has the repository's name
 * - `organization.visualstudio.com/project/_git/repository`, perhaps below `DefaultCollection`
 * - `_git/_full/repository` and `_git/_optimized/repository`
 * - by ssh: `git@ssh.dev.azure.com:v3/organization/project/repository`
 * See https://learn.microsoft.com/azure/devops/repos/git/clone and
 * https://learn.microsoft.com/azure/devops/repos/git/use-ssh-keys-to-authenticate.
 * @param path with escapes as in a URL
 * @returns null if it is no address of a repository there
 */
export function azureServicesPath(host: string, path: string, isSsh: boolean): string | null {
  const segments = namesIn(path, isSsh);
  if (segments === null) return null;
  if (isSsh) {
    const [version, organization, project, repository, ...more] = segments;
    const isWhole = version === "v3" && repository !== undefined && more.length === 0;
    return isWhole && sshHosts.has(host) ? joined([organization ?? "", project ?? "", "_git", repository]) : null;
  }
  if (host === azureServicesHost) return withProject(segments);
  const organization = oldHost.exec(host)?.groups?.["organization"];
  if (organization === undefined) return null;
  const below = segments[0]?.toLowerCase() === "defaultcollection" ? segments.slice(1) : segments;
  return withProject([organization, ...below]);
}

/**
 * The segments of a path on a server of Azure DevOps without what only says how it is cloned; null if the path is no repository's.
 * @param segments decoded, from the organization or collection on
 */
export function azureSegments(segments: readonly string[]): {
  readonly collection: string;
  readonly project: string;
  readonly repository: string;
} | null {
  const at = segments.lastIndexOf("_git");
  const after = segments.slice(at + 1);
  const [repository, ...more] = after[0] === "_full" || after[0] === "_optimized" ? after.slice(1) : after;
  const [collection, project = repository] = segments.slice(0, Math.max(at, 0));
  if (at < 1 || at > 2 || collection === undefined || project === undefined) return null;
  return repository === undefined || more.length > 0 ? null : { collection, project, repository };
}

/** The path of a repository of Azure DevOps, with escapes as in a URL. */
export function azurePath({ collection, project, repository }: NonNullable<ReturnType<typeof azureSegments>>): string {
  return joined([collection, project, "_git", repository]);
}

function withProject(segments: readonly string[]): string | null {
  const found = azureSegments(segments);
  return found === null ? null : azurePath(found);
}

/** Decoded; null if something is malformed. An address for ssh as git takes it has its `%` escaped once more. */
function namesIn(path: string, isSsh: boolean): string[] | null {
  try {
    const decode = (segment: string): string => decodeURIComponent(segment);
    const names = path.split("/").map((segment) => (isSsh ? decode(decode(segment)) : decode(segment)));
    const isOdd = (name: string): boolean =>
      /[/\\\0]/u.test(name) || !name.isWellFormed() || name === ".." || name === ".";
    return names.some(isOdd) ? null : names;
  } catch {
    return null;
  }
}

function joined(segments: readonly string[]): string {
  return segments.map((segment) => encodeURIComponent(segment)).join("/");
}
