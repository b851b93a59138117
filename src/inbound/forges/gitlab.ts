import type { ForgeAccount } from "../../domain/automations/forge-event.ts";
import { gitlabSigningToken } from "../../domain/repositories/connection.ts";
import { idWithBody, type InboundDelivery, type DeliveryReader } from "../delivery.ts";
import { hasStandardSignature, hasToken } from "../signatures.ts";
import { checksOf, gitPush, inboundEvents, longest } from "./event.ts";
import type { ForgeHappening } from "./event.ts";
import { commits } from "./github-form.ts";
import { issues, mergeRequests, note } from "./gitlab-conversations.ts";
import { account, repository } from "./gitlab-form.ts";
import type { Around, Project, User } from "./gitlab-form.ts";
import { choice, identifier, integer, list, present, readPayload, required, text } from "./payload.ts";
import type { Untrusted } from "./payload.ts";

/**
 * Webhooks of GitLab, of a project, a group or the whole server (https://docs.gitlab.com/user/project/integrations/webhook_events/).
 * With a signing token they are signed as Standard Webhooks are; else the secret token is a header.
 */
export const gitlab: DeliveryReader = {
  verify(delivery, secrets, now) {
    const keys = secrets.filter((secret) => gitlabSigningToken.test(secret));
    const tokens = secrets.filter((secret) => !gitlabSigningToken.test(secret));
    return hasStandardSignature(delivery, keys, now) || hasToken(delivery.headers["x-gitlab-token"], tokens);
  },
  read(delivery) {
    const payload = readPayload(delivery);
    const envelope = payload as NonNullable<Untrusted<{ object_kind: unknown; project: Project; user: User }>>;
    const project = repository(envelope.project);
    const read = choice(envelope.object_kind, readers);
    const actor = account(envelope.user) ?? pusher(payload);
    // Epics and the like of a group have no project: nothing that a run could work in.
    const happenings = project === null || read === null ? [] : read(payload, { projectUrl: project.url, actor });
    const surroundings = { forge: "gitlab", repository: project, actor, payload } as const;
    return {
      deliveryId: deliveryIdOf(delivery),
      events: inboundEvents({ ...surroundings, confidential: isConfidential(payload) }, happenings),
    };
  },
};

/** Issues are `confidential`, comments `internal` (`confidential` in versions before 16); those on a confidential issue are delivered as such. */
function isConfidential(payload: object): boolean {
  const envelope = payload as NonNullable<
    Untrusted<{
      event_type?: unknown;
      object_attributes?: { confidential?: unknown; internal?: unknown };
      issue?: { confidential?: unknown };
    }>
  >;
  const { confidential, internal } = envelope.object_attributes ?? {};
  const isNamedSo = typeof envelope.event_type === "string" && envelope.event_type.startsWith("confidential_");
  return isNamedSo || [confidential, internal, envelope.issue?.confidential].includes(true);
}

/** The same for each attempt at a delivery. Versions before 17.4 have only an id for the request that set off the event. */
function deliveryIdOf({ headers, body }: InboundDelivery): string | null {
  const id = identifier(headers["idempotency-key"]) ?? identifier(headers["webhook-id"]);
  const event = identifier(headers["x-gitlab-event-uuid"]);
  if (id !== null || event === null) return id;
  return idWithBody(event, body);
}

/** By `object_kind`. Jobs are parts of pipelines, deployments follow them, and emoji and wikis are nothing to act on. */
const readers: Readonly<Record<string, (payload: object, around: Around) => ForgeHappening[]>> = {
  issue: issues,
  // Tasks, incidents and the like: issues of another type.
  work_item: issues,
  merge_request: mergeRequests,
  note,
  push,
  pipeline,
  release,
};

/** The fields read of a push's delivery. */
export type PushPayload = NonNullable<
  Untrusted<{
    ref: unknown;
    before: unknown;
    after: unknown;
    user_id: unknown;
    user_username: unknown;
    commits: { id: unknown; message: unknown; author: { name: unknown } }[];
  }>
>;

/** Who pushed: such deliveries have no `user`. */
function pusher(payload: object): ForgeAccount | null {
  const { user_id: id, user_username: username } = payload as PushPayload;
  return account({ id, username });
}

function push(payload: object, { projectUrl }: Around): ForgeHappening[] {
  const change = payload as PushPayload;
  // Nothing in it says when it was pushed.
  return gitPush(projectUrl, change, commits(change.commits), null);
}

/** The fields read of a pipeline's delivery. */
export type PipelinePayload = NonNullable<
  Untrusted<{
    object_attributes: {
      id: unknown;
      name?: unknown;
      ref: unknown;
      tag: unknown;
      sha: unknown;
      status: unknown;
      finished_at?: unknown;
      url?: unknown;
    };
    merge_request?: {
      iid: unknown;
      source_branch: unknown;
      source_project_id?: unknown;
      target_project_id?: unknown;
    };
    builds?: { name: unknown; status: unknown; allow_failure?: unknown }[];
  }>
>;

/** A pipeline ended. Its jobs can be run again, after which it ends again. */
function pipeline(payload: object, { projectUrl }: Around): ForgeHappening[] {
  const { object_attributes: given, merge_request: into, builds } = payload as PipelinePayload;
  const outcome = choice(given?.status, { success: "passed", failed: "failed" } as const);
  if (outcome === null) return [];
  const id = required(identifier(given?.id), "object_attributes.id");
  const number = integer(into?.iid);
  // The ref of a merge request's pipeline may be refs/merge-requests/1/head.
  const ref = text(into?.source_branch ?? given?.ref, longest.name);
  // A fork's branch may have the name of one of ours.
  const isFork = identifier(into?.source_project_id) !== identifier(into?.target_project_id);
  const checks = {
    kind: "pipeline",
    id,
    name: text(given?.name, longest.name) ?? failedJobs(builds),
    url: text(given?.url, longest.url) ?? `${projectUrl}/-/pipelines/${id}`,
    sha: required(text(given?.sha, longest.name), "object_attributes.sha"),
    branch: given?.tag === true || isFork ? null : ref,
    pullRequests: number === null ? [] : [number],
  };
  const run = [id, text(given?.finished_at, longest.name) ?? ""];
  return [checksOf(projectUrl, outcome, checks, run, "/-/merge_requests/")];
}

/** Most jobs that a pipeline is called by. */
const mostJobs = 5;

/** The names of the jobs that failed: few pipelines have a name, and none that is made of other programs' statuses. */
function failedJobs(builds: PipelinePayload["builds"]): string {
  const failed = list(builds, Infinity).filter((build) => build?.status === "failed" && build.allow_failure !== true);
  const names = present(failed.slice(0, mostJobs).map((build) => text(build?.name, longest.name)));
  return text(names.join(", "), longest.name) ?? "";
}

/** The fields read of a release's delivery. */
export type ReleasePayload = NonNullable<
  Untrusted<{ id: unknown; action: unknown; tag: unknown; name: unknown; description: unknown; url: unknown }>
>;

function release(payload: object, { projectUrl }: Around): ForgeHappening[] {
  const { id, action, tag, name, description, url } = payload as ReleasePayload;
  if (action !== "create") return [];
  const tagName = required(text(tag, longest.name), "tag");
  const published = {
    tag: tagName,
    name: text(name, longest.title) ?? "",
    body: text(description, longest.body) ?? "",
    url: text(url, longest.url) ?? `${projectUrl}/-/releases/${encodeURIComponent(tagName)}`,
    prerelease: false,
  };
  return [
    {
      name: "release.published",
      key: [identifier(id), tagName],
      subject: published.url,
      fields: { release: published },
    },
  ];
}
