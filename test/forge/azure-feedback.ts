import type { Answer, ApiRequest } from "./api-request.ts";
import { azureList, refusedByAzure } from "./azure-answers.ts";
import { azureNamesOf, azurePathIn, guidOf, projectIdOf, repositoryIdOf } from "./azure-places.ts";
import {
  descriptorOf,
  identityShape,
  knownIdentity,
  threadCommentShape,
  threadShape,
  workItemCommentShape,
} from "./azure-shapes.ts";
import {
  addComment,
  addReaction,
  beginThread,
  feedbackOf,
  isThere,
  jobsOf,
  logOf,
  personOf,
  reactionsTo,
  resolveThread,
  setStatus,
  shownComments,
} from "./feedback.ts";
import { findAtAzure } from "./pull-request-fields.ts";
import type { ForgeState, KeptComment, Place } from "./state.ts";

const began = "2026-01-01T00:00:00.0000000Z";
/** The permissions of people on a git repository, as Azure DevOps counts them. */
const allowed = { admin: 32_767, write: 4 + 2 + 16 + 16_384, read: 2, none: 0 };

/**
 * The part of the API of Azure DevOps for answers; null if a request is for none of it.
 * @param pathname of a request that is not about one repository; else empty
 */
export function answerFeedbackAsAzure(
  state: ForgeState,
  collection: string,
  request: ApiRequest,
  pathname: string,
): Answer | null {
  if (pathname === "") return answerInRepository(state, request);
  const { path } = request;
  if (path.startsWith("identities")) return readIdentity(state, request);
  if (path.startsWith("accesscontrollists/")) return readPermissions(state, request);
  const { project } = azurePathIn(pathname);
  const place = project === null ? null : placeInProject(state, collection, project);
  const [, build, log] = /^build\/builds\/(\d+)\/(?:timeline|logs\/(\d+))$/u.exec(path) ?? [];
  if (build !== undefined) return answerBuild(state, place, build, log);
  const [, item, below = ""] = /^wit\/workItems\/(\d+)\/comments(.*)$/u.exec(path) ?? [];
  return item === undefined
    ? null
    : answerWorkItem(state, { ...request, place: place ?? request.place }, Number(item), below);
}

/** The last repository made in a project, which tests make one for each. */
function placeInProject(state: ForgeState, collection: string, project: string): Place | null {
  const found = [...state.pulls.keys()].findLast((key) => {
    const [, owner = "", name = ""] = /^(.+)\/([^/]+)$/u.exec(key) ?? [];
    const names = azureNamesOf(state, { owner, name });
    return names.collection === collection && [names.project, projectIdOf(names)].includes(project);
  });
  const [, owner, name] = /^(.+)\/([^/]+)$/u.exec(found ?? "") ?? [];
  return owner === undefined || name === undefined ? null : { webUrl: state.url, owner, name };
}

function answerInRepository(state: ForgeState, request: ApiRequest): Answer | null {
  const { place, method, path, body } = request;
  const [, pull, named] = /^\/pullRequests\/(\d+)\/threads\/(\d+)$/u.exec(path) ?? [];
  if (pull !== undefined && named !== undefined) return answerThread(state, request, Number(pull), named);
  const [, number, thread, comment, like] =
    /^\/pullRequests\/(\d+)\/threads(?:\/(\d+)\/comments(?:\/(\d+)(\/likes))?)?$/u.exec(path) ?? [];
  if (number !== undefined) {
    if (!isThere(state, place, Number(number), "pull"))
      return refusedByAzure(
        404,
        "TF401180: The requested pull request was not found.",
        "GitPullRequestNotFoundException",
      );
    if (like !== undefined) {
      addReaction(state, request, `threads/${thread}/comments/${comment}`, "like");
      return { status: 200, body: null };
    }
    if (method === "GET") return listThreads(state, request, Number(number));
    return thread === undefined
      ? addThread(state, request, Number(number))
      : addReply(state, request, Number(number), thread);
  }
  const [, sha] = /^\/commits\/(\w+)\/statuses$/u.exec(path) ?? [];
  if (sha === undefined || method !== "POST") return null;
  const { state: shown = "", description = "", targetUrl = "" } = body;
  const { context } = body as unknown as { context: { name: string; genre: string } };
  setStatus(state, request, { sha, name: context.name, state: shown, description, url: targetUrl });
  const times = { creationDate: began, updatedDate: began };
  const createdBy = identityShape(state);
  return { status: 201, body: { id: 1, state: shown, description, context, targetUrl, createdBy, ...times } };
}

/** A thread by its number, read or changed: anything but `active` ends it. */
function answerThread(state: ForgeState, request: ApiRequest, number: number, thread: string): Answer {
  const { place, method, body } = request;
  const facts = state.facts.get(`${place.owner}/${place.name}`);
  if (facts?.threads?.includes(thread) !== true || !isThere(state, place, number, "pull"))
    return refusedByAzure(404, `The requested thread ${thread} was not found.`, "DiscussionThreadNotFoundException");
  if (method === "PATCH" && body["status"] === "fixed") resolveThread(state, place, thread);
  const status = feedbackOf(state, place).resolved.has(thread) ? "fixed" : "active";
  const unsaid = { id: 1, number, body: "Words", thread, createdAt: began, shownFrom: 0 };
  const said = threadsOf(state, request, number).get(Number(thread)) ?? [unsaid];
  const likes = reactionsTo(state, request, `threads/${thread}/comments/1`).length;
  return { status: 200, body: threadShape(state, Number(thread), said, { status, likes }) };
}

function listThreads(state: ForgeState, request: ApiRequest, number: number): Answer {
  const threads = [...threadsOf(state, request, number)];
  return azureList(threads.map(([id, comments]) => threadShape(state, id, comments, { status: "active", likes: 0 })));
}

/** A comment on its own is the first of a thread that has its number. */
function threadsOf(
  state: ForgeState,
  request: ApiRequest,
  number: number,
): ReadonlyMap<number, readonly KeptComment[]> {
  const threads = new Map<number, KeptComment[]>();
  for (const kept of shownComments(state, request, number)) {
    const id = Number(kept.thread ?? kept.id);
    threads.set(id, [...(threads.get(id) ?? []), id === kept.id ? { ...kept, id: 1 } : kept]);
  }
  return threads;
}

interface SentThread {
  readonly comments: readonly { readonly content: string }[];
  readonly status: string;
  readonly threadContext?: { readonly filePath: string; readonly rightFileStart?: { readonly line: number } };
}

function addThread(state: ForgeState, request: ApiRequest, number: number): Answer {
  const { comments, status, threadContext } = request.body as unknown as SentThread;
  const body = comments[0]?.content ?? "";
  const line = threadContext?.rightFileStart?.line;
  const on = line === undefined ? null : { path: (threadContext?.filePath ?? "").slice(1), line, hunk: "" };
  const added = addComment(state, { ...request, body: { body } }, number, on);
  if (on === null) beginThread(state, request.place, String(added.id));
  return { status: 200, body: threadShape(state, added.id, [{ ...added, id: 1 }], { status, likes: 0 }) };
}

function addReply(state: ForgeState, request: ApiRequest, number: number, thread: string): Answer {
  const { place, body } = request;
  const { threads } = state.facts.get(`${place.owner}/${place.name}`) ?? {};
  if (threads?.includes(thread) !== true)
    return refusedByAzure(404, `The requested thread ${thread} was not found.`, "DiscussionThreadNotFoundException");
  const added = addComment(state, { ...request, body: { body: body["content"] ?? "" } }, number, thread);
  return { status: 200, body: threadCommentShape(state, added) };
}

function answerWorkItem(state: ForgeState, request: ApiRequest, item: number, below: string): Answer {
  const { place, method, body } = request;
  const [, comment, reaction] = /^\/(\d+)\/reactions\/(\w+)$/u.exec(below) ?? [];
  if (!isThere(state, place, item, "issue"))
    return refusedByAzure(
      404,
      `TF401232: Work item ${item} does not exist, or you do not have permissions to read it.`,
    );
  if (comment !== undefined && reaction !== undefined) {
    addReaction(state, request, `workItems/${item}/comments/${comment}`, reaction);
    const url = `${state.url}/_apis/wit/workItems/${item}/comments/${comment}/reactions/${reaction}`;
    const engagement = { commentId: Number(comment), count: 1, isCurrentUserEngaged: true, type: reaction };
    return { status: 200, body: { ...engagement, url } };
  }
  if (method === "GET") {
    const found = shownComments(state, request, item).toReversed();
    const from = Number(request.query.get("continuationToken") ?? 0);
    const items = found.slice(from, from + Number(request.query.get("$top") ?? 200));
    const more = from + items.length < found.length ? { continuationToken: String(from + items.length) } : {};
    const comments = items.map((each) => workItemCommentShape(state, each));
    return { status: 200, body: { totalCount: found.length, count: items.length, comments, ...more } };
  }
  // It keeps what it deems safe, which no HTML comment is.
  const text = (body["text"] ?? "").replaceAll(/<!--[^]*?-->/gu, "");
  const added = addComment(state, { ...request, body: { body: text } }, item, null);
  return { status: 200, body: workItemCommentShape(state, added) };
}

/** A build has one step that did its work, one that failed with the log, and one that came after it. */
function answerBuild(state: ForgeState, place: Place | null, build: string, log: string | undefined): Answer {
  // The log of a run of CI is that of its one job.
  const job = place === null ? build : String(jobsOf(state, place, build)?.[0]?.id ?? build);
  const text = place === null ? null : logOf(state, place, job);
  if (text === null)
    return refusedByAzure(404, `The requested build ${build} could not be found.`, "BuildNotFoundException");
  if (log !== undefined) return { status: 200, text: log === "8" ? text : "Nothing of interest\n" };
  const url = `${state.url}/_apis/build/builds/${build}/logs`;
  const record = (name: string, type: string, result: string, id: number, minute: number) => ({
    id: guidOf(`${build} ${name}`),
    parentId: null,
    type,
    name,
    startTime: began,
    finishTime: `2026-01-01T00:0${minute}:00Z`,
    state: "completed",
    result,
    order: id,
    errorCount: 0,
    warningCount: 0,
    attempt: 1,
    previousAttempts: [],
    log: { id, type: "Container", url: `${url}/${id}` },
  });
  const records = [
    record("Finalize Job", "Task", "succeeded", 10, 3),
    record("Job", "Job", "failed", 11, 4),
    record("npm test", "Task", "failed", 8, 2),
    record("Checkout", "Task", "succeeded", 5, 1),
  ];
  const body = { id: guidOf(build), records, lastChangedBy: guidOf("agent"), lastChangedOn: began, changeId: 1, url };
  return { status: 200, body };
}

/** People are known in the collection, whatever they may do in it. */
function readIdentity(state: ForgeState, request: ApiRequest): Answer {
  const { query } = request;
  const found = findAtAzure(state, request);
  if (found !== null) return found;
  const wanted = query.get("identityIds");
  const people = [...state.facts.values()].flatMap(({ people: known = {} }) => Object.keys(known));
  const login = people.find((name) => guidOf(`person ${name}`) === wanted);
  if (login === undefined) return azureList([]);
  return azureList([knownIdentity(login)]);
}

function readPermissions(state: ForgeState, { query }: ApiRequest): Answer {
  const token = query.get("token") ?? "";
  const key = [...state.pulls.keys()].find((one) => {
    const [, owner = "", name = ""] = /^(.+)\/([^/]+)$/u.exec(one) ?? [];
    return token.endsWith(`/${repositoryIdOf({ owner, name })}`);
  });
  const facts = state.facts.get(key ?? "") ?? {};
  if (facts.tellsRights === false) return refusedByAzure(403, "VS403283: Could not view permissions.");
  const [, owner = "", name = ""] = /^(.+)\/([^/]+)$/u.exec(key ?? "") ?? [];
  const login = Object.keys(facts.people ?? {}).find((each) => descriptorOf(each) === query.get("descriptors"));
  const person = login === undefined ? null : personOf(state, { webUrl: state.url, owner, name }, login);
  const allow = person === null ? 0 : allowed[person.permission];
  const extendedInfo = { effectiveAllow: allow, effectiveDeny: 0, inheritedAllow: allow, inheritedDeny: 0 };
  const descriptor = query.get("descriptors") ?? "";
  const acesDictionary = { [descriptor]: { descriptor, allow: 0, deny: 0, extendedInfo } };
  return azureList([{ inheritPermissions: true, token, acesDictionary, includeExtendedInfo: true }]);
}
