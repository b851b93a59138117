import { pathOn } from "../../src/forges/serves.ts";
import type { ListedComment, LoopForge, LoopPlace } from "./loop-forge.ts";
import { askBelow, type Answered } from "./asking.ts";

/** A thread as GitLab shows it. */
interface Discussion {
  readonly id: string;
  readonly notes: readonly Answered[];
}

/** GitLab's part in the loop. */
export function gitlabLoop({ settings: { webUrl, apiUrl, token }, address }: LoopPlace): LoopForge {
  const ask = askBelow(`${apiUrl}/projects/${encodeURIComponent(pathOn(webUrl, address))}`, `Bearer ${token}`);
  const say = (pullRequest: number, body: string) => ask(`/merge_requests/${pullRequest}/notes`, { body });
  const isSeen = async (pullRequest: number, note: string): Promise<boolean> => {
    const path = `/merge_requests/${pullRequest}/notes/${note}/award_emoji?per_page=100`;
    return (await ask<readonly Answered[]>(path)).some(({ name }) => name === "eyes");
  };
  return {
    comment: async (pullRequest, body) => String((await say(pullRequest, body))["id"]),
    isSeen,
    comments: async (pullRequest) =>
      (await ask<readonly Answered[]>(`/merge_requests/${pullRequest}/notes?per_page=100`)).map(listed),
    threads: {
      async begin(pullRequest, { path }, body) {
        const { diff_refs: shas } = await ask<{ readonly diff_refs: object }>(`/merge_requests/${pullRequest}`);
        const position = { ...shas, position_type: "text", new_path: path, old_path: path, new_line: 1 };
        const made = await ask<Discussion>(`/merge_requests/${pullRequest}/discussions`, { body, position });
        return { id: made.id, comment: String(made.notes[0]?.["id"]) };
      },
      isSeen: (pullRequest, { comment }) => isSeen(pullRequest, comment),
      async replies(pullRequest, { id, comment }) {
        const { notes } = await ask<Discussion>(`/merge_requests/${pullRequest}/discussions/${id}`);
        return notes.map(listed).filter((note) => note.id !== comment);
      },
    },
    async askForChanges(pullRequest, words) {
      await say(pullRequest, words);
      // The API has no call for it. Only who is a reviewer has a say (https://docs.gitlab.com/user/project/quick_actions/).
      await say(pullRequest, "/assign_reviewer me");
      await say(pullRequest, "/submit_review requested_changes");
    },
    failCheck: async ({ sha, branch, name, description }) =>
      void (await ask(`/statuses/${sha}`, { state: "failed", ref: branch, name, description })),
  };
}

const listed = ({ id, body }: Answered): ListedComment => ({ id: String(id), body: String(body) });
