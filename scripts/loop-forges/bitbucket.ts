import { pathOn } from "../../src/forges/serves.ts";
import type { LoopForge, LoopPlace } from "./loop-forge.ts";
import { askBelow, basic } from "./asking.ts";

/** A comment as Bitbucket Cloud shows it. */
interface Comment {
  readonly id: number;
  readonly content: { readonly raw: string };
  readonly parent?: { readonly id: number };
}

/** Bitbucket Cloud's part in the loop: it has no reactions, so what was seen is answered with a word. */
export function bitbucketLoop({ settings, address }: LoopPlace): LoopForge {
  const { webUrl, apiUrl, token } = settings;
  const username = settings.kind === "bitbucket" ? settings.username : undefined;
  const authorization = username === undefined ? `Bearer ${token}` : basic(token, username);
  const ask = askBelow(`${apiUrl}/repositories/${pathOn(webUrl, address)}`, authorization);
  const say = async (pullRequest: number, raw: string, more: object = {}): Promise<string> => {
    const made = await ask<Comment>(`/pullrequests/${pullRequest}/comments`, { content: { raw }, ...more });
    return String(made.id);
  };
  const list = async (pullRequest: number) => {
    const path = `/pullrequests/${pullRequest}/comments?pagelen=100`;
    return (await ask<{ readonly values: readonly Comment[] }>(path)).values;
  };
  const repliesTo = async (pullRequest: number, comment: string) =>
    (await list(pullRequest)).filter(({ parent }) => String(parent?.id) === comment).map(listed);
  const isSeen = async (pullRequest: number, comment: string): Promise<boolean> =>
    (await repliesTo(pullRequest, comment)).some(({ body }) => body.startsWith("Seen."));
  return {
    comment: (pullRequest, body) => say(pullRequest, body),
    isSeen,
    comments: async (pullRequest) => (await list(pullRequest)).map(listed),
    threads: {
      async begin(pullRequest, { path }, body) {
        const id = await say(pullRequest, body, { inline: { path, to: 1 } });
        return { id, comment: id };
      },
      isSeen: (pullRequest, { comment }) => isSeen(pullRequest, comment),
      replies: (pullRequest, { id }) => repliesTo(pullRequest, id),
    },
    async askForChanges(pullRequest, words) {
      await say(pullRequest, words);
      await ask(`/pullrequests/${pullRequest}/request-changes`, {});
    },
    failCheck: async ({ sha, name, description, branch: refname }) => {
      const url = `${webUrl}/${pathOn(webUrl, address)}/commits/${sha}`;
      await ask(`/commit/${sha}/statuses/build`, { key: name, state: "FAILED", name, description, url, refname });
    },
  };
}

const listed = ({ id, content }: Comment) => ({ id: String(id), body: content.raw });
