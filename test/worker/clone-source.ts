import { createUnsandboxed } from "../../src/sandboxes/none.ts";
import { readConfig } from "../../src/config/config.ts";
import type { ResourceLimits } from "../../src/sandboxes/sandbox.ts";
import { createSharedCheckouts } from "../../src/worker/checkouts/shared-checkouts.ts";
import type { CloneServices, CloneSource } from "../../src/worker/clones/clone.ts";
import { createSessionFolders } from "../../src/worker/disk/session-folders.ts";
import type { FetchLimits } from "../../src/worker/git/mirrors/fetch.ts";
import { createMirrors } from "../../src/worker/git/mirrors/mirrors.ts";

/** A repository at a path of this machine, as a session would have it. */
export function cloneSourceAt(url: string, directory = "clone", branch: string | null = null): CloneSource {
  return {
    repository: {
      id: crypto.randomUUID(),
      name: directory,
      url,
      branch,
      directory,
      position: 0,
      baseSha: null,
      headSha: null,
      egress: [],
      setupScript: null,
      variables: {},
      sparse: [],
    },
    address: { cloneUrl: url, key: `file:${url}`, name: directory, host: null, path: url, local: true },
    remote: {
      id: url,
      url,
      directory,
      branch: "offstage/work",
      targetBranch: branch,
      baseSha: null,
      headSha: null,
      named: true,
      credentials: () => Promise.resolve(null),
    },
  };
}

/** What clones need, with folders and mirrors below `data`, without a sandbox. */
export function cloneServicesIn(
  data: string,
  { fetch, ...bounds }: Partial<ResourceLimits> & { readonly fetch?: FetchLimits } = {},
): CloneServices {
  const sandbox = createUnsandboxed();
  return {
    folders: createSessionFolders(data),
    checkouts: createSharedCheckouts({ dataDirectory: data, asked: "auto", sandbox }),
    mirrors: createMirrors({
      dataDirectory: data,
      allowLocalRepositories: true,
      ...(fetch !== undefined && { fetch }),
    }),
    sandbox,
    limits: { ...readConfig({}).limits, ...bounds },
  };
}
