import type { Command } from "commander";
import { createClient, type Client } from "../../client.ts";
import { InvalidInputError, OffstageError } from "../../domain/errors/errors.ts";
import type { Terminal } from "../terminal/commands.ts";
import { readCredentials } from "./credentials.ts";
import { personFetch } from "./person-fetch.ts";

/** Flags of every command that is a client of a server. */
export interface ConnectionFlags {
  readonly server?: string;
  readonly key?: string;
}

/** The server's address if neither a flag nor a variable nor `offstage login` names another. */
export const defaultServer = "http://127.0.0.1:4747";

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
  const connection = await connectToServer(flags, terminal);
  return reaching(connection.server, () => work(connection));
}

/**
 * The server that the flags, the environment or the last login name, and a client of it.
 * @throws InvalidInputError if there is no key, or the address is none
 */
export async function connectToServer(
  flags: ConnectionFlags,
  terminal: Pick<Terminal, "environment">,
): Promise<ServerConnection> {
  const stored = await readCredentials(terminal);
  const server = serverAddress(flags.server ?? given(terminal, "OFFSTAGE_SERVER") ?? stored.current ?? defaultServer);
  const key = flags.key ?? given(terminal, "OFFSTAGE_API_KEY");
  const credential = key === undefined ? stored.servers[server] : { key };
  if (credential === undefined || ("key" in credential && credential.key === "")) throw noKey(server);
  const client = createClient(
    "key" in credential
      ? { baseUrl: server, key: credential.key }
      : { baseUrl: server, fetch: personFetch(server, credential, terminal) },
  );
  return { client, server };
}

/** @throws InvalidInputError if it is not an http or https address */
export function serverAddress(address: string): string {
  if (!/^https?:$/u.test(URL.parse(address)?.protocol ?? "")) {
    throw new InvalidInputError(`--server: "${address}" is not an http or https address`);
  }
  return address.replace(/\/+$/u, "");
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
