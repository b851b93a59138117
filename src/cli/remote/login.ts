import type { Command } from "commander";
import { createClient } from "../../client.ts";
import { InvalidInputError } from "../../domain/errors/errors.ts";
import type { CommandContext, Terminal } from "../terminal/commands.ts";
import { giveBack, loginByBrowser } from "./browser-login.ts";
import { namedServer, reaching, requireKey, serverAddress } from "./connect.ts";
import { credentialsFile, readCredentials, writeCredentials, type Credential } from "./credentials.ts";
import { personFetch } from "./person-fetch.ts";

interface LoginOptions {
  readonly browser?: true;
  readonly withKey?: true;
}

/** Adds the commands `login` and `logout`. */
export function addLoginCommands(program: Command, { terminal }: CommandContext): void {
  program
    .command("login [server]")
    .description("sign in to a server, so that the commands need no key")
    .option("--browser", "by the browser, also where none can be opened from here: its address is printed")
    .option("--with-key", "by an API key, which is asked for")
    .addHelpText(
      "after",
      "\nOn a terminal the browser opens. A key is read from a pipe: create one in the web app under Settings.",
    )
    .action((server: string | undefined, options: LoginOptions) => login(server, options, terminal));
  program
    .command("logout [server]")
    .description("forget how to sign in to a server (default: that of the last login)")
    .action((server: string | undefined) => logout(server, terminal));
}

/** @throws InvalidInputError if no key is given; ClientError if the server refuses it; LoginError if the person does */
async function login(named: string | undefined, options: LoginOptions, terminal: Terminal): Promise<void> {
  const server = namedServer(named, await readCredentials(terminal), terminal);
  if (options.browser === true && options.withKey === true) {
    throw new InvalidInputError("--browser and --with-key are two ways to sign in: choose one");
  }
  const byBrowser = options.browser === true || (options.withKey !== true && hasBrowser(terminal));
  const { credential, scopes } = await reaching(server, () =>
    byBrowser ? credentialByBrowser(server, terminal) : credentialByKey(server, terminal),
  );
  const { servers } = await readCredentials(terminal);
  await writeCredentials(terminal, { current: server, servers: { ...servers, [server]: credential } });
  terminal.write(`signed in to ${server} (${scopes.join(", ")})\n`);
  const what = byBrowser ? "the sign-in" : "the key";
  terminal.warn(`${what} is kept in ${credentialsFile(terminal)}, which only you can read\n`);
}

/** Whether the terminal is interactive, on a machine on which a browser can be opened. */
function hasBrowser({ isInteractive, environment }: Terminal): boolean {
  const hasDisplay =
    process.platform === "darwin" ||
    process.platform === "win32" ||
    (environment["DISPLAY"] ?? "") !== "" ||
    (environment["WAYLAND_DISPLAY"] ?? "") !== "";
  // On another machine the browser could not reach this one's loopback address.
  return isInteractive && hasDisplay && (environment["SSH_CONNECTION"] ?? "") === "";
}

interface SignedIn {
  readonly credential: Credential;
  readonly scopes: readonly string[];
}

async function credentialByBrowser(server: string, terminal: Terminal): Promise<SignedIn> {
  const credential = await loginByBrowser(server, terminal);
  const { scopes } = await createClient({
    baseUrl: server,
    fetch: personFetch(server, credential, terminal),
  }).me();
  return { credential, scopes };
}

async function credentialByKey(server: string, terminal: Terminal): Promise<SignedIn> {
  const key = (await terminal.readSecret(`API key for ${server} (Settings → API keys): `)).trim();
  if (key === "") throw new InvalidInputError("no key was given: paste it, or pipe it in");
  const { scopes } = await createClient({ baseUrl: server, key: requireKey(key) }).me();
  return { credential: { key }, scopes };
}

async function logout(named: string | undefined, terminal: Terminal): Promise<void> {
  const { current, servers } = await readCredentials(terminal);
  const server = named === undefined ? current : serverAddress(named);
  const credential = server === null ? undefined : servers[server];
  if (server === null || credential === undefined) {
    throw new InvalidInputError(
      server === null ? "you are signed in to no server" : `nothing is kept for ${server}: you are not signed in there`,
    );
  }
  const { [server]: _forgotten, ...kept } = servers;
  const next = current === server ? (Object.keys(kept)[0] ?? null) : current;
  await writeCredentials(terminal, { current: next, servers: kept });
  if ("key" in credential) {
    terminal.write(`the key for ${server} is forgotten here; revoke it in the web app if it is not to be used again\n`);
    return;
  }
  await reaching(server, () => giveBack(server, credential));
  terminal.write(`signed out of ${server}\n`);
}
