import { createHmac, randomUUID } from "node:crypto";
import { headShaOf } from "../api-request.ts";
import { keepLog } from "../ci.ts";
import { bareOf, mergedForChecks, tipOf } from "../commits.ts";
import { beginThread, feedbackOf } from "../feedback.ts";
import {
  nextLagMs,
  tokenUser,
  type CheckRun,
  type ForgeState,
  type KeptComment,
  type KeptReview,
  type KeptStatus,
  type Lines,
  type Place,
} from "../state.ts";
import { toldAsAzure } from "./azure.ts";
import { toldAsBitbucket } from "./bitbucket.ts";
import { toldAsDataCenter } from "./data-center.ts";
import { toldAsGitea, toldAsGitHub } from "./github.ts";
import { toldAsGitLab } from "./gitlab.ts";
import { numberOf, type Delivered, type Told, type ToldPullRequest } from "./told.ts";

/** A webhook of the forge, as it delivers. */
export interface Hook {
  readonly kind: "github" | "gitea" | "gitlab" | "bitbucket" | "bitbucketDataCenter" | "azure";
  readonly url: string;
  readonly secret: string;
}

/** A comment on the forge. */
export interface Saying {
  readonly by: string;
  readonly body: string;
  /** On lines of the change, in a thread of its own. */
  readonly lines?: Lines;
  /** The review that it is a part of. */
  readonly reviewId?: number;
}

/** One delivery that can be sent, and sent again, as after an answer that was lost. */
export interface Delivery {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const inGitHubForm: ReadonlySet<string> = new Set(["github", "gitea"]);
/** Forges that check the merge of a pull request with its target. */
const checksMerges: ReadonlySet<string> = new Set(["gitlab", "azure"]);

/** Delivers what happens, as long as there are hooks: each delivery comes twice, as after an answer that was lost. */
export function deliveriesOf(state: ForgeState, hooks: readonly Hook[]) {
  /** @returns once each hook has answered the first of its two deliveries */
  async function sendFirst(told: Told): Promise<void> {
    const firsts = hooks.map(async (hook) => {
      const made = deliveryOf(hook, told);
      if (made === null) return;
      const deliver = () => post(hook.url, made);
      await deliver();
      void deliver();
    });
    await Promise.all(firsts);
  }
  const send = (told: Told): void => void sendFirst(told);
  const kind = hooks[0]?.kind ?? "github";
  const happens = happeningsOn(state, kind);
  return {
    /** A comment by the token's user, made by the API. */
    commented(place: Place, comment: KeptComment, by: string): void {
      const { lines = null } = comment;
      send({ type: "comment", place, by, comment, pull: pullOf(state, place, comment.number), lines, reviewId: null });
    },
    /** Makes a comment. */
    say(place: Place, number: number, saying: Saying): KeptComment {
      const { comment, told } = happens.say(place, number, saying);
      send(told);
      return comment;
    },
    /** A review asks for changes. Its comments on lines are made before. */
    review: (place: Place, number: number, review: KeptReview): void => send(happens.review(place, number, review)),
    /** A run of CI ended. */
    ran(place: Place, run: CheckRun): void {
      const told = happens.ran(place, run);
      // Gitea delivers each job first, by the status that it sets.
      void (kind === "gitea" ? sendFirst(jobStatus(place, run)) : Promise.resolve()).then(() => send(told));
    },
    /** A program set the status of a commit. */
    statusSet: (place: Place, status: KeptStatus): void => send({ type: "status", place, by: tokenUser, status }),
    /** Branches were pushed to. */
    pushed: (place: Place, branch: string, before: string | null, after: string, by: string): void =>
      send({ type: "push", place, by, branch, before, after }),
    /** The text of a pull request was changed. */
    edited(place: Place, number: number, before: string): void {
      const pull = pullOf(state, place, number);
      if (pull !== null) send({ type: "edited", place, by: tokenUser, before, pull });
    },
    /** A pull request was merged or closed. */
    ended(place: Place, number: number): void {
      const pull = pullOf(state, place, number);
      if (pull !== null) send({ type: "ended", place, by: "ann", pull });
    },
  };
}

/** Actions of people and CI on a forge, without deliveries: the caller delivers them, when and as often as it likes. */
export function happeningsOn(state: ForgeState, kind: Hook["kind"]) {
  return {
    say(place: Place, number: number, { by, body, lines, reviewId }: Saying) {
      const { comments } = feedbackOf(state, place);
      const id = 700 + comments.length;
      // Elsewhere than on GitHub and Gitea each comment is of a thread.
      const thread = lines !== undefined || !inGitHubForm.has(kind) ? String(id) : null;
      const shownFrom = performance.now() + nextLagMs(state);
      const on = lines === undefined ? {} : { lines };
      const comment: KeptComment = { id, number, body, thread, createdAt: new Date().toISOString(), shownFrom, ...on };
      comments.push(comment);
      if (thread !== null) beginThread(state, place, thread);
      const pull = pullOf(state, place, number);
      const told: Told = {
        type: "comment",
        place,
        by,
        comment,
        pull,
        lines: lines ?? null,
        reviewId: reviewId ?? null,
      };
      return { comment, told };
    },
    /** A review that asks for changes; what it says on lines is said beside it. */
    review(place: Place, number: number, { by, body, id }: KeptReview): Told {
      const pull = pullOf(state, place, number);
      if (pull === null) throw new Error(`there is no pull request #${number}`);
      const facts = state.facts.get(`${place.owner}/${place.name}`) ?? {};
      const reviews = [...(facts.reviews ?? []), String(id)];
      state.facts.set(`${place.owner}/${place.name}`, { ...facts, reviews });
      return { type: "review", place, by, id, body, pull };
    },
    /** A run of CI failed, whose log is to be read. */
    failed(place: Place, run: Omit<CheckRun, "conclusion">, log: string): Told {
      keepLog(state, place, run.id, log);
      return this.ran(place, { ...run, conclusion: "failure" });
    },
    ran(place: Place, run: CheckRun): Told {
      const open = (state.pulls.get(`${place.owner}/${place.name}`) ?? []).find((each) => each.head === run.branch);
      const pull = open === undefined ? null : pullOf(state, place, open.number);
      const bare = bareOf(state, place);
      const base = pull === null || !checksMerges.has(kind) ? null : tipOf(bare, pull.base);
      const mergedSha = base === null ? null : mergedForChecks(bare, run.sha, base);
      const facts = state.facts.get(`${place.owner}/${place.name}`) ?? {};
      const runs = { ...facts.runs, [run.id]: { sha: run.sha, number: numberOf(run) } };
      state.facts.set(`${place.owner}/${place.name}`, { ...facts, runs });
      return { type: "checks", place, by: "ci", run, pull, mergedSha };
    },
  };
}

/** The status of the one job of a run of Gitea's. */
function jobStatus(place: Place, run: CheckRun): Told {
  const url = `/${place.owner}/${place.name}/actions/runs/${numberOf(run)}/jobs/0`;
  const status = { sha: run.sha, name: "CI / build (push)", state: run.conclusion, description: "", url };
  return { type: "status", place, by: "ci", status };
}

/** @returns null: there is no such pull request, so that the number is an issue's */
function pullOf(state: ForgeState, place: Place, number: number): ToldPullRequest | null {
  const pull = state.pulls.get(`${place.owner}/${place.name}`)?.find((each) => each.number === number);
  return pull === undefined ? null : { ...pull, headSha: headShaOf(state, place, pull) };
}

/**
 * What a forge delivers, signed as each does. Another call is another delivery of the same.
 * @returns null: the forge delivers no such thing
 */
export function deliveryOf({ kind, secret }: Pick<Hook, "kind" | "secret">, told: Told): Delivery | null {
  const delivered = deliveredBy(kind, told);
  if (delivered === null) return null;
  const { event, payload } = delivered;
  const id = randomUUID();
  const body = JSON.stringify(kind === "azure" ? { id, ...payload } : payload);
  const signature = createHmac("sha256", secret).update(body).digest("hex");
  const headers = {
    github: { "X-GitHub-Event": event, "X-GitHub-Delivery": id, "X-Hub-Signature-256": `sha256=${signature}` },
    gitea: { "X-Gitea-Event": event, "X-Gitea-Delivery": id, "X-Gitea-Signature": signature },
    gitlab: { "X-Gitlab-Event": event, "Idempotency-Key": id, "X-Gitlab-Token": secret },
    bitbucket: { "X-Event-Key": event, "X-Request-UUID": id, "X-Hub-Signature": `sha256=${signature}` },
    bitbucketDataCenter: { "X-Event-Key": event, "X-Request-Id": id, "X-Hub-Signature": `sha256=${signature}` },
    azure: { Authorization: `Basic ${Buffer.from(`offstage:${secret}`).toString("base64")}` },
  }[kind];
  return { headers, body };
}

function deliveredBy(kind: Hook["kind"], told: Told): Delivered | null {
  switch (kind) {
    case "github":
      return toldAsGitHub(told);
    case "gitea":
      return toldAsGitea(told);
    case "gitlab":
      return toldAsGitLab(told);
    case "bitbucket":
      return toldAsBitbucket(told);
    case "bitbucketDataCenter":
      return toldAsDataCenter(told);
    case "azure":
      return toldAsAzure(told);
  }
}

async function post(url: string, { headers, body }: Delivery): Promise<void> {
  // The server may be stopping: a forge tries again later.
  await fetch(url, { method: "POST", headers: { ...headers, "Content-Type": "application/json" }, body }).catch(
    () => null,
  );
}
