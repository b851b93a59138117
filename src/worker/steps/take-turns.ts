import type { TurnResult } from "../../agents/harness.ts";
import { isConnectionError } from "../../database/connection-errors.ts";
import { firstOf } from "../../domain/fields/text.ts";
import type { NewEvent } from "../../domain/sessions/event.ts";
import type { ClaimedSession } from "../../store/queue/claims.ts";
import {
  completeMessage,
  keepMessage,
  nextMessage,
  reopenMessages,
  saveHarness,
  saveWorkspaceWorker,
  transcript,
  upcomingMessage,
  type ClaimedMessage,
} from "../../store/queue/progress.ts";
import type { Attempt, AttemptServices } from "../attempt/attempt.ts";
import { isFailure } from "../attempt/end.ts";
import type { SafePoints } from "../attempt/safe-points.ts";
import { openSessionGateway, type GatewayServicesOfAttempt, type SessionGateway } from "../attempt/session-gateway.ts";
import { untilStored } from "../attempt/until-stored.ts";
import type { Checkpointer } from "../checkpoints/checkpointer.ts";
import type { RestoredFrom } from "../checkpoints/restore.ts";
import type { Clone } from "../clones/clone.ts";
import { folderGone, hasFolder } from "../clones/has-folder.ts";
import type { EarlyStart } from "../harness/begin-early.ts";
import type { EarlyHarness } from "../harness/early-harness.ts";
import type { Launch } from "../harness/launch.ts";
import { requireSandbox } from "../sandboxed/require-sandbox.ts";
import type { RepositoryEnvironment } from "../setup/repository-environment.ts";
import { offeredTools, toolServer } from "../tools/session-tools.ts";
import { agentTurn, variablesOf, type AgentTurn, type TurnServices } from "./agent/turn.ts";
import { chooseAgent } from "./agent/choose.ts";
import { createHeldEvents } from "./agent/held-events.ts";
import { keepAnswer, keptAnswer } from "./agent/kept-answer.ts";
import { resolvePrompt, withOthersWork, type Conflict, type LeftConflict } from "./agent/conflict-prompt.ts";
import type { JoinServices } from "./joins/bring-in.ts";
import { joinBranches } from "./joins/join-branches.ts";
import { resumeJoins } from "./joins/by-hand.ts";
import { firstPrompt, interruptedPrompt, transcriptText } from "./agent/prompt.ts";
import type { EventFacts } from "./agent/delivered-event.ts";

// The step `agent`: for each message that waits, joins others' commits, makes the prompt, has the harness take its turn
// (agent/turn.ts), and records the result. `resolveTurn` is the one turn more that a conflict takes.

/** The shared state of an attempt's turns. */
export interface Turns {
  readonly clones: readonly Clone[];
  readonly environments: readonly RepositoryEnvironment[];
  /** The prompt's facts about the event that a forge delivered; null or omitted: none. */
  readonly eventFacts?: EventFacts | null;
  /** Source of the work so far, for the prompt after an interruption. */
  readonly origin: "disk" | RestoredFrom;
  /** The harness of the first turn, started early; null or omitted: it is started when its turn comes. */
  readonly early?: EarlyStart | null;
  readonly checkpointer: Pick<Checkpointer, "start" | "follow" | "observe" | "take" | "work">;
  readonly safePoints: SafePoints;
  /** Called whenever an agent begins a turn; optional. */
  readonly atWork?: () => void;
}

/** Services of the worker for taking turns. */
export type AgentServices = TurnServices &
  JoinServices &
  GatewayServicesOfAttempt &
  Pick<AttemptServices, "workerId" | "database" | "providers" | "defaultAgent">;

type Harness = ClaimedSession["harness"];

/** The results of an attempt's turns. */
export interface TurnsTaken {
  readonly clones: readonly Clone[];
  /** Merges that the agent was to finish, and that are still under way. */
  readonly conflicts: readonly Conflict[];
  /** The harness's session that the last turn left; null if there was none. */
  readonly harness: Harness;
}

/** The same between two turns. */
interface Between extends Pick<TurnsTaken, "clones" | "harness"> {
  /** Whether the last turn ended by itself in this attempt: false if there was none. */
  readonly hasEnded: boolean;
}

/**
 * Runs one turn for each message that is not answered yet, in order. Before each turn, others' commits to pushed
 * branches are brought into the clones.
 * @returns what the turns left, and the agent's last message: of this attempt, or of an earlier one that had answered all; null if
 *   there is none
 * @throws SessionError if a turn fails, BudgetUsedUp if the budget does
 */
export async function takeTurns(
  attempt: Attempt,
  services: AgentServices,
  turns: Turns,
): Promise<TurnsTaken & { readonly finalMessage: string | null }> {
  const { database } = services;
  const { session, mask } = attempt;
  const { checkpointer, safePoints } = turns;
  let repeated = await reopenLost(attempt, services, turns);
  // From here on this disk has the newest state of the session.
  await saveWorkspaceWorker(database, session, services.workerId);
  let finalMessage = session.summary;
  let taken: Between = { clones: turns.clones, harness: session.harness, hasEnded: false };
  safePoints.enter();
  for (;;) {
    // A message that is marked as running counts as interrupted in the next attempt, so none is once this one is to end.
    attempt.signal.throwIfAborted();
    const joined = await joinBeforeTurn(attempt, services, turns, taken);
    taken = joined.taken;
    const message = await nextMessage(database, session);
    if (message === null) break;
    // Only between two turns of this attempt it is known without another checkpoint what the folders had.
    const before = taken.hasEnded && joined.takenIn.length === 0 && !message.interrupted ? checkpointer.work() : null;
    const turn = await answerMessage(attempt, services, turns, message, joined);
    taken = { ...taken, harness: turn.harness, hasEnded: true };
    finalMessage = turn.answer;
    const gone = await goneFolder(taken.clones);
    // Store the harness's memory first: a completed turn is never repeated.
    const kept = gone === null ? await takeAfterTurn(attempt, checkpointer) : "wholly";
    const isKept = kept === "wholly";
    const after = isKept ? checkpointer.work() : null;
    const hasChanged = before === null || after === null ? null : before !== after;
    const isRepeated = repeated > 0;
    repeated -= 1;
    const end = { answer: mask.text(finalMessage), isKept, isRepeated, hasChanged };
    await untilStored(attempt, () => completeMessage(database, session, message.id, end));
    // It is not asked for again, in the clone that the next attempt makes: it would do the same.
    if (gone !== null) throw folderGone(gone);
    // The database is back. Without the turn's work in a checkpoint, another worker would ask for it again.
    if (kept === "away" && (await takeAfterTurn(attempt, checkpointer)) === "wholly")
      await keepMessage(database, session, message.id);
  }
  // The remaining steps are short: finishing them here costs less than handing the session over.
  safePoints.leave();
  const { clones, conflicts } = await resumeJoins(attempt, services, taken.clones, !taken.hasEnded);
  return { clones, conflicts, harness: taken.harness, finalMessage: finalMessage || null };
}

/** The name of a clone's folder that the agent has removed, or moved away; null if all are there. */
async function goneFolder(clones: readonly Clone[]): Promise<string | null> {
  for (const clone of clones) if (!(await hasFolder(clone))) return clone.remote.directory;
  return null;
}

/**
 * Has the agent answer a message. If it answered in these folders already, but the answer could not be stored, that
 * answer is used.
 * @throws SessionError if the turn fails, BudgetUsedUp if the budget does
 */
async function answerMessage(
  attempt: Attempt,
  services: AgentServices,
  turns: Turns,
  { id, position, text, interrupted }: ClaimedMessage,
  { taken, ...others }: Awaited<ReturnType<typeof joinBeforeTurn>>,
): Promise<{ readonly answer: string; readonly harness: Harness }> {
  const { folders } = services;
  if (interrupted && turns.origin === "disk") {
    const answer = await keptAnswer(attempt, services, id);
    if (answer !== null) return { answer, harness: taken.harness };
  }
  // From here on the folders are not what an earlier turn left.
  await folders.forgetAnswered(attempt.session.sessionId);
  const prompt = interrupted ? interruptedPrompt(text, turns.origin) : text;
  const asked = { id, isFirst: position === 1, text: withOthersWork(prompt, others), harness: taken.harness };
  const { result, harness } = await takeTurn(attempt, services, turns, asked);
  return { answer: result.finalMessage, harness };
}

/**
 * Brings others' commits into the clones before the agent gets the next message. A merge that it was to finish in an
 * earlier turn comes first. An interrupted turn goes on with the folders as they are, also in the middle of a merge,
 * whose message the agent gets again: others' commits are joined with the work when that is pushed.
 */
async function joinBeforeTurn(attempt: Attempt, services: AgentServices, turns: Turns, taken: Between) {
  let { clones, harness, hasEnded } = taken;
  const upcoming = await upcomingMessage(services.database, attempt.session);
  if (upcoming === null) return { taken, takenIn: [], conflicts: [] };
  const isKept = upcoming.interrupted && turns.origin !== "remote";
  for (let turnsLeft = resolveLimit; ; turnsLeft -= 1) {
    const resumed = await resumeJoins(attempt, services, clones, !hasEnded);
    const { takenIn, conflicts, isUnfinished, ...joined } = isKept
      ? { ...resumed, takenIn: [], isUnfinished: false }
      : await joinBranches(attempt, services, resumed.clones, {
          withTarget: upcoming.mergesTarget,
          unfinished: resumed.conflicts,
        });
    clones = joined.clones;
    turns.checkpointer.start(clones);
    await noticeConflicts(attempt, conflicts);
    if (!isUnfinished || turnsLeft === 0) return { taken: { clones, harness, hasEnded }, takenIn, conflicts };
    ({ harness } = await resolveTurn(attempt, services, turns, harness, conflicts));
    hasEnded = true;
  }
}

/** Turns of one attempt that only resolve conflicts: an agent that does not manage in these would not in more. */
export const resolveLimit = 2;

/**
 * A turn that answers no message: the agent resolves conflicts, of which its folders are in the middle, or whose markers it left.
 * @param harness the harness's session that the last turn left
 * @throws SessionError if the turn fails, BudgetUsedUp if the budget does
 */
export async function resolveTurn(
  attempt: Attempt,
  services: AgentServices,
  turns: Turns,
  harness: Harness,
  conflicts: readonly Conflict[],
  left: readonly LeftConflict[] = [],
): Promise<{ readonly harness: Harness }> {
  attempt.signal.throwIfAborted();
  const text = resolvePrompt(conflicts, left);
  const turn = await takeTurn(attempt, services, turns, { id: null, isFirst: false, text, harness });
  await takeAfterTurn(attempt, turns.checkpointer);
  return turn;
}

/**
 * Takes a checkpoint after a turn. If the database can't be reached, the attempt goes on without it: if it ended here,
 * the turn, which is paid, would be repeated.
 * @returns how much is stored; `away`: nothing, because the database could not be reached
 * @throws as `take`, except a connection error
 */
async function takeAfterTurn(
  { logger }: Pick<Attempt, "logger">,
  checkpointer: Turns["checkpointer"],
): Promise<"wholly" | "partly" | "away"> {
  try {
    return (await checkpointer.take()) ? "wholly" : "partly";
  } catch (error) {
    if (!isConnectionError(error)) throw error;
    logger.warn({ err: error }, "could not take a checkpoint after a turn: the database could not be reached");
    return "away";
  }
}

/** Most files that a notice names. */
const namedFiles = 10;

/** Adds a notice to the session: others' commits collide with its work. */
export async function noticeConflicts({ emit }: Pick<Attempt, "emit">, conflicts: readonly Conflict[]): Promise<void> {
  for (const { directory, branch, paths } of conflicts) {
    const text = `What others committed to ${branch} of ${directory} collides with the session's work in ${firstOf(paths, namedFiles)}: the agent resolves that first.`;
    await emit({ type: "notice", data: { level: "info", text: text.slice(0, 2_000) } });
  }
}

/** Asks the agent again what it had answered, if the changes that it made then are lost. @returns how many messages */
async function reopenLost(
  { session }: Pick<Attempt, "session">,
  { database }: Pick<AgentServices, "database">,
  { clones, origin }: Pick<Turns, "clones" | "origin">,
): Promise<number> {
  if (origin === "disk" || isOnRemote(clones)) return 0;
  return reopenMessages(database, session, origin === "remote" ? "all" : "not kept");
}

/** Whether the clones start with everything that was exported from the session so far. */
function isOnRemote(clones: readonly Clone[]): boolean {
  return (
    clones.length > 0 &&
    clones.every(({ repository, headSha }) => {
      return repository.headSha !== null && [headSha, repository.baseSha].includes(repository.headSha);
    })
  );
}

interface Message {
  /** Its id; null: it is Offstage's own, which no record has. */
  readonly id: string | null;
  /** Whether it begins the conversation. */
  readonly isFirst: boolean;
  readonly text: string;
  /** The harness's session that the last turn left; null if there was none. */
  readonly harness: Harness;
}

async function takeTurn(
  attempt: Attempt,
  services: AgentServices,
  { clones, environments, eventFacts, early, checkpointer, safePoints, atWork }: Turns,
  message: Message,
): Promise<{ readonly result: TurnResult; readonly harness: Harness }> {
  const { database } = services;
  const { session } = attempt;
  await requireSandbox(services);
  const { provider, model, reasoning } = await chooseAgent(attempt, services);
  const over = new AbortController();
  const tools = offeredTools(attempt, services);
  const image = environments[0]?.image ?? null;
  const launch = { provider, model, reasoning, variables: variablesOf(attempt, environments), image };
  const { gateway, harness: ready } = await gatewayOf(attempt, {
    early: early ?? null,
    launch: { ...launch, registries: attempt.registries },
    open: (waiting) => openSessionGateway(attempt, services, tools, (reason) => over.abort(reason), waiting),
  });
  checkpointer.follow(provider);
  const events = createHeldEvents(attempt, services);
  const emit = async (event: NewEvent): Promise<void> => {
    await events.emit(event);
    if (event.type === "agent.started") {
      early?.isThrough();
      atWork?.();
    }
    checkpointer.observe(event);
    safePoints.observe(event);
  };
  let { harness } = message;
  let result: TurnResult | null = null;
  try {
    result = await agentTurn({ ...attempt, emit }, services, {
      ...launch,
      gateway,
      early: ready,
      toolServers: tools.list.length === 0 ? [] : [toolServer(gateway)],
      // The first message may have been cancelled before an agent got it.
      message:
        message.isFirst || harness === null ? firstPrompt(session, message.text, clones, eventFacts) : message.text,
      transcript: transcriptText(await transcript(database, session)),
      // Another provider can't load this session.
      resume: harness?.provider === provider.id ? harness.sessionId : null,
      onSession: async (sessionId) => {
        harness = { provider: provider.id, model, sessionId };
        await saveHarness(database, session, harness);
      },
      signal: AbortSignal.any([attempt.signal, over.signal]),
    });
  } finally {
    await gateway.close();
    // Before anything waits for the database: it may be away.
    if (result !== null && message.id !== null && !over.signal.aborted) {
      const { finalMessage: answer } = result;
      await keepAnswer(attempt, services, { message: message.id, answer, events: events.held() });
    }
    // Events before a turn's failure are stored before the failure.
    if (result === null) await events.settled();
    await gateway.stored();
    // The harness may end normally after a refused request; the turn is not done all the same.
    attempt.signal.throwIfAborted();
    over.signal.throwIfAborted();
  }
  await events.stored();
  return { result, harness };
}

/**
 * The gateway of a turn: that of the harness that was started early, if the turn can have that one.
 * @param parts.open opens a gateway, or adopts one that waits
 */
async function gatewayOf(
  { logger, signal }: Pick<Attempt, "logger" | "signal">,
  {
    early,
    launch,
    open,
  }: {
    readonly early: EarlyStart | null;
    readonly launch: Launch;
    readonly open: (waiting: EarlyHarness["gateway"] | null) => Promise<SessionGateway>;
  },
): Promise<{ readonly gateway: SessionGateway; readonly harness: NonNullable<AgentTurn["early"]> | null }> {
  const harness = (await early?.use(launch)) ?? null;
  if (early === null || harness === null) return { gateway: await open(null), harness: null };
  try {
    return { gateway: await open(harness.gateway), harness: { harness, began: early.began } };
  } catch (error) {
    if (!isFailure(error, signal)) throw error;
    logger.warn({ err: error }, "the gateway that was opened early is gone; another is opened");
    early.began("failed");
    await harness.stop();
    return { gateway: await open(null), harness: null };
  }
}
