import { isAddressProblem, parseRepositoryUrl } from "../src/domain/repositories/repository.ts";
import { pathOn } from "../src/forges/serves.ts";
import type { Subject } from "./forge-trial.ts";

/** A comment as the forge lists it. */
export interface ListedComment {
  readonly id: string;
  readonly body: string;
}

/** What a person does on a forge who talks to Offstage there, in plain requests: as the product's adapter would, it would be its own. */
export interface LoopForge {
  comment(pullRequest: number, body: string): Promise<string>;
  /** Names of the reactions to a comment. */
  reactions(pullRequest: number, comment: string): Promise<readonly string[]>;
  /** The comments beside a pull request, at most 100. */
  comments(pullRequest: number): Promise<readonly ListedComment[]>;
  /** Threads on lines of a change; null: the forge delivers none. */
  readonly threads: LoopThreads | null;
}

/** What a person does in a thread on a line of a change. */
export interface LoopThreads {
  /** Says something on the first line of a file that the pull request adds. */
  begin(pullRequest: number, place: { readonly path: string; readonly sha: string }, body: string): Promise<LoopThread>;
  /** Names of the reactions to what began the thread. */
  reactions(pullRequest: number, thread: LoopThread): Promise<readonly string[]>;
  /** What followed in the thread, at most 100. */
  replies(pullRequest: number, thread: LoopThread): Promise<readonly ListedComment[]>;
}

/** A thread, by the ids that the forge gave. */
export interface LoopThread {
  readonly id: string;
  /** The comment that began it. */
  readonly comment: string;
}

/** Kinds of forges on which the loop can be tried. */
export const loopKinds = ["github", "gitlab", "gitea"] as const;

/** How each kind calls what is asked for: paths below a repository's, and the fields of the answers. */
const dialects = {
  github: {
    repository: (path: string) => `/repos/${path}`,
    comments: (pullRequest: number) => `/issues/${pullRequest}/comments`,
    reactions: (_: number, comment: string) => `/issues/comments/${comment}/reactions`,
    reactionOf: ({ content }: Answered) => String(content),
    authorization: (token: string) => `Bearer ${token}`,
  },
  gitea: {
    repository: (path: string) => `/repos/${path}`,
    comments: (pullRequest: number) => `/issues/${pullRequest}/comments`,
    reactions: (_: number, comment: string) => `/issues/comments/${comment}/reactions`,
    reactionOf: ({ content }: Answered) => String(content),
    authorization: (token: string) => `token ${token}`,
  },
  gitlab: {
    repository: (path: string) => `/projects/${encodeURIComponent(path)}`,
    comments: (pullRequest: number) => `/merge_requests/${pullRequest}/notes`,
    reactions: (pullRequest: number, comment: string) => `/merge_requests/${pullRequest}/notes/${comment}/award_emoji`,
    reactionOf: ({ name }: Answered) => String(name),
    authorization: (token: string) => `Bearer ${token}`,
  },
} as const;

type Answered = Readonly<Record<string, unknown>>;

/** @throws Error if there is none for the kind, or the address is none of a repository */
export function createLoopForge({ settings, repositoryUrl }: Subject): LoopForge {
  const { kind, webUrl, apiUrl, token } = settings;
  const address = parseRepositoryUrl(repositoryUrl);
  if (isAddressProblem(address)) throw new Error(`${repositoryUrl} ${address.problem}`);
  if (kind !== "github" && kind !== "gitlab" && kind !== "gitea")
    throw new Error(`--loop can try ${loopKinds.join(", ")}, and not ${kind}`);
  const dialect = dialects[kind];
  const base = `${apiUrl}${dialect.repository(pathOn(webUrl, address))}`;
  async function ask(path: string, body?: object): Promise<unknown> {
    const response = await fetch(`${base}${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { Authorization: dialect.authorization(token), "Content-Type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      redirect: "manual",
    });
    if (!response.ok) throw new Error(`${path} was answered with ${response.status}: ${await response.text()}`);
    return response.json();
  }
  const list = async (path: string) => (await ask(`${path}?per_page=100`)) as readonly Answered[];
  return {
    threads: kind === "gitea" ? null : threadsBy[kind](ask, list),
    comment: async (pullRequest, body) =>
      String(((await ask(dialect.comments(pullRequest), { body })) as Answered)["id"]),
    reactions: async (pullRequest, comment) =>
      (await list(dialect.reactions(pullRequest, comment))).map(dialect.reactionOf),
    comments: async (pullRequest) => (await list(dialect.comments(pullRequest))).map(listed),
  };
}

const listed = ({ id, body }: Answered): ListedComment => ({ id: String(id), body: String(body) });

/** Asks for what is at a path below the repository's; with a body, makes it. @throws Error if that is refused */
type Ask = (path: string, body?: object) => Promise<unknown>;
/** Lists what is at a path below the repository's, at most 100. */
type List = (path: string) => Promise<readonly Answered[]>;

/** Threads in the words of the forges that deliver them. */
const threadsBy = {
  github: (ask: Ask, list: List): LoopThreads => ({
    async begin(pullRequest, { path, sha }, body) {
      const place = { path, commit_id: sha, line: 1, side: "RIGHT" };
      const { id } = (await ask(`/pulls/${pullRequest}/comments`, { body, ...place })) as Answered;
      return { id: String(id), comment: String(id) };
    },
    reactions: async (_, { comment }) =>
      (await list(`/pulls/comments/${comment}/reactions`)).map(dialects.github.reactionOf),
    async replies(pullRequest, { id }) {
      const found = await list(`/pulls/${pullRequest}/comments`);
      return found.filter(({ in_reply_to_id: root }) => String(root) === id).map(listed);
    },
  }),
  gitlab: (ask: Ask, list: List): LoopThreads => ({
    async begin(pullRequest, { path }, body) {
      const { diff_refs: shas } = (await ask(`/merge_requests/${pullRequest}`)) as { readonly diff_refs: object };
      const position = { ...shas, position_type: "text", new_path: path, old_path: path, new_line: 1 };
      const made = (await ask(`/merge_requests/${pullRequest}/discussions`, { body, position })) as Discussion;
      return { id: made.id, comment: String(made.notes[0]?.["id"]) };
    },
    reactions: async (pullRequest, { comment }) =>
      (await list(dialects.gitlab.reactions(pullRequest, comment))).map(dialects.gitlab.reactionOf),
    async replies(pullRequest, { id, comment }) {
      const { notes } = (await ask(`/merge_requests/${pullRequest}/discussions/${id}`)) as Discussion;
      return notes.map(listed).filter((note) => note.id !== comment);
    },
  }),
};

/** A thread as GitLab shows it. */
interface Discussion {
  readonly id: string;
  readonly notes: readonly Answered[];
}
