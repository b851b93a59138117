import { Readable, Writable } from "node:stream";
import {
  agent,
  methods,
  ndJsonStream,
  PROTOCOL_VERSION,
  RequestError,
  type AuthMethod,
} from "@agentclientprotocol/sdk";
import type { Command } from "commander";
import { InvalidInputError, OffstageError } from "../../domain/errors/errors.ts";
import { loginByBrowser } from "../remote/browser-login.ts";
import {
  connectToServer,
  isUnreachable,
  namedServer,
  withConnectionFlags,
  type ServerConnection,
  type ConnectionFlags,
} from "../remote/connect.ts";
import { readCredentials, writeCredentials } from "../remote/credentials.ts";
import type { CommandContext, Terminal } from "../terminal/commands.ts";
import {
  cancelAcpSession,
  configureSession,
  createAcpSession,
  listAcpSessions,
  openSession,
  promptSession,
  type AcpSessions,
} from "./acp-sessions.ts";

interface AcpOptions extends ConnectionFlags {
  readonly withChanges?: true;
}

/** Adds the command `acp`. */
export function addAcpCommand(program: Command, { terminal }: CommandContext, version: string): void {
  withConnectionFlags(
    program
      .command("acp")
      .description(
        "be an agent of the Agent Client Protocol on stdin and stdout, for an editor that starts this command",
      )
      .option(
        "--with-changes",
        "send the checkout's uncommitted changes along, unless the editor's option says otherwise",
      ),
  ).action((options: AcpOptions) => serve(options, terminal, version));
}

const browserLogin: AuthMethod = {
  id: "browser",
  name: "Sign in by the browser",
  description: "Opens the Offstage server's page, on which you allow it.",
};

/**
 * Serves the Agent Client Protocol (https://agentclientprotocol.com) until the editor ends it. A prompt becomes a session of the server,
 * which goes on when the editor is closed.
 */
async function serve(options: AcpOptions, terminal: Terminal, version: string): Promise<void> {
  const { session } = methods.agent;
  let sessions: Promise<AcpSessions> | null = null;
  /** @throws RequestError if the user is not signed in: then a later request tries again */
  const opened = (): Promise<AcpSessions> =>
    (sessions ??= connection(options, terminal).then(
      (made) => ({ ...made, terminal, withChanges: options.withChanges === true, open: new Map() }),
      (error: unknown) => {
        sessions = null;
        throw error;
      },
    ));
  const connected = agent({ name: "offstage" })
    .onRequest(methods.agent.initialize, () => ({
      protocolVersion: PROTOCOL_VERSION,
      agentCapabilities: {
        loadSession: true,
        promptCapabilities: { embeddedContext: true },
        sessionCapabilities: { list: {}, resume: {} },
      },
      agentInfo: { name: "offstage", title: "Offstage", version },
      authMethods: [browserLogin],
    }))
    .onRequest(methods.agent.authenticate, async () => {
      await answered(() => signIn(options, terminal));
      return {};
    })
    .onRequest(session.new, ({ params }) => answered(async () => createAcpSession(await opened(), params.cwd)))
    .onRequest(session.load, ({ params, client }) =>
      answered(async () => openSession(await opened(), params.sessionId, params.cwd, client, { replay: true })),
    )
    .onRequest(session.resume, ({ params, client }) =>
      answered(async () => openSession(await opened(), params.sessionId, params.cwd, client, { replay: false })),
    )
    .onRequest(session.list, ({ params }) => answered(async () => listAcpSessions(await opened(), params)))
    .onRequest(session.setConfigOption, ({ params }) =>
      answered(async () => ({ configOptions: await configureSession(await opened(), params) })),
    )
    .onRequest(session.prompt, ({ params, client }) =>
      answered(async () => promptSession(await opened(), params, client)),
    )
    .onNotification(session.cancel, async ({ params }) => cancelAcpSession(await opened(), params.sessionId))
    .connect(
      ndJsonStream(
        Writable.toWeb(process.stdout) as WritableStream<Uint8Array>,
        Readable.toWeb(process.stdin) as ReadableStream<Uint8Array>,
      ),
    );
  terminal.signal.addEventListener("abort", () => connected.close(), { once: true });
  await connected.closed;
}

async function connection(options: AcpOptions, terminal: Terminal): Promise<ServerConnection> {
  try {
    return await connectToServer(options, terminal);
  } catch (error) {
    if (error instanceof InvalidInputError) throw RequestError.authRequired(undefined, error.message);
    throw error;
  }
}

/** Errors that a person can fix reach the editor as their sentence. */
async function answered<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof RequestError) throw error;
    if (error instanceof OffstageError) throw RequestError.internalError(undefined, error.message);
    if (isUnreachable(error)) throw RequestError.internalError(undefined, "the Offstage server can't be reached");
    throw error;
  }
}

async function signIn(options: AcpOptions, terminal: Terminal): Promise<void> {
  const server = namedServer(options.server, await readCredentials(terminal), terminal);
  const tokens = await loginByBrowser(server, terminal);
  const { servers } = await readCredentials(terminal);
  await writeCredentials(terminal, { current: server, servers: { ...servers, [server]: tokens } });
}
