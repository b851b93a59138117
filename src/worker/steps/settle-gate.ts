import type { ClaimedSession } from "../../store/queue/claims.ts";
import { programText } from "../../programs/program-text.ts";
import type { AttemptServices } from "../attempt/attempt.ts";
import { commandFoldersOf } from "../attempt/session-repositories.ts";
import type { Clone } from "../clones/clone.ts";
import { limitBytes } from "../sandboxed/byte-limit.ts";
import { runCommand, type SandboxedRun } from "../sandboxed/run-command.ts";

type Services = Pick<AttemptServices, "folders" | "mirrors" | "sandbox" | "limits">;

/** Bytes that the record of clones may have: about as many as 200,000 names of files that git neither knows nor ignores. */
const longestRecord = 32 * 1024 ** 2;

/** How clones are, to be given back to `settle-gate.cjs`: the server reads nothing of it. */
export type ClonesRecord = string;

/**
 * Records how a session's clones are, or undoes what a gate did there, with the files that it got in the home. A gate comes before
 * every agent, so a clone's branch is at the commit from which the clone started.
 * @param options.before of the time before the gate; null: it is not known, and every new file that git does not ignore goes
 * @returns how they are now
 * @throws Error if that is not possible; SessionError resources_exhausted; the reason of the run's signal
 */
export async function settleGate(
  services: Services & Pick<SandboxedRun, "signal">,
  session: Pick<ClaimedSession, "sessionId" | "repositories">,
  clones: readonly Clone[],
  { before, undo }: { readonly before: ClonesRecord | null; readonly undo: boolean },
): Promise<ClonesRecord> {
  const places = clones.map(({ repository: { directory }, remote: { branch }, headSha: head }) => ({
    directory,
    branch,
    head,
  }));
  const program = programText(import.meta.url, "settle-gate.cjs");
  const pieces: Buffer[] = [];
  await runCommand(
    services,
    commandFoldersOf(session, services, "."),
    { command: process.execPath, arguments: ["-e", program] },
    async (child) => {
      child.stdin.end(JSON.stringify({ clones: places, before, undo }));
      const bounded = child.stdout.pipe(limitBytes(longestRecord, "what is read of it"));
      for await (const piece of bounded) pieces.push(piece as Buffer);
    },
  );
  return Buffer.concat(pieces).toString("utf8");
}
