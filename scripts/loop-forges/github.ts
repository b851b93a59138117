import { pathOn } from "../../src/forges/serves.ts";
import type { FailedCheck, ListedComment, LoopForge, LoopPlace } from "./loop-forge.ts";
import { askBelow, type Answered, type Ask } from "./asking.ts";

/** GitHub's part in the loop. */
export function githubLoop(place: LoopPlace): LoopForge {
  const ask = askOf(place, "Bearer");
  return {
    ...loopOf(ask),
    threads: {
      async begin(pullRequest, { path, sha }, body) {
        const line = { path, commit_id: sha, line: 1, side: "RIGHT" };
        const { id } = await ask(`/pulls/${pullRequest}/comments`, { body, ...line });
        return { id: String(id), comment: String(id) };
      },
      isSeen: async (_, { comment }) => hasEyes(await ask(`/pulls/comments/${comment}/reactions?per_page=100`)),
      async replies(pullRequest, { id }) {
        const found = await ask<readonly Answered[]>(`/pulls/${pullRequest}/comments?per_page=100`);
        return found.filter(({ in_reply_to_id: root }) => String(root) === id).map(listed);
      },
    },
  };
}

/** Gitea's, which delivers no comments on lines. */
export function giteaLoop(place: LoopPlace): LoopForge {
  return { ...loopOf(askOf(place, "token")), threads: null };
}

function askOf({ settings: { webUrl, apiUrl, token }, address }: LoopPlace, scheme: string): Ask {
  return askBelow(`${apiUrl}/repos/${pathOn(webUrl, address)}`, `${scheme} ${token}`);
}

/** What both call alike. */
function loopOf(ask: Ask): Omit<LoopForge, "threads"> {
  return {
    comment: async (pullRequest, body) => String((await ask(`/issues/${pullRequest}/comments`, { body }))["id"]),
    isSeen: async (_, comment) => hasEyes(await ask(`/issues/comments/${comment}/reactions?per_page=100`)),
    comments: async (pullRequest) =>
      (await ask<readonly Answered[]>(`/issues/${pullRequest}/comments?per_page=100`)).map(listed),
    askForChanges: async (pullRequest, body) =>
      void (await ask(`/pulls/${pullRequest}/reviews`, { event: "REQUEST_CHANGES", body })),
    failCheck: async ({ sha, name, description }: FailedCheck) =>
      void (await ask(`/statuses/${sha}`, { state: "failure", context: name, description })),
  };
}

const listed = ({ id, body }: Answered): ListedComment => ({ id: String(id), body: String(body) });

/** @param reactions a list of them; Gitea says null for none */
function hasEyes(reactions: unknown): boolean {
  return ((reactions ?? []) as readonly Answered[]).some(({ content }) => content === "eyes");
}
