import { spawn } from "node:child_process";
import { once } from "node:events";
import { flushCompileCache } from "node:module";
import { createInterface } from "node:readline/promises";
import { text as readAll } from "node:stream/consumers";
import { addAbortSignal, Writable } from "node:stream";
import { styleText } from "node:util";
import type { Commands, ServerFlags, Terminal } from "./cli/terminal/commands.ts";
import { runCommandLine } from "./cli/program.ts";
import { readConfig, unknownVariables } from "./config/config.ts";
import { createMask } from "./domain/masking/mask.ts";
import { createLogger } from "./observability.ts";
import type { ServerRole } from "./server/offstage.ts";
import { serverSecrets } from "./server/server-secrets.ts";
import { version } from "./server/version.ts";

const stopping = new AbortController();
/**
 * Under `npm start` one Ctrl-C arrives twice: from the terminal, and forwarded by npm. A user takes longer to press
 * it again.
 */
const echoMs = 500;
let askedAt = 0;
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    // The second request ends the process at once. Nothing is lost: the service also survives kill -9.
    if (stopping.signal.aborted && performance.now() - askedAt > echoMs) process.exit(130);
    if (!stopping.signal.aborted) askedAt = performance.now();
    stopping.abort();
  });
}

let serves = false;
// stdout was closed, for example by `| head`: stop a command, but keep a server running.
process.stdout.on("error", () => {
  if (!serves) stopping.abort();
});
process.stderr.on("error", () => undefined);

const terminal: Terminal = {
  write: (text) => void process.stdout.write(text),
  warn: (text) => void process.stderr.write(text),
  color: process.stdout.isTTY && process.stdout.hasColors(),
  columns: process.stdout.isTTY ? process.stdout.columns : null,
  readInput,
  readSecret,
  openPage,
  isInteractive: process.stdin.isTTY,
  environment: process.env,
  workingDirectory: process.cwd(),
  signal: stopping.signal,
};

/** Each loads only the modules that it needs: `run` is only a client, and `start` needs none of the others'. */
const commands: Commands = {
  start,
  async doctor(flags) {
    const { diagnose } = await import("./admin/doctor.ts");
    return diagnose(configOf(flags));
  },
  async createKey(flags, key) {
    const { withStore, auditCommand } = await import("./admin/attach.ts");
    const { createKey, requireOwned } = await import("./store/people/keys.ts");
    const { findUser } = await import("./store/people/users.ts");
    return withStore(
      configOf(flags),
      async (database, id) => {
        const owner = key.owner === null ? null : await findUser(database, id, key.owner);
        requireOwned(key.scopes, owner);
        const made = await createKey(database, id, { ...key, userId: owner?.id ?? null });
        await auditCommand(database, id, "keys create", made.record.id);
        return made;
      },
      flags.organization,
    );
  },
  async listKeys(flags) {
    const { withStore } = await import("./admin/attach.ts");
    const { listEveryKey } = await import("./store/people/keys.ts");
    return withStore(configOf(flags), listEveryKey, flags.organization);
  },
  async revokeKey(flags, key) {
    const { withStore, auditCommand } = await import("./admin/attach.ts");
    const { revokeKey } = await import("./store/people/keys.ts");
    return withStore(
      configOf(flags),
      async (database, id) => {
        const revoked = await revokeKey(database, id, key);
        await auditCommand(database, id, "keys revoke", revoked.id);
        return revoked;
      },
      flags.organization,
    );
  },
  async replay(flags, id, options) {
    const { replayRecordedSession } = await import("./admin/attach.ts");
    return replayRecordedSession(configOf(flags), id, options);
  },
  async rotateMasterKey(flags) {
    const { withStore, auditCommand } = await import("./admin/attach.ts");
    const { rotateMasterKey } = await import("./store/secrets/rotation.ts");
    const { openVault } = await import("./server/open-stores.ts");
    const config = configOf(flags);
    return withStore(config, async (database, id) => {
      const count = await rotateMasterKey(database, openVault(config));
      await auditCommand(database, id, "secrets rotate", null);
      return count;
    });
  },
  async backUp(flags, file, signal) {
    const { backUp } = await import("./admin/backup.ts");
    return backUp(configOf(flags), file, { version, signal });
  },
  async restore(flags, file, signal) {
    const { restore } = await import("./admin/backup.ts");
    return restore(configOf(flags), file, signal);
  },
  async move(flags, url, signal) {
    const { move } = await import("./admin/backup.ts");
    return move(configOf(flags), url, { version, signal });
  },
  async exportOrganization(flags, { name, file }, signal) {
    const { exportToFile } = await import("./admin/organization.ts");
    return exportToFile(configOf(flags), name, file, signal);
  },
  async createOrganization(flags, body) {
    const { createByName } = await import("./admin/organization.ts");
    return createByName(configOf(flags), body);
  },
  async listOrganizations(flags) {
    const { listAll } = await import("./admin/organization.ts");
    return listAll(configOf(flags));
  },
  async eraseOrganization(flags, name, signal) {
    const { eraseByName } = await import("./admin/organization.ts");
    return eraseByName(configOf(flags), name, signal);
  },
  async createLoginLink(flags, link) {
    const { withStore, auditCommand, lastAddress } = await import("./admin/attach.ts");
    const { createLoginLink } = await import("./store/people/logins.ts");
    const config = configOf(flags);
    return withStore(
      config,
      async (database, id) => {
        const token = await createLoginLink(database, id, link);
        await auditCommand(database, id, "login-link", null);
        return `${await lastAddress(config)}/sign-in#${token}`;
      },
      flags.organization,
    );
  },
};

/** The settings of a command other than `start`. Prints the chosen data folder if none was named. */
function configOf(flags: ServerFlags): ReturnType<typeof readConfig> {
  const config = readConfig(process.env, flags);
  if (!config.dataIsNamed)
    terminal.warn(
      `${config.dataReason ?? `The data folder is ${config.data}; --data or OFFSTAGE_DATA names another.`}\n`,
    );
  return config;
}

function warn(sentence: string): void {
  terminal.warn(`${styleText("yellow", "Warning")}: ${sentence}\n`);
}

/** All of stdin; given up by Ctrl-C. */
function readInput(): Promise<string> {
  return readAll(addAbortSignal(stopping.signal, process.stdin));
}

/** Asks on stderr, so that stdout has a command's output alone; what is typed is shown nowhere. */
async function readSecret(question: string): Promise<string> {
  if (!process.stdin.isTTY) return readInput();
  process.stderr.write(question);
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: process.stdin, output: nowhere, terminal: true });
  // While it reads keys, the terminal sends no signal for Ctrl-C.
  lines.once("SIGINT", () => stopping.abort());
  try {
    return await lines.question("", { signal: stopping.signal });
  } finally {
    lines.close();
    process.stderr.write("\n");
  }
}

/** Opens a page as the system does it. */
async function openPage(url: string): Promise<boolean> {
  const openers = { darwin: ["open"], win32: ["rundll32", "url.dll,FileProtocolHandler"] } as const;
  const [command, ...given] =
    process.platform === "darwin" || process.platform === "win32" ? openers[process.platform] : (["xdg-open"] as const);
  const child = spawn(command, [...given, url], { stdio: "ignore", detached: true });
  child.unref();
  try {
    await once(child, "spawn");
    return true;
  } catch {
    return false;
  }
}

/** Runs the service until the signal, then returns running sessions to the queue. */
async function start(flags: ServerFlags, signal: AbortSignal, role: ServerRole = "all"): Promise<void> {
  serves = true;
  const config = readConfig(process.env, flags);
  for (const name of unknownVariables(process.env)) warn(`${name} is not a setting of Offstage and is ignored.`);
  if (config.dataReason !== null) terminal.write(`${config.dataReason}\n`);
  if (config.sandbox === "none") {
    warn("--sandbox none: agents run with this server's rights and can read all that it can read.");
  }
  const { startOffstage } = await import("./server/offstage.ts");
  const offstage = await startOffstage(
    config,
    createLogger(config.logLevel, createMask(serverSecrets(config)).text, config.logFormat),
    role,
  );
  try {
    terminal.write(role === "worker" ? "The worker is running\n" : `Offstage answers at ${offstage.url}\n`);
    if (offstage.first !== null) {
      const { adminKey, loginLink } = offstage.first;
      if (adminKey !== null) terminal.write(`Admin key, shown only now: ${adminKey}\n`);
      terminal.write(`Sign in to the web app with this link, which works once: ${loginLink}\n`);
    }
    // Otherwise it is written when the process ends, and not at all if it is killed.
    flushCompileCache();
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      else signal.addEventListener("abort", () => resolve(), { once: true });
    });
  } finally {
    await offstage.stop();
  }
}

// Everything is stopped and written: an open handle must not keep the process alive.
process.exit(await runCommandLine(commands, terminal, version, process.argv.slice(2)));
