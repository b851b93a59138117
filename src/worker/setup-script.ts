import { createReadStream, createWriteStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { cutMiddle } from "../domain/text.ts";
import type { Exceeded, Limits, SandboxRequest } from "../sandboxes/sandbox.ts";
import { atMost } from "./at-most.ts";
import type { Archives } from "./environment-cache.ts";
import { writeHarnessFiles } from "./harness-files.ts";
import { inside } from "./inside.ts";
import type { Run } from "./run.ts";

/** Where a setup runs: the session's own clone and home. */
export type SetupPlace = Pick<SandboxRequest, "workspace" | "home" | "readOnly" | "environment" | "image"> & {
  readonly workingDirectory: string;
};

export interface SetupResult {
  readonly code: number | null;
  readonly exceeded: Exceeded | null;
  readonly timedOut: boolean;
  /** The end of what was printed. */
  readonly tail: string;
}

const scriptFile = ".offstage/setup";
const tailLength = 2_000;
/** Output of which a session's page tells; what comes after is only run. */
const toldLimit = 200_000;
const gatherMs = 300;

/** With a line `#!` as that says, else by bash, which stops at the first command that fails; by sh where there is no bash. */
const interpret = `
file="$HOME/${scriptFile}"
chmod +x "$file"
exec 2>&1 < /dev/null
case "$(head -c 2 "$file")" in "#!") exec "$file" ;; esac
command -v bash > /dev/null && exec bash -eo pipefail "$file"
exec sh -e "$file"`;

/** Runs a repository's setup script in its sandbox, and tells what it prints. */
export async function runSetupScript(
  run: Run,
  options: {
    readonly place: SetupPlace;
    readonly script: string;
    readonly gateway: string;
    readonly limits: Limits;
    readonly limitMs: number;
    readonly repository: { readonly id: string; readonly name: string };
  },
): Promise<SetupResult> {
  const { place, limitMs, repository } = options;
  const { sandbox } = run.dependencies;
  await writeHarnessFiles(sandbox, { ...place, signal: run.signal }, { [scriptFile]: options.script });
  const overtime = AbortSignal.timeout(limitMs);
  const child = sandbox.start({
    ...place,
    command: "sh",
    arguments: ["-c", interpret],
    gateway: options.gateway,
    limits: options.limits,
    signal: AbortSignal.any([run.signal, overtime]),
  });
  child.stdin.end();
  child.stderr.resume();
  const output = createOutput(run, repository);
  for await (const chunk of child.stdout.setEncoding("utf8")) output.take(String(chunk));
  const { code } = await child.exited;
  run.signal.throwIfAborted();
  const exceeded = child.exceeded();
  await output.end(code === 0 && exceeded === null && !overtime.aborted ? "completed" : "failed");
  return { code, exceeded, timedOut: overtime.aborted, tail: output.tail() };
}

/** Gathers what is printed into events; a secret that comes in pieces is not told in pieces. */
function createOutput(run: Run, repository: { readonly id: string; readonly name: string }) {
  let held = "";
  let toldLength = 0;
  let tail = "";
  let timer: NodeJS.Timeout | null = null;
  let told: Promise<void> = Promise.resolve();

  function tell(printed: string, state: "running" | "completed" | "failed"): void {
    const shown = toldLength > toldLimit ? "" : cutMiddle(printed, toldLimit);
    toldLength += shown.length;
    if (shown === "" && state === "running") return;
    const data = { repositoryId: repository.id, repository: repository.name, text: shown, state };
    told = told.then(() => run.emit({ type: "setup.output", data }));
    // Heard by whoever awaits the end.
    told.catch(() => undefined);
  }

  function flush(keep: number): void {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    const ready = held.slice(0, held.length - keep);
    held = held.slice(held.length - keep);
    tail = run.mask.text(`${tail}${ready}`).slice(-tailLength);
    tell(ready, "running");
  }

  return {
    take(chunk: string) {
      held += chunk.replaceAll("\0", "\u2400");
      if (held.length > toldLimit / 10) flush(run.mask.unfinished(held));
      else timer ??= setTimeout(() => flush(run.mask.unfinished(held)), gatherMs);
    },
    async end(state: "completed" | "failed") {
      flush(0);
      tell("", state);
      await told;
    },
    tail: () => tail.trim(),
  };
}

/**
 * What the setup changed in files of git's is undone, and what it made beside them is none of the agent's work:
 * neither belongs in the pull request.
 */
const settle = `
set -eu
rm -rf "$HOME/.offstage"
git reset --quiet --hard
mkdir -p "$(git rev-parse --git-dir)/info"
git -c core.quotePath=false ls-files --others --exclude-standard --directory |
  sed 's/[][\\\\*?!# ]/\\\\&/g; s/^/\\//' >> "$(git rev-parse --git-dir)/info/exclude"`;

/** To be run once a script has ended well, and before anything is kept. */
export async function settleSetup(run: Run, place: SetupPlace): Promise<void> {
  await runInside(run, place, settle, (child) => void child.stdout.resume());
}

const archiveWork = `
set -eu
{ git ls-files --others -z; printf '.git/info/exclude\\0'; } | tar --create --file=- --null --verbatim-files-from --files-from=-`;
const archiveHome = `exec tar --create --file=- --directory="$HOME" .`;

/** Writes what a setup made: packed inside the sandbox, so that nothing out here follows a link of the script's. */
export async function archiveSetup(
  run: Run,
  place: SetupPlace,
  archives: Archives,
  maximumBytes: number,
): Promise<void> {
  for (const [script, file] of [
    [archiveWork, archives.work],
    [archiveHome, archives.home],
  ] as const) {
    await runInside(run, place, script, (child) =>
      pipeline(child.stdout, atMost(maximumBytes, "OFFSTAGE_SETUP_CACHE_MB"), createWriteStream(file, { mode: 0o600 })),
    );
  }
}

/** Puts it into another clone of the same inputs. */
export async function unpackSetup(run: Run, place: SetupPlace, archives: Archives): Promise<void> {
  for (const [script, file] of [
    [`exec tar --extract --file=- --no-same-owner`, archives.work],
    [`exec tar --extract --file=- --no-same-owner --directory="$HOME"`, archives.home],
  ] as const) {
    await runInside(run, place, script, async (child) => {
      child.stdout.resume();
      await pipeline(createReadStream(file), child.stdin);
    });
  }
}

/** With none of the script's own variables. */
async function runInside(
  run: Run,
  { workspace, workingDirectory, home, readOnly, image }: SetupPlace,
  script: string,
  use: Parameters<typeof inside>[3],
): Promise<void> {
  try {
    const place = { workspace, workingDirectory, home, readOnly, image };
    await inside(run, place, { command: "sh", arguments: ["-c", script] }, use);
  } catch (cause) {
    run.signal.throwIfAborted();
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new Error(`what a setup made could not be kept: ${reason}`, { cause });
  }
}
