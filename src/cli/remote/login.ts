import type { Command } from "commander";
import { createClient } from "../../client.ts";
import { InvalidInputError } from "../../domain/errors/errors.ts";
import type { CommandContext, Terminal } from "../terminal/commands.ts";
import { defaultServer, reaching, serverAddress } from "./connect.ts";
import { credentialsFile, readCredentials, writeCredentials } from "./credentials.ts";

/** Adds the commands `login` and `logout`. */
export function addLoginCommands(program: Command, { terminal }: CommandContext): void {
  program
    .command("login [server]")
    .description("keep an API key of a server, so that the commands need none")
    .addHelpText("after", "\nThe key is asked for, or read from a pipe: create one in the web app under Settings.")
    .action((server: string | undefined) => login(server, terminal));
  program
    .command("logout [server]")
    .description("forget the key of a server (default: that of the last login)")
    .action((server: string | undefined) => logout(server, terminal));
}

/** @throws InvalidInputError if no key is given; ClientError if the server refuses it */
async function login(named: string | undefined, terminal: Terminal): Promise<void> {
  const stored = await readCredentials(terminal);
  const variable = terminal.environment["OFFSTAGE_SERVER"];
  const server = serverAddress(
    named ?? (variable === undefined || variable === "" ? null : variable) ?? stored.current ?? defaultServer,
  );
  const key = (await terminal.readSecret(`API key for ${server} (Settings → API keys): `)).trim();
  if (key === "") throw new InvalidInputError("no key was given: paste it, or pipe it in");
  if (!/^[\x21-\x7e]+$/u.test(key)) throw new InvalidInputError("this is no API key: it has other characters");
  const { scopes } = await reaching(server, () => createClient({ baseUrl: server, key }).me());
  await writeCredentials(terminal, { current: server, servers: { ...stored.servers, [server]: { key } } });
  terminal.write(`signed in to ${server} (${scopes.join(", ")})\n`);
  terminal.warn(`the key is kept in ${credentialsFile(terminal)}, which only you can read\n`);
}

async function logout(named: string | undefined, terminal: Terminal): Promise<void> {
  const { current, servers } = await readCredentials(terminal);
  const server = named === undefined ? current : serverAddress(named);
  if (server === null || servers[server] === undefined) {
    throw new InvalidInputError(server === null ? "you are signed in to no server" : `no key is kept for ${server}`);
  }
  const { [server]: _forgotten, ...kept } = servers;
  const next = current === server ? (Object.keys(kept)[0] ?? null) : current;
  await writeCredentials(terminal, { current: next, servers: kept });
  terminal.write(`the key for ${server} is forgotten here; revoke it in the web app if nobody is to use it again\n`);
}
