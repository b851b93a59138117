import { SessionError } from "../domain/errors/errors.ts";
import { upcomingMessage } from "../store/queue/progress.ts";
import { withSecrets, type Attempt, type AttemptServices } from "./attempt/attempt.ts";
import { namedSteps, type RunStep } from "./attempt/named-step.ts";
import { withOwnForges } from "./attempt/own-forges.ts";
import type { SafePoints } from "./attempt/safe-points.ts";
import { createCheckpointer, type Checkpointer } from "./checkpoints/checkpointer.ts";
import { restoreCheckpoint } from "./checkpoints/restore.ts";
import { beginEarly, type EarlyStart } from "./harness/begin-early.ts";
import type { WarmPool } from "./harness/warm-pool.ts";
import { chooseAgent } from "./steps/agent/choose.ts";
import { variablesOf } from "./steps/agent/turn.ts";
import type { ClonedWork } from "./steps/commit/export-work.ts";
import { openPullRequests } from "./steps/open-pull-requests.ts";
import { passGate } from "./steps/pass-gate.ts";
import { prepareWorkspace, type Workspace } from "./steps/prepare.ts";
import {
  exportAll,
  heldBack,
  publishedOrFailure,
  pushExported,
  resolveOpen,
  withoutPush,
  type PublishedWork,
  type PublishServices,
  type Unresolved,
} from "./steps/publish.ts";
import { createRefusalNotices, type RefusalNotices } from "./steps/push/refusal-notices.ts";
import { setUp } from "./steps/set-up.ts";
import { resolveLimit, takeTurns, type Turns, type TurnsTaken } from "./steps/take-turns.ts";
import type { AttemptSignals } from "./worker.ts";

/** What an attempt has of the worker that runs it. */
interface Surroundings extends Pick<AttemptSignals, "atWork"> {
  readonly safePoints: SafePoints;
  readonly pool: WarmPool;
}

/** An attempt on its way through its steps. */
export interface Run extends Surroundings {
  /** Runs a step by its name, so that each failure has one. */
  readonly step: RunStep;
  readonly begunAt: number;
  /** With its secrets, once the step `prepare` has opened them. */
  attempt: Attempt;
  /** With the forges of the attempt's organization, likewise. */
  services: AttemptServices;
  /** The harness of the first turn, if it was started while the folders are made. */
  early: EarlyStart | null;
  /** Null until the secrets are open. */
  checkpointer: Checkpointer | null;
}

/** Begins an attempt's way through its steps. */
export function beginRun(attempt: Attempt, services: AttemptServices, surroundings: Surroundings): Run {
  const begunAt = performance.now();
  const run: Omit<Run, "step"> = { ...surroundings, begunAt, attempt, services, early: null, checkpointer: null };
  return Object.assign(run, { step: namedSteps(() => run.attempt, services) });
}

/**
 * Runs the steps of an attempt, and ends what works beside them. One that failed leaves a last checkpoint.
 * @returns the session's summary
 */
export async function runSteps(run: Run): Promise<string> {
  try {
    return await stepByStep(run);
  } catch (error) {
    await run.early?.end();
    await run.checkpointer?.takeLast(error);
    throw error;
  } finally {
    await run.early?.end();
    await run.checkpointer?.stop();
  }
}

/** An attempt from top to bottom. @returns the session's summary */
async function stepByStep(run: Run): Promise<string> {
  const workspace = await run.step("prepare", () => prepare(run));
  await setUpMissing(run, workspace);
  if (run.attempt.session.setupTrial === true) return trialWords(workspace);
  const origin = await restore(run, workspace);
  const gated = await askGate(run, workspace);
  if (gated === null) return filteredWords(run);
  const turns = beginTurns(run, workspace, origin);
  const taken = await run.step("agent", () => takeTurns(gated, run.services, turns));
  const { works, pushed, refused } = await publish(run, turns, taken);
  if (pushed === null) return reportNoChange(run, works, taken.finalMessage);
  const body = taken.finalMessage ?? "";
  await run.step("pullRequest", () => openPullRequests(run.attempt, run.services, pushed, body, refused));
  return taken.finalMessage ?? "Done.";
}

/** Opens what the organization gives its sessions, and finds or makes the clones, with the last checkpoint fetched. */
async function prepare(run: Run): Promise<Workspace> {
  const services = await withOwnForges(run.services, run.attempt.session);
  const attempt = await withSecrets(run.attempt, services);
  Object.assign(run, { attempt, services, checkpointer: createCheckpointer(attempt, services) });
  services.metrics.attemptStarted((performance.now() - run.begunAt) / 1_000);
  run.early = await startAgentEarly(run);
  return prepareWorkspace(attempt, services, run.early);
}

/**
 * Starts the agent's harness, or takes one that is ready, while the session's folders are made. What only the repositories' files say
 * of it is not known yet: if they say anything, the turn starts another. A trial of a setup has no agent.
 */
async function startAgentEarly({ attempt, services, pool }: Run): Promise<EarlyStart | null> {
  const { session, registries } = attempt;
  if (session.setupTrial === true) return null;
  const agent = await chooseAgent(attempt, services).catch((error: unknown) => {
    // The agent's step says so.
    if (error instanceof SessionError) return null;
    throw error;
  });
  if (agent === null) return null;
  const settings = session.repositories.map((repository) => ({
    clone: { repository },
    variables: repository.variables,
  }));
  const variables = variablesOf(attempt, settings);
  return beginEarly(attempt, services, pool, { ...agent, variables, registries, image: null });
}

async function setUpMissing({ attempt, services, step }: Run, { missingSetups }: Workspace): Promise<void> {
  if (missingSetups.length > 0) await step("setup", () => setUp(attempt, services, missingSetups));
}

/** The summary of a trial whose setups ran. */
function trialWords({ environments: { length: repositories }, missingSetups: { length: made } }: Workspace): string {
  if (made === 0)
    return "There is no setup to run: the repository's environment has no script, and its files name none.";
  return made === repositories
    ? "The setup works."
    : `${made} of ${repositories} repositories have a setup, which works.`;
}

/** Restores the checkpoint that was fetched, if one was. @returns where the work so far comes from */
async function restore(
  { attempt, services, step }: Run,
  { clones, origin, checkpoint }: Workspace,
): Promise<Turns["origin"]> {
  return checkpoint === null ? origin : step("restore", () => restoreCheckpoint(attempt, services, clones, checkpoint));
}

/**
 * Runs the gate of the session's automation, if there is one that has not decided yet. What a person asks of a session after its gate
 * has filtered it, the agent gets.
 * @returns the attempt with the gate's decision; null if the run is filtered and there is nothing more to do
 */
async function askGate({ attempt, services, step }: Run, workspace: Workspace): Promise<Attempt | null> {
  const { session } = attempt;
  const { gate } = session;
  if (gate === null) return attempt;
  const decided = gate.outcome === null ? await step("gate", () => passGate(attempt, services, gate, workspace)) : gate;
  if (decided.outcome === "filtered" && (await upcomingMessage(services.database, session)) === null) return null;
  return { ...attempt, session: { ...session, gate: decided } };
}

function filteredWords({ attempt: { session } }: Run): string {
  return session.summary ?? "The automation's gate filtered this run: no agent began.";
}

/** Begins to take checkpoints. Not earlier: until the restore the folders may hold less than the last one. */
function beginTurns(run: Run, workspace: Workspace, origin: Turns["origin"]): Turns {
  const { checkpointer, safePoints, early, atWork } = run;
  if (checkpointer === null) throw new Error("the attempt was not prepared");
  checkpointer.start(workspace.clones);
  return { ...workspace, origin, checkpointer, safePoints, early, atWork };
}

/** What publishing needs of a run. */
export interface PublishRun extends Pick<Run, "attempt" | "step"> {
  readonly services: PublishServices;
}

/**
 * Exports the work and pushes it. If it collides with what others committed, or the agent left that unresolved, the agent gets a
 * further turn to resolve it, twice at most. Each attempt that follows a crash does the same from the start: the merge under way
 * is in the folders and in the checkpoint, and the record says that it is not done. What is unresolved, or may not be pushed, of one
 * repository does not hold back the others, unless the session opens its pull requests together: they are pushed before the agent's
 * further turn.
 * @throws SessionError branch_diverged if the conflict is still there; those of the export, the push and a turn
 */
export async function publish(run: PublishRun, turns: Turns, taken: TurnsTaken): Promise<PublishedWork> {
  const { attempt, services, step } = run;
  const notices = createRefusalNotices(attempt);
  let last = taken;
  for (let turnsLeft = resolveLimit; ; turnsLeft -= 1) {
    const { harness } = last;
    const end = heldBack(attempt, last) ?? (await exportAndPush(run, turns, last, notices));
    if ("works" in end) return end;
    const resolved =
      turnsLeft === 0 ? null : await step("agent", () => resolveOpen(attempt, services, turns, harness, end));
    if (resolved === null) return withoutUnresolved(run, end);
    last = resolved;
  }
}

async function exportAndPush(
  { attempt, services, step }: PublishRun,
  turns: Turns,
  taken: TurnsTaken,
  notices: RefusalNotices,
): Promise<PublishedWork | Unresolved> {
  const exported = await step("commit", () => exportAll(attempt, services, turns, taken, notices));
  const end = withoutPush(attempt, exported);
  return end ?? step("push", () => pushExported(attempt, services, turns, exported, notices));
}

/** What was pushed of the other repositories. @throws SessionError if that is nothing, as the failure of a push */
async function withoutUnresolved({ attempt, step }: PublishRun, end: Unresolved): Promise<PublishedWork> {
  const kept = publishedOrFailure(attempt, end);
  return kept instanceof SessionError ? step("push", () => Promise.reject(kept)) : kept;
}

/** Says on the session that there is nothing to push. @returns the session's summary */
async function reportNoChange(
  { attempt }: Run,
  works: readonly ClonedWork[],
  finalMessage: string | null,
): Promise<string> {
  const wasPushed = works.some(({ recorded }) => recorded.pushedSha !== null);
  const text = `The agent changed nothing${wasPushed ? " more" : ": there is no pull request"}.`;
  await attempt.emit({ type: "notice", data: { level: "info", text } });
  return finalMessage ?? "The agent changed nothing.";
}
