import { createAzureApi } from "../../src/forges/azure/api.ts";
import type { ListedComment, LoopForge, LoopPlace } from "./loop-forge.ts";

/** A thread as Azure DevOps shows it: its comments count from 1. */
interface Thread {
  readonly id: number;
  readonly comments: readonly {
    readonly id: number;
    readonly content?: string;
    readonly usersLiked?: readonly object[];
  }[];
}

/** The part of Azure DevOps in the loop. Its checks are builds, which need a pipeline of the repository's own. */
export function azureLoop({ settings, address }: LoopPlace): LoopForge {
  if (settings.kind !== "azure") throw new Error(`${settings.webUrl} is no Azure DevOps`);
  const api = createAzureApi(settings);
  const repository = api.repositoryOf(address);
  const call = async <Found>(url: string, body?: object, method?: "PUT"): Promise<Found> => {
    const verb = method ?? (body === undefined ? "GET" : "POST");
    const answer = await api.call(url, verb, AbortSignal.timeout(60_000), body === undefined ? {} : { body });
    if (answer.status >= 300)
      throw new Error(`${url} was answered with ${answer.status}: ${JSON.stringify(answer.body)}`);
    return answer.body as Found;
  };
  const at = (pullRequest: number, below: string) =>
    api.repositoryUrl(repository, `/pullRequests/${pullRequest}${below}`);
  const begin = async (pullRequest: number, content: string, threadContext?: object): Promise<string> => {
    const comments = [{ parentCommentId: 0, content, commentType: "text" }];
    const made = await call<Thread>(at(pullRequest, "/threads"), {
      comments,
      status: "active",
      ...(threadContext !== undefined && { threadContext }),
    });
    return String(made.id);
  };
  const read = (pullRequest: number, thread: string) => call<Thread>(at(pullRequest, `/threads/${thread}`));
  const isSeen = async (pullRequest: number, thread: string): Promise<boolean> =>
    ((await read(pullRequest, thread)).comments[0]?.usersLiked ?? []).length > 0;
  return {
    comment: (pullRequest, body) => begin(pullRequest, body),
    isSeen,
    comments: async (pullRequest) =>
      (await call<readonly Thread[]>(at(pullRequest, "/threads"))).flatMap(({ comments }) => comments.map(listed)),
    threads: {
      async begin(pullRequest, { path }, body) {
        const line = { line: 1, offset: 1 };
        const id = await begin(pullRequest, body, { filePath: `/${path}`, rightFileStart: line, rightFileEnd: line });
        return { id, comment: id };
      },
      isSeen: (pullRequest, { id }) => isSeen(pullRequest, id),
      replies: async (pullRequest, { id }) => (await read(pullRequest, id)).comments.slice(1).map(listed),
    },
    async askForChanges(pullRequest, words) {
      await begin(pullRequest, words);
      const { authenticatedUser: own } = await call<{ readonly authenticatedUser: { readonly id: string } }>(
        api.urlOf(repository.collection, "/_apis/connectionData", "7.0-preview.1"),
      );
      // It is called waiting for the author.
      await call(at(pullRequest, `/reviewers/${own.id}`), { vote: -5 }, "PUT");
    },
    failCheck: null,
  };
}

const listed = ({ id, content }: Thread["comments"][number]): ListedComment => ({
  id: String(id),
  body: content ?? "",
});
