import { SessionError } from "../domain/errors/errors.ts";
import type { Forge, ForgeSettings } from "./forge.ts";
import { servesAddress } from "./serves.ts";

type PlainGitSettings = Extract<ForgeSettings, { kind: "git" }>;

/**
 * Adapter for any git server: the pushed branch is the result.
 * @param settings null: serves every address, without credentials
 */
export function createPlainGit(settings: PlainGitSettings | null): Forge {
  const unsupported = (): Promise<never> =>
    Promise.reject(
      new SessionError({
        code: "pull_request_refused",
        reason: "This server has no pull request API that Offstage knows.",
        retryable: false,
        remedy: "Open the pull request by hand from the pushed branch.",
      }),
    );
  return {
    kind: "git",
    id: settings === null ? "git" : `git:${new URL(settings.webUrl).host}`,
    name: settings === null ? "git" : new URL(settings.webUrl).host,
    webUrl: settings?.webUrl ?? null,
    opensPullRequests: false,
    pullRequestRef: null,
    filePages: null,
    commitPage: null,
    serves: (address) => settings === null || servesAddress(settings.webUrl, address),
    credentials: () =>
      Promise.resolve(
        settings?.token === undefined ? null : { username: settings.username ?? "git", password: settings.token },
      ),
    call: null,
    findPullRequest: unsupported,
    openPullRequest: unsupported,
    readPullRequest: unsupported,
    editPullRequest: unsupported,
    readAccess: () => Promise.resolve(null),
    fork: unsupported,
    feedback: null,
    browse: null,
  };
}
