import type { Command } from "commander";
import { createClient, type Client } from "../../client.ts";
import { InvalidInputError, OffstageError } from "../../domain/errors/errors.ts";
import type { Terminal } from "../terminal/commands.ts";
import { readCredentials, type Credentials } from "./credentials.ts";
import { personFetch } from "./person-fetch.ts";

/** Flags of every command that is a client of a server. */
export interface ConnectionFlags {
  readonly server?: string;
  readonly key?: string;
}

/** The server's address if neither a flag nor a variable nor `offstage login` names another. */
const defaultServer = "http://127.0.0.1:4747";

/** Adds the flags of `ConnectionFlags`. */
export function withConnectionFlags(command: Command): Command {
  return command
    .option(
      "--server <url>",
      `address of the server (default: OFFSTAGE_SERVER, else that of the last login, else ${defaultServer})`,
    )
    .option(
      "--key <key>",
      "API key (default: OFFSTAGE_API_KEY, which stays out of the process list, else that of the login)",
    );
}

/** Adds `--json` to a command whose output programs may read. */
export function withJsonFlag(command: Command): Command {
  return command.option("--json", "print what the API answers, as JSON");
}

/** A server, and the client that reaches it. */
export interface ServerConnection {
  readonly client: Client;
  readonly server: string;
}

/**
 * Does something with the server that the flags, the environment or the last login name.
 * @throws InvalidInputError if there is no key, or the address is none; UnreachableServerError if the server can't be reached
 */
export async function onServer<Result>(
  flags: ConnectionFlags,
  terminal: Terminal,
  work: (connection: ServerConnection) => Promise<Result>,
): Promise<Result> {
  const connection = await connectToServer(flags, terminal, terminal.signal);
  return reaching(connection.server, () => work(connection));
}

/**
 * The server that the flags, the environment or the last login name, and a client of it.
 * @param signal gives up requests that are under way; omitted: nothing does
 * @throws InvalidInputError if there is no key, or the key or the address is none
 */
export async function connectToServer(
  flags: ConnectionFlags,
  terminal: Pick<Terminal, "environment">,
  signal?: AbortSignal,
): Promise<ServerConnection> {
  const stored = await readCredentials(terminal);
  const server = namedServer(flags.server, stored, terminal);
  const key = flags.key ?? given(terminal, "OFFSTAGE_API_KEY");
  const credential = key === undefined ? stored.servers[server] : { key };
  if (credential === undefined || ("key" in credential && credential.key === "")) throw noKey(server);
  const send = "key" in credential ? fetch : personFetch(server, credential, terminal);
  const client = createClient({
    baseUrl: server,
    ...("key" in credential && { key: requireKey(credential.key.trim()) }),
    fetch: (input, init) => send(input, { signal: signal ?? null, ...init }),
  });
  return { client, server };
}

/**
 * The address of the server that is meant.
 * @param named by a flag or an argument; undefined: the environment, the last login, or this machine
 * @throws InvalidInputError if it is no address
 */
export function namedServer(
  named: string | undefined,
  { current }: Pick<Credentials, "current">,
  terminal: Pick<Terminal, "environment">,
): string {
  return serverAddress(named ?? given(terminal, "OFFSTAGE_SERVER") ?? current ?? defaultServer);
}

/** @throws InvalidInputError if it is not an http or https address, or says more than that */
export function serverAddress(address: string): string {
  const url = URL.parse(address);
  if (url === null || !/^https?:$/u.test(url.protocol)) {
    throw new InvalidInputError(`--server: "${address}" is not an http or https address`);
  }
  if (url.username !== "" || url.password !== "") {
    throw new InvalidInputError(
      "--server: the address must have no user and no password: set OFFSTAGE_API_KEY instead",
    );
  }
  if (/[?#]/u.test(address)) throw new InvalidInputError("--server: the address must have no ? and no #");
  return address.replace(/\/+$/u, "");
}

/** @throws InvalidInputError if it has other characters than keys have, which no header can carry */
export function requireKey(key: string): string {
  if (/^[\x21-\x7e]+$/u.test(key)) return key;
  throw new InvalidInputError("this is no API key: it has other characters");
}

/** Converts a failed connection to an error that the user can fix, because it is not a bug of the program. */
export async function reaching<T>(server: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!isUnreachable(error)) throw error;
    throw new UnreachableServerError(
      `${server} can't be reached: start it with \`offstage start\`, or name it with --server`,
    );
  }
}

/** Whether an error says that there was no connection, as `fetch` does. */
export function isUnreachable(error: unknown): boolean {
  return error instanceof TypeError && error.cause !== undefined;
}

function given({ environment }: Pick<Terminal, "environment">, name: string): string | undefined {
  return environment[name] === "" ? undefined : environment[name];
}

function noKey(server: string): InvalidInputError {
  return new InvalidInputError(
    `no API key for ${server}: sign in with \`offstage login\`, or set OFFSTAGE_API_KEY or --key; \`offstage keys create\` on the server's machine creates one`,
  );
}

class UnreachableServerError extends OffstageError {
  readonly code = "unreachable";
}
