import { repositoryPlaceOf, apiPathOf } from "../../src/forges/bitbucket-data-center/place.ts";
import type { ListedComment, LoopForge, LoopPlace } from "./loop-forge.ts";
import { askBelow } from "./asking.ts";

/** A comment as Bitbucket Data Center shows it. */
interface Comment {
  readonly id: number;
  readonly text: string;
  readonly comments?: readonly Comment[];
  readonly properties?: { readonly reactions?: readonly { readonly emoticon: { readonly shortcut: string } }[] };
}

/** Bitbucket Data Center's part in the loop. It delivers no builds. */
export function dataCenterLoop({ settings: { webUrl, apiUrl, token }, address }: LoopPlace): LoopForge {
  const base = `${apiUrl}${apiPathOf(repositoryPlaceOf(webUrl, address))}`;
  const ask = askBelow(base, `Bearer ${token}`);
  const at = (pullRequest: number) => `/pull-requests/${pullRequest}`;
  const say = async (pullRequest: number, text: string, more: object = {}): Promise<string> =>
    String((await ask<Comment>(`${at(pullRequest)}/comments`, { text, ...more })).id);
  const read = (pullRequest: number, comment: string) => ask<Comment>(`${at(pullRequest)}/comments/${comment}`);
  const isSeen = async (pullRequest: number, comment: string): Promise<boolean> => {
    const { properties } = await read(pullRequest, comment);
    return (properties?.reactions ?? []).some(({ emoticon }) => emoticon.shortcut === "eyes");
  };
  return {
    comment: (pullRequest, body) => say(pullRequest, body),
    isSeen,
    async comments(pullRequest) {
      const path = `${at(pullRequest)}/activities?limit=100`;
      const { values } = await ask<{ readonly values: readonly { readonly comment?: Comment }[] }>(path);
      return values.flatMap(({ comment }) => (comment === undefined ? [] : withAnswers(comment)));
    },
    threads: {
      async begin(pullRequest, { path }, body) {
        const anchor = { path, line: 1, lineType: "ADDED", fileType: "TO" };
        const id = await say(pullRequest, body, { anchor });
        return { id, comment: id };
      },
      isSeen: (pullRequest, { comment }) => isSeen(pullRequest, comment),
      replies: async (pullRequest, { id }) => withAnswers(await read(pullRequest, id)).slice(1),
    },
    async askForChanges(pullRequest, words) {
      await say(pullRequest, words);
      const slug = await ownSlug(base, token);
      await ask(`${at(pullRequest)}/participants/${encodeURIComponent(slug)}`, { status: "NEEDS_WORK" }, "PUT");
    },
    failCheck: null,
  };
}

/** A comment and all that answers it. */
function withAnswers({ id, text, comments = [] }: Comment): readonly ListedComment[] {
  return [{ id: String(id), body: text }, ...comments.flatMap(withAnswers)];
}

/** Whose token it is, which each answer says beside itself. */
async function ownSlug(url: string, token: string): Promise<string> {
  const response = await fetch(url, { headers: { Authorization: `Bearer ${token}` }, redirect: "manual" });
  const name = response.headers.get("X-AUSERNAME");
  if (name === null) throw new Error(`${url} does not say whose the token is`);
  // As it makes slugs of names.
  return name.toLowerCase().replaceAll(/[^\w.-]/gu, "_");
}
