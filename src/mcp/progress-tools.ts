import type { ServerContext } from "@modelcontextprotocol/server";
import { z } from "zod";
import type { Client } from "../client.ts";
import type { SessionEvent } from "../domain/sessions/event.ts";
import { isFinal } from "../domain/sessions/status.ts";
import { createEventLines } from "../event-lines.ts";
import { bounded, factsAnswer, mostCharacters, textAnswer } from "./answer.ts";
import { briefSession } from "./brief-session.ts";
import type { McpParts } from "./parts.ts";
import { mayBeTask, taskAnswer } from "./tasks.ts";
import { sessionId } from "./session-tools.ts";

/** Most characters of one event. */
const longestEvent = 4_000;
/** How often a client that asked for it learns that a call still waits, in ms. */
const progressMs = 5_000;
/** Most files of which a diff's answer says how much they changed. */
const mostFiles = 300;
const waitSeconds = z.int().max(600);

/** Adds the tools that show what a session does and what it changed. */
export function addProgressTools(parts: McpParts): void {
  addFollow(parts);
  addWait(parts);
  addDiff(parts);
}

function addFollow({ server, client, answer, scopeChallenge }: McpParts): void {
  server.registerTool(
    "follow_session",
    {
      title: "Follow a session",
      description:
        "What happened in a session since the event number `after`: steps, tool calls, and what its agent said, which stands behind │. Pass the `after` of the answer to go on.",
      inputSchema: z.strictObject({
        sessionId,
        after: z.int().min(0).default(0).describe("Number of the last event that you know; 0: from the beginning."),
        seconds: waitSeconds
          .min(0)
          .default(0)
          .describe("How long to wait for more, unless the session ends; at most 600."),
      }),
      annotations: { readOnlyHint: true },
      ...scopeChallenge("read"),
    },
    ({ sessionId: id, after, seconds }, context) =>
      answer(async () => {
        const heard = await whileWaiting(context, seconds, (signal) =>
          seconds === 0 ? pastEvents(client, id, after) : eventsAsTheyCome(client, id, after, signal),
        );
        const { status } = await client.session.get(id);
        const { text, last, isCut } = heard;
        return textAnswer({ status, after: last, isMore: isCut }, text === "" ? "nothing new" : text);
      }),
  );
}

function addWait({ server, client, answer, scopeChallenge }: McpParts): void {
  server.registerTool(
    "wait_for_session",
    {
      title: "Wait for a session",
      description:
        "Waits until a session has ended, or the time is over, and answers as get_session. Call it again if it has not ended. A client that knows tasks gets one at once.",
      inputSchema: z.strictObject({
        sessionId,
        seconds: waitSeconds.min(1).default(50).describe("How long to wait; at most 600."),
      }),
      annotations: { readOnlyHint: true },
      ...scopeChallenge("read"),
    },
    ({ sessionId: id, seconds }, context) =>
      answer(async () => {
        const session = await client.session.get(id);
        if (isFinal(session.status)) return factsAnswer(briefSession(session, { withSummary: true }));
        if (mayBeTask(context)) return taskAnswer(session);
        await whileWaiting(context, seconds, (signal) => untilEnd(client, id, signal));
        return factsAnswer(briefSession(await client.session.get(id), { withSummary: true }));
      }),
  );
}

/**
 * Does something that may take up to `seconds`, and reports to a client that asked for it that the call is still under
 * way.
 * @param work gets the signal that the time is over, or that the client has gone
 */
async function whileWaiting<Result>(
  { mcpReq }: ServerContext,
  seconds: number,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const progressToken = mcpReq._meta?.progressToken;
  const overtime = AbortSignal.timeout(seconds * 1_000);
  let elapsed = 0;
  const tell =
    progressToken === undefined || seconds === 0
      ? null
      : setInterval(() => {
          elapsed += progressMs / 1_000;
          const params = { progressToken, progress: elapsed, total: seconds, message: "the session is at work" };
          // A client that has gone needs no progress.
          mcpReq.notify({ method: "notifications/progress", params }).catch(() => undefined);
        }, progressMs);
  try {
    return await work(AbortSignal.any([overtime, mcpReq.signal]));
  } finally {
    if (tell !== null) clearInterval(tell);
  }
}

/** Returns when a session has ended, or the signal aborts. */
async function untilEnd(client: Client, id: string, signal: AbortSignal): Promise<void> {
  try {
    // After the last event, the stream has only its end.
    for await (const event of client.streamEvents(id, { after: Number.MAX_SAFE_INTEGER, signal })) void event;
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

interface Heard {
  readonly text: string;
  /** Number of the last event in the text. */
  readonly last: number;
  /** Whether there is more than fits into one answer. */
  readonly isCut: boolean;
}

async function pastEvents(client: Client, id: string, after: number): Promise<Heard> {
  const written = createText(after);
  for (;;) {
    const { events, nextCursor } = await client.session.events(id, { after: String(written.last()), limit: 1_000 });
    for (const event of events) if (!written.add(event)) return written.heard(true);
    if (nextCursor === null) return written.heard(false);
  }
}

async function eventsAsTheyCome(client: Client, id: string, after: number, signal: AbortSignal): Promise<Heard> {
  const written = createText(after);
  try {
    for await (const event of client.streamEvents(id, { after, signal }))
      if (!written.add(event)) return written.heard(true);
  } catch (error) {
    if (!signal.aborted) throw error;
  }
  return written.heard(false);
}

/** Events as lines, as many as fit into one answer. */
function createText(after: number) {
  const lines = createEventLines(false);
  let text = "";
  let last = after;
  return {
    last: () => last,
    /** @returns false if the event does not fit any more */
    add(event: SessionEvent): boolean {
      const more = bounded(lines.of(event), longestEvent);
      if (text.length + more.length > mostCharacters - longestEvent) return false;
      text += more;
      last = event.seq;
      return true;
    },
    heard: (isCut: boolean): Heard => ({ text: text + bounded(lines.rest(), longestEvent), last, isCut }),
  };
}

function addDiff({ server, client, answer, scopeChallenge }: McpParts): void {
  server.registerTool(
    "read_diff",
    {
      title: "Read what a session changed",
      description:
        "The unified diff of a session's work so far, and how many lines each file changed. Name a path to see only what is there.",
      inputSchema: z.strictObject({
        sessionId,
        path: z.string().max(4_000).optional().describe("A file, or a folder, of the repository."),
        repository: z.string().max(2_000).optional().describe("Of several repositories: the name of one."),
        offset: z.int().min(0).default(0).describe("nextOffset of the answer before."),
      }),
      annotations: { readOnlyHint: true },
      ...scopeChallenge("read"),
    },
    ({ sessionId: id, path, repository, offset }) =>
      answer(async () => {
        const { repositories } = await client.session.diff(id);
        const meant = repositories.filter(({ name }) => repository === undefined || name === repository);
        const files = meant.flatMap(({ name, patch }) => filesOf(name, patch)).filter((file) => isAt(file.path, path));
        const text = files.map((file) => file.text).join("");
        const shown = text.slice(offset, offset + mostCharacters);
        const next = offset + shown.length;
        return textAnswer(
          {
            files: files.slice(0, mostFiles).map(({ text: _text, ...counts }) => counts),
            moreFiles: Math.max(0, files.length - mostFiles),
            // The part beyond the limit can't be shown: the branch has it.
            isCut: meant.some(({ truncated }) => truncated),
            nextOffset: next < text.length ? next : null,
          },
          shown === "" ? "nothing is changed" : shown,
        );
      }),
  );
}

interface ChangedFile {
  readonly repository: string;
  readonly path: string;
  readonly added: number;
  readonly removed: number;
  readonly text: string;
}

/** The files of a patch as git prints it. */
function filesOf(repository: string, patch: string): ChangedFile[] {
  return patch
    .split(/^(?=diff --git )/mu)
    .filter((text) => text.startsWith("diff --git "))
    .map((text) => {
      const [head = ""] = text.split("\n", 1);
      const path = /^\+\+\+ "?b\/(.*?)"?$/mu.exec(text)?.[1] ?? head.slice(head.lastIndexOf(" b/") + 3);
      const added = text.match(/^\+(?!\+\+ )/gmu)?.length ?? 0;
      const removed = text.match(/^-(?!-- )/gmu)?.length ?? 0;
      return { repository, path, added, removed, text };
    });
}

function isAt(file: string, path: string | undefined): boolean {
  if (path === undefined) return true;
  const place = path.replace(/^\.?\//u, "").replace(/\/$/u, "");
  return place === "" || file === place || file.startsWith(`${place}/`);
}
