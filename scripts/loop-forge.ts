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
    comment: async (pullRequest, body) =>
      String(((await ask(dialect.comments(pullRequest), { body })) as Answered)["id"]),
    reactions: async (pullRequest, comment) =>
      (await list(dialect.reactions(pullRequest, comment))).map(dialect.reactionOf),
    comments: async (pullRequest) =>
      (await list(dialect.comments(pullRequest))).map(({ id, body }) => ({ id: String(id), body: String(body) })),
  };
}
