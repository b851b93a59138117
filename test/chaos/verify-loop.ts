import { commentMarkKey } from "../../src/domain/repositories/comment-mark.ts";
import type { ChaosFleet } from "./fleet.ts";
import type { LoopEvent } from "./loop.ts";

/** What there is of the feedback loop at the end. */
export interface LoopFound {
  /** Messages after the first of each session. */
  readonly messages: readonly { readonly sessionId: string; readonly text: string; readonly status: string }[];
  /** What Offstage wrote on the forge. */
  readonly answers: readonly {
    readonly repository: string;
    readonly number: number;
    readonly thread: string | null;
    readonly body: string;
  }[];
  /** Reactions, as the forge keeps them, by repository. */
  readonly reactions: ReadonlyMap<string, ReadonlySet<string>>;
  /** What is still to be done, one sentence each. */
  readonly unrest: readonly string[];
}

/** Reads what came of the loop in these repositories. */
export async function findLoop(
  fleet: Pick<ChaosFleet, "forge" | "store">,
  repositories: readonly string[],
): Promise<LoopFound> {
  const { rows: messages } = await fleet.store.query<LoopFound["messages"][number]>(
    `select session_id as "sessionId", text, status from message where position > 1`,
  );
  const feedback = repositories.map((repository) => ({ repository, ...fleet.forge.feedback("acme", repository) }));
  return {
    messages,
    answers: feedback.flatMap(({ repository, comments }) =>
      comments
        .filter(({ body }) => commentMarkKey(body) !== null)
        .map(({ number, thread, body }) => ({ repository, number, thread, body })),
    ),
    reactions: new Map(feedback.map(({ repository, reactions }) => [repository, reactions])),
    unrest: await findUnrest(fleet),
  };
}

/**
 * What the loop has still to do, and what it gave up: nothing starts by itself once there is none.
 * @returns one sentence for each
 */
export async function findUnrest({ store }: Pick<ChaosFleet, "store">): Promise<string[]> {
  const { rows } = await store.query<{ what: string }>(
    `select 'the event ' || id || ' is not decided' as what from arrival where outcome is null
     union all select 'the answer ' || key || ' is ' || status || coalesce(': ' || problem, '') from answer where status <> 'sent'
     union all select 'the conversation ' || id || ' has something due' from conversation where due_at is not null
     union all select 'the run ' || id || ' is not answered' from conversation_run
     union all select 'the text of pull request ' || url || ' is not current' from pull_request where section_due_at is not null`,
  );
  return rows.map(({ what }) => what);
}

/** @returns one sentence for each event that did not become exactly one turn with its one answer, and for all that nothing called forth */
export function brokenLoop(events: readonly LoopEvent[], found: LoopFound): string[] {
  const broken = [...found.unrest];
  for (const event of events) {
    const { sessionId, repository, pullRequest, sign, reaction, answered, thread, file } = event;
    const name = `${sign.trim()} of ${repository} #${pullRequest}`;
    const turns = found.messages.filter((message) => message.sessionId === sessionId && message.text.includes(sign));
    if (turns.length !== 1)
      broken.push(
        [`${name} became ${turns.length} turns`, ...turns.map(({ text }) => text.slice(0, 1_000))].join(": "),
      );
    if (turns.some(({ status }) => status !== "done")) broken.push(`the turn of ${name} has not ended`);
    if (reaction !== null && found.reactions.get(repository)?.has(reaction) !== true)
      broken.push(`${name} has no reaction`);
    const answers = found.answers.filter(
      (answer) =>
        answer.repository === repository &&
        answer.number === pullRequest &&
        answer.thread === thread &&
        answer.body.includes(file),
    );
    if (answers.length !== Number(answered)) broken.push(`${name} has ${answers.length} answers`);
  }
  for (const { sessionId, text } of found.messages)
    if (!events.some((event) => event.sessionId === sessionId && text.includes(event.sign)))
      broken.push(`session ${sessionId} has an unrequested turn: ${text.slice(0, 200)}`);
  const expected = events.filter(({ answered }) => answered).length;
  if (found.answers.length !== expected) {
    const bodies = found.answers.map(({ body }) => body.slice(0, 100));
    broken.push(
      `${expected} were to be answered, and there are ${found.answers.length} answers: ${bodies.join(" | ")}`,
    );
  }
  const reacted = [...found.reactions.values()].reduce((sum, { size }) => sum + size, 0);
  const reactions = events.filter(({ reaction }) => reaction !== null).length;
  if (reacted !== reactions) broken.push(`${reactions} were to get a reaction, and there are ${reacted}`);
  return broken;
}
