import type { RepositoryAddress } from "../domain/repositories/repository.ts";
import type { Forge, ForgePullRequest } from "./forge.ts";
import { refusedBy, type ForgeAnswer } from "./http.ts";

type PullRequestCalls = Pick<Forge, "findPullRequest" | "openPullRequest" | "readPullRequest" | "editPullRequest">;

/** Calls for pull requests that GitHub and Gitea have in common: equal paths and answers. */
export function createPullRequestCalls(forge: {
  readonly host: string;
  readonly call: (
    address: RepositoryAddress,
    method: "GET" | "POST" | "PATCH",
    path: string,
    signal: AbortSignal,
    body?: unknown,
  ) => Promise<ForgeAnswer>;
  readonly find: Forge["findPullRequest"];
  /** Status of the answer if the branch already has an open pull request. */
  readonly existsStatus: number;
  /** Parses a pull request of the forge's API. */
  readonly read: (body: unknown) => ForgePullRequest;
}): PullRequestCalls {
  const { host, call, find, existsStatus, read } = forge;
  return {
    findPullRequest: find,
    async openPullRequest(address, { head, target, title, body }, signal) {
      const known = await find(address, head, target, signal);
      if (known?.state === "open") return { ...known, created: false };
      const answer = await call(address, "POST", "/pulls", signal, { head, base: target, title, body });
      if (answer.status === 201) return { ...read(answer.body), created: true };
      // Look it up: an earlier request, whose answer was lost, may have opened it.
      const opened = answer.status === existsStatus ? await find(address, head, target, signal) : null;
      if (opened?.state === "open") return { ...opened, created: false };
      throw refusedBy(host, answer);
    },
    async readPullRequest(address, number, signal) {
      const answer = await call(address, "GET", `/pulls/${number}`, signal);
      if (answer.status !== 200) throw refusedBy(host, answer);
      return read(answer.body);
    },
    async editPullRequest(address, number, edit, signal) {
      const path = `/pulls/${number}`;
      const answer = await call(address, "GET", path, signal);
      if (answer.status !== 200) throw refusedBy(host, answer);
      const body = edit(bodyOf(answer.body));
      if (body === null) return;
      const changed = await call(address, "PATCH", path, signal, { body });
      // GitHub answers 200, Gitea 201.
      if (changed.status !== 200 && changed.status !== 201) throw refusedBy(host, changed);
    },
  };
}

/** The text of a pull request; both forges have null for an empty one. */
function bodyOf(pullRequest: unknown): string {
  const { body } = pullRequest as { readonly body?: string | null };
  return body ?? "";
}
