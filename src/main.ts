import { readFileSync } from "node:fs";
import { join } from "node:path";
import { styleText } from "node:util";
import { lastAddress, auditCommand, replayRecordedSession, withStore } from "./admin/attach.ts";
import { backUp, move, restore } from "./admin/backup.ts";
import { diagnose } from "./admin/doctor.ts";
import { eraseByName, exportToFile } from "./admin/organization.ts";
import type { Commands, ServerFlags, Terminal } from "./cli/commands.ts";
import { runProgram } from "./cli/program.ts";
import { readConfig, unknownVariables } from "./config/config.ts";
import { createMask } from "./domain/masking/mask.ts";
import { createLogger } from "./observability.ts";
import { startOffstage, type ServerRole } from "./server/offstage.ts";
import { openVault, serverSecrets } from "./server/wiring.ts";
import { createKey, listEveryKey, revokeKey } from "./store/people/keys.ts";
import { createLoginLink } from "./store/people/logins.ts";
import { findUser } from "./store/people/users.ts";
import { rotateMasterKey } from "./store/secrets/rotation.ts";

const { version } = JSON.parse(readFileSync(join(import.meta.dirname, "../package.json"), "utf8")) as {
  version: string;
};
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
  environment: process.env,
  workingDirectory: process.cwd(),
  signal: stopping.signal,
};

const commands: Commands = {
  start,
  doctor: (flags) => diagnose(configOf(flags)),
  createKey: (flags, key) =>
    withStore(configOf(flags), async (database, id) => {
      const userId = key.owner === null ? null : (await findUser(database, id, key.owner)).id;
      const made = await createKey(database, id, { ...key, userId });
      await auditCommand(database, id, "keys create", made.record.id);
      return made;
    }),
  listKeys: (flags) => withStore(configOf(flags), listEveryKey),
  revokeKey: (flags, key) =>
    withStore(configOf(flags), async (database, id) => {
      const revoked = await revokeKey(database, id, key);
      await auditCommand(database, id, "keys revoke", revoked.id);
      return revoked;
    }),
  replay: (flags, id, options) => replayRecordedSession(configOf(flags), id, options),
  rotateMasterKey: (flags) => {
    const config = configOf(flags);
    return withStore(config, async (database, id) => {
      const count = await rotateMasterKey(database, openVault(config));
      await auditCommand(database, id, "secrets rotate", null);
      return count;
    });
  },
  backUp: (flags, file, signal) => backUp(configOf(flags), file, { version, signal }),
  restore: (flags, file, signal) => restore(configOf(flags), file, signal),
  move: (flags, url, signal) => move(configOf(flags), url, { version, signal }),
  exportOrganization: (flags, { name, file }, signal) => exportToFile(configOf(flags), name, file, signal),
  eraseOrganization: (flags, name, signal) => eraseByName(configOf(flags), name, signal),
  createLoginLink: (flags, link) => {
    const config = configOf(flags);
    return withStore(config, async (database, id) => {
      const token = await createLoginLink(database, id, link);
      await auditCommand(database, id, "login-link", null);
      return `${await lastAddress(config)}/sign-in#${token}`;
    });
  },
};

/** The settings of a command beside `start`. Says which data folder it chose if nobody named one. */
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

/** Runs the service until the signal, then returns running sessions to the queue. */
async function start(flags: ServerFlags, signal: AbortSignal, role: ServerRole = "all"): Promise<void> {
  serves = true;
  const config = readConfig(process.env, flags);
  for (const name of unknownVariables(process.env)) warn(`${name} is not a setting of Offstage and is ignored.`);
  if (config.dataReason !== null) terminal.write(`${config.dataReason}\n`);
  if (config.sandbox === "none") {
    warn("--sandbox none: agents run with this server's rights and can read all that it can read.");
  }
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
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      else signal.addEventListener("abort", () => resolve(), { once: true });
    });
  } finally {
    await offstage.stop();
  }
}

// Everything is stopped and written: an open handle must not keep the process alive.
process.exit(await runProgram(commands, terminal, version, process.argv.slice(2)));
