import { newId } from "../fields/new-id.ts";
import type { PullRequestSettings } from "../repositories/pull-request-settings.ts";
import { defaultBranchName, firstMessage, titleOf } from "./session.ts";

/** A new session with every default settled, ready for the database. */
export interface NewSession {
  readonly id: string;
  readonly title: string;
  readonly description: string;
  readonly prompt: string | null;
  readonly status: "draft" | "queued";
  readonly agent: string | null;
  readonly targetBranch: string | null;
  readonly branchName: string;
  readonly priority: number;
  readonly repositories: readonly { readonly id: string; readonly directory: string }[];
  /** Whether no pull request is opened until the work on all repositories is pushed. */
  readonly pullRequestsTogether: boolean;
  readonly labels: readonly string[];
  /** Whether it only runs the setups of its repositories. */
  readonly setupTrial: boolean;
  readonly automationId: string | null;
  readonly jobId: string | null;
  /** Its place among the sessions of its job, from 0. */
  readonly jobPart: number;
  readonly payload: unknown;
  /** Script that decides in the sandbox whether the agent begins; null: it does. */
  readonly gate: string | null;
  /** How its pull requests are opened; null: as usual. */
  readonly pullRequest: PullRequestSettings | null;
  /** Its own limit in US dollars; null: its automation's or organization's. */
  readonly budgetUsd: number | null;
  /** Id of the key that created it. */
  readonly createdBy: string | null;
  /** Id of the signed-in user who asked for it; null: the user of the key, if it has one. */
  readonly requestedBy: string | null;
  readonly sandboxed: boolean;
  /** The first message to the agent. */
  readonly message: string;
  readonly notices: readonly string[];
  /** W3C trace context of the request or job that created it; null if traces are off. */
  readonly traceParent: string | null;
}

/** The fields of a new session in a request or a job; `newSession` sets the rest. */
export interface SessionRequest {
  /** Default: a new one. The branch's name contains its last eight digits. */
  readonly id?: string | undefined;
  readonly prompt?: string | undefined;
  readonly description?: string | undefined;
  readonly title?: string | undefined;
  readonly agent?: string | null | undefined;
  readonly targetBranch?: string | null | undefined;
  readonly branchName?: string | null | undefined;
  readonly queueRightAway?: boolean | null | undefined;
  readonly repositories: readonly { readonly id: string; readonly name: string }[];
  /** Default: false. */
  readonly pullRequestsTogether?: boolean | null | undefined;
  /** Default: false. */
  readonly setupTrial?: boolean | undefined;
  /** Default: none. */
  readonly labels?: readonly string[] | undefined;
  readonly priority?: number | undefined;
  readonly automationId?: string | undefined;
  readonly jobId?: string | undefined;
  /** Default: 0. */
  readonly jobPart?: number | undefined;
  readonly payload?: unknown;
  readonly gate?: string | null | undefined;
  readonly pullRequest?: PullRequestSettings | null | undefined;
  readonly budgetUsd?: number | null | undefined;
  readonly createdBy?: string | null | undefined;
  readonly requestedBy?: string | null | undefined;
  readonly sandboxed: boolean;
  readonly notices?: readonly string[] | undefined;
  readonly traceParent?: string | null | undefined;
}

/**
 * Settles what the specification leaves to the service: title, description, branch name, and a folder for each
 * repository.
 */
export function newSession(request: SessionRequest): NewSession {
  const id = request.id ?? newId();
  const titled = [request.prompt, request.description].find((text) => text !== undefined && text.trim() !== "");
  const title = request.title ?? titleOf(titled ?? "");
  return {
    id,
    title,
    description: request.description ?? request.prompt ?? "",
    prompt: request.prompt ?? null,
    status: request.queueRightAway === false ? "draft" : "queued",
    agent: request.agent ?? null,
    targetBranch: request.targetBranch ?? null,
    branchName: request.branchName ?? defaultBranchName(title, id),
    priority: request.priority ?? 5,
    repositories: withDirectories(request.repositories),
    pullRequestsTogether: request.pullRequestsTogether ?? false,
    labels: request.labels ?? [],
    setupTrial: request.setupTrial ?? false,
    automationId: request.automationId ?? null,
    jobId: request.jobId ?? null,
    jobPart: request.jobPart ?? 0,
    payload: request.payload ?? null,
    gate: request.gate ?? null,
    pullRequest: request.pullRequest ?? null,
    budgetUsd: request.budgetUsd ?? null,
    createdBy: request.createdBy ?? null,
    requestedBy: request.requestedBy ?? null,
    sandboxed: request.sandboxed,
    message: firstMessage(request),
    notices: request.notices ?? [],
    traceParent: request.traceParent ?? null,
  };
}

/**
 * Chooses the folder of each repository in the workspace: the last part of its name, with unsafe characters replaced,
 * and numbered if two are equal regardless of case. Names of git references contain it too.
 */
function withDirectories(repositories: SessionRequest["repositories"]): { id: string; directory: string }[] {
  const taken = new Set<string>();
  return repositories.map(({ id, name }) => {
    const last = name.slice(name.lastIndexOf("/") + 1);
    const safe =
      last
        .replace(/[^A-Za-z0-9._-]+/gu, "-")
        .replace(/\.{2,}/gu, ".")
        .replace(/^[.-]+/u, "")
        .slice(0, 60)
        .replace(/\.lock$/iu, "-lock") || "repository";
    let directory = safe;
    for (let number = 2; taken.has(directory.toLowerCase()); number += 1) directory = `${safe}-${number}`;
    taken.add(directory.toLowerCase());
    return { id, directory };
  });
}
