import { createHmac, randomUUID } from "node:crypto";
import { headShaOf } from "../api-request.ts";
import { keepLog } from "../ci.ts";
import { beginThread, feedbackOf } from "../feedback.ts";
import {
  nextLagMs,
  tokenUser,
  type CheckRun,
  type ForgeState,
  type KeptComment,
  type Lines,
  type Place,
} from "../state.ts";
import { toldAsGitHub } from "./github.ts";
import { toldAsGitLab } from "./gitlab.ts";
import type { Told, ToldPullRequest } from "./told.ts";

/** A webhook of the forge, as it delivers. */
export interface Hook {
  readonly kind: "github" | "gitea" | "gitlab";
  readonly url: string;
  readonly secret: string;
}

/** What somebody says on the forge. */
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

/** Tells of what happens, as long as there are hooks: each delivery comes twice, as after an answer that was lost. */
export function deliveriesOf(state: ForgeState, hooks: readonly Hook[]) {
  function send(told: Told): void {
    for (const hook of hooks) {
      const made = deliveryOf(hook, told);
      const deliver = () => post(hook.url, made);
      void deliver().then(deliver);
    }
  }
  const happens = happeningsOn(state, hooks[0]?.kind ?? "github");
  return {
    /** Somebody said something: one who has the token, as the API was asked to. */
    commented(place: Place, comment: KeptComment, by: string): void {
      const { lines = null } = comment;
      send({ type: "comment", place, by, comment, pull: pullOf(state, place, comment.number), lines, reviewId: null });
    },
    /** Somebody says something. */
    say(place: Place, number: number, saying: Saying): KeptComment {
      const { comment, told } = happens.say(place, number, saying);
      send(told);
      return comment;
    },
    /** A run of CI ended. */
    ran: (place: Place, run: CheckRun): void => send(happens.ran(place, run)),
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

/** What people and CI do on a forge, without telling anybody: whoever asks delivers it, when and as often as it likes. */
export function happeningsOn(state: ForgeState, kind: Hook["kind"]) {
  return {
    say(place: Place, number: number, { by, body, lines, reviewId }: Saying) {
      const { comments } = feedbackOf(state, place);
      const id = 700 + comments.length;
      // On GitLab each comment is of a thread.
      const thread = lines !== undefined || kind === "gitlab" ? String(id) : null;
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
    review(
      place: Place,
      number: number,
      { by, body, id }: { readonly by: string; readonly body: string; readonly id: number },
    ): Told {
      const pull = pullOf(state, place, number);
      if (pull === null) throw new Error(`there is no pull request #${number}`);
      return { type: "review", place, by, id, body, pull };
    },
    /** A run of CI failed, whose log is to be read. */
    failed(place: Place, run: Omit<CheckRun, "conclusion">, log: string): Told {
      keepLog(state, place, run.id, log);
      return this.ran(place, { ...run, conclusion: "failure" });
    },
    ran(place: Place, run: CheckRun): Told {
      const open = (state.pulls.get(`${place.owner}/${place.name}`) ?? []).find((each) => each.head === run.branch);
      return {
        type: "checks",
        place,
        by: "ci",
        run,
        pull: open === undefined ? null : pullOf(state, place, open.number),
      };
    },
  };
}

/** @returns null: there is no such pull request, so that the number is an issue's */
function pullOf(state: ForgeState, place: Place, number: number): ToldPullRequest | null {
  const pull = state.pulls.get(`${place.owner}/${place.name}`)?.find((each) => each.number === number);
  return pull === undefined ? null : { ...pull, headSha: headShaOf(state, place, pull) };
}

/** What a forge delivers, signed as each does. Another call is another delivery of the same. */
export function deliveryOf({ kind, secret }: Pick<Hook, "kind" | "secret">, told: Told): Delivery {
  const { event, payload } = kind === "gitlab" ? toldAsGitLab(told) : toldAsGitHub(told);
  const body = JSON.stringify(payload);
  const signature = createHmac("sha256", secret).update(body).digest("hex");
  const id = randomUUID();
  const headers = {
    github: { "X-GitHub-Event": event, "X-GitHub-Delivery": id, "X-Hub-Signature-256": `sha256=${signature}` },
    gitea: { "X-Gitea-Event": event, "X-Gitea-Delivery": id, "X-Gitea-Signature": signature },
    gitlab: { "X-Gitlab-Event": event, "Idempotency-Key": id, "X-Gitlab-Token": secret },
  }[kind];
  return { headers, body };
}

async function post(url: string, { headers, body }: Delivery): Promise<void> {
  // The server may be stopping: a forge tries again later.
  await fetch(url, { method: "POST", headers: { ...headers, "Content-Type": "application/json" }, body }).catch(
    () => null,
  );
}
