import type { Answer, ApiRequest } from "./api-request.ts";
import { bitbucketPage, refusedByBitbucket } from "./bitbucket-answers.ts";
import {
  bitbucketAccountShape,
  bitbucketCommentShape,
  bitbucketStatusShape,
  shortRepositoryShape,
  uuidOf,
} from "./bitbucket-shapes.ts";
import {
  addComment,
  askForChanges,
  beginThread,
  idOf,
  isThere,
  jobsOf,
  logOf,
  resolveThread,
  setStatus,
  shownComments,
} from "./feedback.ts";
import { tokenUser, type ForgeState } from "./state.ts";

interface Sent {
  readonly content?: { readonly raw?: string };
  readonly parent?: { readonly id?: number };
  readonly inline?: { readonly path?: string; readonly to?: number };
}

/** The part of Bitbucket Cloud's API for answers; null if a request is for none of it. */
export function answerFeedbackAsBitbucket(state: ForgeState, request: ApiRequest): Answer | null {
  const { place, method, path } = request;
  const [, kind, id = ""] = /^\/(issues|pullrequests)\/(\d+)\/comments$/u.exec(path) ?? [];
  if (kind !== undefined) return answerComments(state, request, kind === "issues" ? "issue" : "pull", Number(id));
  const [, thread] = /^\/pullrequests\/\d+\/comments\/(\d+)\/resolve$/u.exec(path) ?? [];
  if (thread !== undefined && method === "POST") {
    const done = resolveThread(state, place, thread);
    if (done === null) return refusedByBitbucket(404, "Not found");
    if (done.wasResolved) return refusedByBitbucket(409, "Comment has already been resolved.");
    const user = bitbucketAccountShape(tokenUser, String(idOf(tokenUser)));
    return { status: 200, body: { type: "comment_resolution", user, created_on: "2026-01-01T00:00:00.000000+00:00" } };
  }
  const [, reviewed] = /^\/pullrequests\/(\d+)\/request-changes$/u.exec(path) ?? [];
  if (reviewed !== undefined && method === "POST") {
    if (!askForChanges(state, request, Number(reviewed), ""))
      return refusedByBitbucket(400, "You can't request changes on your own pull request.");
    const user = bitbucketAccountShape(state.asking, String(idOf(state.asking)));
    return {
      status: 200,
      body: { type: "participant", user, role: "REVIEWER", approved: false, state: "changes_requested" },
    };
  }
  const [, sha] = /^\/commit\/(\w+)\/statuses\/build$/u.exec(path) ?? [];
  if (sha !== undefined && method === "POST") return addStatus(state, request, sha);
  if (path === "/~people") return listPeople(state, request);
  const [, pipeline = "", step] = /^\/pipelines\/([^/]+)\/steps(?:\/([^/]+)\/log)?$/u.exec(path) ?? [];
  if (pipeline === "") return null;
  // The log of a run of CI is that of its one job.
  const job = String(jobsOf(state, place, pipeline)?.[0]?.id ?? pipeline);
  if (logOf(state, place, job) === null) return refusedByBitbucket(404, "There is no pipeline with this id");
  const uuid = uuidOf(`step ${pipeline}`);
  if (step === undefined) {
    const step1 = {
      type: "pipeline_step",
      uuid: uuidOf("a step that passed"),
      state: { result: { name: "SUCCESSFUL" } },
    };
    const step2 = { type: "pipeline_step", uuid, state: { result: { name: "FAILED" } } };
    const step3 = {
      type: "pipeline_step",
      uuid: uuidOf("a step that was not run"),
      state: { result: { name: "STOPPED" } },
    };
    return bitbucketPage(request, [step1, step2, step3], 100, (each) => each);
  }
  if (step !== uuid) return refusedByBitbucket(404, "There is no step with this id");
  return {
    status: 307,
    headers: { Location: `${place.webUrl}/logs/${place.owner}/${place.name}/${job}` },
    text: "",
  };
}

function answerComments(state: ForgeState, request: ApiRequest, kind: "issue" | "pull", number: number): Answer {
  const { place, method } = request;
  if (!isThere(state, place, number, kind)) return refusedByBitbucket(404, "Not found");
  if (method === "GET") {
    const found = shownComments(state, request, number);
    const sorted = request.query.get("sort") === "-created_on" ? found.toReversed() : found;
    return bitbucketPage(request, sorted, 100, (each) => bitbucketCommentShape(place, each));
  }
  const { content, parent, inline } = request.body as Sent;
  const thread = parent?.id === undefined ? null : String(parent.id);
  const { threads = [] } = state.facts.get(`${place.owner}/${place.name}`) ?? {};
  if (thread !== null && !threads.includes(thread))
    return refusedByBitbucket(400, "parent: Bad request", { parent: ["Bad request"] });
  const { path, to: line } = inline ?? {};
  const on = path === undefined || line === undefined ? thread : { path, line, hunk: "" };
  const added = addComment(state, { ...request, body: { body: content?.raw ?? "" } }, number, on);
  // Each comment can be answered.
  if (on === null) beginThread(state, place, String(added.id));
  return { status: 201, body: bitbucketCommentShape(place, added) };
}

/** A key has at most 40 characters. */
function addStatus(state: ForgeState, request: ApiRequest, sha: string): Answer {
  const { key = "", state: shown = "", name = "", description = "", url = "" } = request.body;
  const long = (field: string, most: number): Answer =>
    refusedByBitbucket(400, "Bad request", { [field]: [`Ensure this value has at most ${most} characters.`] });
  if (key.length > 40) return long("key", 40);
  if (description.length > 255) return long("description", 255);
  const status = { sha, name, state: shown, description, url };
  setStatus(state, request, status);
  return { status: 201, body: bitbucketStatusShape(request.place, status, key) };
}

function listPeople(state: ForgeState, request: ApiRequest): Answer {
  const { place, query } = request;
  const facts = state.facts.get(`${place.owner}/${place.name}`) ?? {};
  if (facts.tellsRights === false) return refusedByBitbucket(403, "You must be an admin of the repository.");
  const [, field, id] = /^user\.(uuid|account_id) = "(.+)"$/u.exec(query.get("q") ?? "") ?? [];
  const found = Object.entries(facts.people ?? {})
    .filter(([login, permission]) => {
      const own = field === "uuid" ? uuidOf(login) : String(idOf(login));
      return permission !== "none" && (id === undefined || own === id);
    })
    .map(([login, permission]) => ({
      type: "repository_permission",
      permission,
      user: bitbucketAccountShape(login, String(idOf(login))),
      repository: shortRepositoryShape(place),
    }));
  return bitbucketPage(request, found, 100, (each) => each);
}
