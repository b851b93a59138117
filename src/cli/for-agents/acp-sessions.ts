import { randomUUID } from "node:crypto";
import {
  RequestError,
  type AgentContext,
  type ListSessionsRequest,
  type ListSessionsResponse,
  type NewSessionResponse,
  type PromptRequest,
  type PromptResponse,
  type SessionConfigOption,
  type SetSessionConfigOptionRequest,
} from "@agentclientprotocol/sdk";
import { ClientError, type Client } from "../../client.ts";
import { InvalidInputError } from "../../domain/errors/errors.ts";
import type { SessionDetail } from "../../domain/sessions/session.ts";
import { isFinal } from "../../domain/sessions/status.ts";
import { oneLine, printable } from "../../printable.ts";
import { repositoryKeyOf, readCheckout, sendChanges, type Checkout, type Need } from "../checkout/checkout.ts";
import type { ServerConnection } from "../remote/connect.ts";
import { lastEvent } from "../remote/last-event.ts";
import type { Terminal } from "../terminal/commands.ts";
import { follow, replay, tell, type FollowedSession } from "./acp-follow.ts";
import { chosen, defaultAgent, sessionOptions, type Choices } from "./acp-options.ts";
import { promptText } from "./acp-prompt.ts";
import { keepName, sessionOfName } from "./acp-state.ts";

interface OpenSession {
  /** As the editor knows it. */
  readonly name: string;
  readonly cwd: string;
  choices: Choices;
  /** The server's session, and what the editor was sent of it; null before the first prompt. */
  followed: FollowedSession | null;
  /** How often the server refused to make its session. */
  refusals: number;
  /** Whether the editor gave up the turn under way. */
  isCancelled: boolean;
  /** Ends telling the editor, not the work. */
  telling: AbortController;
}

/** The sessions of one editor on one server. */
export interface AcpSessions extends ServerConnection {
  readonly terminal: Terminal;
  /** Whether uncommitted changes are sent unless the editor says otherwise. */
  readonly withChanges: boolean;
  /** By the names by which the editor knows them. */
  readonly open: Map<string, OpenSession>;
}

/** Opens a session for a folder; the server gets to know of it with the first prompt. */
export async function createAcpSession(sessions: AcpSessions, cwd: string): Promise<NewSessionResponse> {
  const choices = { agent: defaultAgent, withChanges: sessions.withChanges };
  const configOptions = await sessionOptions(sessions.client, choices, false);
  return { sessionId: remember(sessions, randomUUID(), cwd, choices, null).name, configOptions };
}

/**
 * Goes on with a session of an earlier process, or one that was begun elsewhere.
 * @param options.replay whether its history is sent first
 */
export async function openSession(
  sessions: AcpSessions,
  name: string,
  cwd: string,
  editor: AgentContext,
  options: { readonly replay: boolean },
): Promise<{ configOptions: SessionConfigOption[] }> {
  const id = await sessionOfName(name, sessions.server, sessions.terminal);
  const detail = id === null ? null : await detailOf(sessions.client, id);
  if (detail === null) throw RequestError.resourceNotFound(name);
  const followed = { name, id: detail.id, root: (await checkoutAt(sessions, cwd, "nothing"))?.root ?? null, last: 0 };
  const choices = { agent: detail.agent ?? defaultAgent, withChanges: false };
  const session = remember(sessions, name, cwd, choices, followed);
  if (options.replay) await replay(sessions.client, followed, editor);
  else followed.last = await lastEvent(sessions.client, followed.id);
  // Updates of a running session are sent from here on, until a prompt takes over.
  if (!isFinal(detail.status)) {
    takeOver(sessions, session, followed, editor, true).catch((error: unknown) =>
      sessions.terminal.warn(`offstage: ${printable(String(error))}\n`),
    );
  }
  return { configOptions: await sessionOptions(sessions.client, choices, true) };
}

/** Sessions that the person asked for: those on the folder's repository, if one is named. */
export async function listAcpSessions(
  sessions: AcpSessions,
  { cwd, cursor }: ListSessionsRequest,
): Promise<ListSessionsResponse> {
  const checkout = cwd == null ? null : await checkoutAt(sessions, cwd, "nothing");
  const page = await sessions.client.session.list({ limit: 50, requestedBy: "me", cursor: cursor ?? undefined });
  return {
    sessions: page.sessions
      .filter((session) => checkout === null || isOf(session, checkout))
      .map(({ id, title, updatedAt }) => ({
        sessionId: id,
        cwd: checkout?.root ?? cwd ?? sessions.terminal.workingDirectory,
        title: oneLine(printable(title)),
        updatedAt,
      })),
    nextCursor: page.nextCursor,
  };
}

/** Sets an option. @throws RequestError if the session does not have it so */
export async function configureSession(
  sessions: AcpSessions,
  request: SetSessionConfigOptionRequest,
): Promise<SessionConfigOption[]> {
  const session = found(sessions, request.sessionId);
  const options = await sessionOptions(sessions.client, session.choices, session.followed !== null);
  session.choices = chosen(session.choices, options, request);
  return sessionOptions(sessions.client, session.choices, session.followed !== null);
}

/** Starts the work, and streams its updates until it ends. */
export async function promptSession(
  sessions: AcpSessions,
  request: PromptRequest,
  editor: AgentContext,
): Promise<PromptResponse> {
  const session = found(sessions, request.sessionId);
  session.isCancelled = false;
  let { followed } = session;
  if (followed === null) {
    followed = session.followed = await begin(sessions, session, request, editor);
    // While changes were sent, there was nothing to cancel yet.
    if (isGivenUp(session)) await cancelAcpSession(sessions, session.name);
  } else {
    await sessions.client.session.message(followed.id, { message: promptText(request.prompt, followed.root) });
  }
  await takeOver(sessions, session, followed, editor, false);
  return resultOf(await sessions.client.session.get(followed.id));
}

/** Cancels the session's work. */
export async function cancelAcpSession({ client, open }: AcpSessions, name: string): Promise<void> {
  const session = open.get(name);
  if (session === undefined) return;
  session.isCancelled = true;
  if (session.followed === null) return;
  try {
    await client.session.cancel(session.followed.id);
  } catch (error) {
    // It has ended meanwhile.
    if (!(error instanceof ClientError && error.status === 409)) throw error;
  }
}

function remember(
  { open }: AcpSessions,
  name: string,
  cwd: string,
  choices: Choices,
  followed: FollowedSession | null,
): OpenSession {
  const session = { name, cwd, choices, followed, refusals: 0, isCancelled: false, telling: new AbortController() };
  open.set(name, session);
  return session;
}

function found({ open }: AcpSessions, name: string): OpenSession {
  const session = open.get(name);
  if (session === undefined) throw RequestError.resourceNotFound(name);
  return session;
}

function checkoutAt({ terminal }: AcpSessions, cwd: string, need: Need): Promise<Checkout | null> {
  return readCheckout({ workingDirectory: cwd, signal: terminal.signal }, need);
}

/** Makes the server's session, on the checkout's repository and for its branch. */
async function begin(
  sessions: AcpSessions,
  session: OpenSession,
  request: PromptRequest,
  editor: AgentContext,
): Promise<FollowedSession> {
  const { name, cwd, choices } = session;
  const checkout = await checkoutAt(sessions, cwd, choices.withChanges ? "checkout" : "nothing");
  const prompt = promptText(request.prompt, checkout?.root ?? null);
  if (prompt === "") throw new InvalidInputError("the prompt has no text: say what is to be done");
  const place = { workingDirectory: cwd, signal: sessions.terminal.signal };
  const sent = checkout !== null && choices.withChanges ? await sendChanges(checkout, null, place) : null;
  const body = {
    prompt,
    repositories: checkout === null ? [] : [checkout.url],
    ...(choices.agent !== defaultAgent && { agent: choices.agent }),
    ...(checkout?.remoteBranch != null && { targetBranch: checkout.remoteBranch }),
    ...(sent !== null && { branchName: sent.branch }),
  };
  const created = await sessions.client.session
    .create(body, { idempotencyKey: `acp-${name}-${session.refusals}` })
    .catch((error: unknown) => {
      // The server would give this answer again, whatever was fixed.
      if (error instanceof ClientError && error.status < 500) session.refusals += 1;
      throw error;
    });
  await keepName(name, { server: sessions.server, sessionId: created.id }, sessions.terminal);
  await tell(editor, name, { sessionUpdate: "session_info_update", title: oneLine(printable(created.title)) });
  const where = `${created.htmlUrl}${checkout === null ? "" : ` on ${checkout.url}`}`;
  const text = `> Working in the background: ${printable(where)}\n\n`;
  await tell(editor, name, { sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
  return { name, id: created.id, root: checkout?.root ?? null, last: 0 };
}

/** Reports what happens until the session ends, in place of whatever reported it before. */
async function takeOver(
  { client, terminal }: AcpSessions,
  session: OpenSession,
  followed: FollowedSession,
  editor: AgentContext,
  withPrompts: boolean,
): Promise<void> {
  session.telling.abort();
  session.telling = new AbortController();
  const signal = AbortSignal.any([session.telling.signal, terminal.signal]);
  await follow(client, followed, editor, { signal, withPrompts });
}

/** A function, because the compiler would otherwise take it that nothing changed meanwhile. */
const isGivenUp = ({ isCancelled }: OpenSession): boolean => isCancelled;

async function detailOf(client: Client, id: string): Promise<SessionDetail | null> {
  try {
    return await client.session.get(id);
  } catch (error) {
    if (error instanceof ClientError && error.status === 404) return null;
    throw error;
  }
}

/** @throws RequestError if the session failed: the protocol has no reason of an end for that */
function resultOf({ status, failure }: SessionDetail): PromptResponse {
  if (status === "cancelled") return { stopReason: "cancelled" };
  if (failure === null) return { stopReason: "end_turn" };
  throw RequestError.internalError({ code: failure.code }, printable(`${failure.reason} ${failure.remedy}`.trim()));
}

function isOf({ repositories }: SessionDetail, { url }: Checkout): boolean {
  return repositories.some((repository) => repositoryKeyOf(repository.url) === repositoryKeyOf(url));
}
