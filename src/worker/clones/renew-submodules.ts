import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { programText } from "../../programs/program-text.ts";
import type { ResourceLimits, Sandbox } from "../../sandboxes/sandbox.ts";
import type { SessionFolders } from "../disk/session-folders.ts";
import type { Mirrors } from "../git/mirrors/mirrors.ts";
import type { RemoteRepository, Submodule } from "../git/remote-repository.ts";
import { runCommand, type SandboxFolders } from "../sandboxed/run-command.ts";
import { roomOf } from "./clones.ts";
import type { ReportProgress } from "./create-clone.ts";
import { gitlinkFunctions } from "./each-gitlink.ts";
import { fetchSubmodules, type RecordedSubmodule } from "./submodules.ts";

/** What renewing submodules needs. */
export interface RenewServices {
  readonly sandbox: Sandbox;
  readonly limits: ResourceLimits;
  readonly folders: SessionFolders;
  readonly mirrors: Mirrors;
}

/** Submodules of a session's clone that others recorded at other commits, or added. */
export interface Renewal {
  readonly sessionId: string;
  readonly remote: RemoteRepository;
  /** Folders of a command in the clone. */
  readonly folders: SandboxFolders;
  readonly wanted: readonly RecordedSubmodule[];
  readonly progress?: ReportProgress;
  readonly signal: AbortSignal;
}

/** Why a folder keeps what it has. */
const kept = "something was changed in its folder";
/** Bytes of a number of one of a hundred submodules, with its line break. */
const numberBytes = 8;

/**
 * Brings the folders of submodules, and those in them, to the commits that others recorded: fetched outside of the sandbox with the
 * credentials that a fresh clone would have, and put in place inside it. A folder in which something was changed or committed stays as it is.
 * @returns all of them; what is not at its commit has a problem
 * @throws SessionError resources_exhausted, sandbox_unavailable; repository_* that passes by itself
 */
export async function renewSubmodules(
  services: RenewServices,
  { sessionId, remote, folders, wanted, progress = () => undefined, signal }: Renewal,
): Promise<Submodule[]> {
  const { sandbox, limits, mirrors } = services;
  const outer = await services.folders.setupFolder(sessionId);
  try {
    // The sandbox sees this one alone: the outer one is the server's.
    const folder = join(outer, "submodules");
    await mkdir(folder);
    const room = await roomOf(services, sessionId);
    const fetched = await fetchSubmodules({ folder, remote, mirrors, room, progress, signal }, wanted);
    for (const [index, { path, sha, within }] of fetched.entries()) {
      const files = { path, sha, within: within === null ? "" : String(within) };
      for (const [name, content] of Object.entries(files)) await writeFile(join(folder, `${index}-${name}`), content);
    }
    const renewed = fetched.some(({ problem }) => problem === null) ? await putInPlace() : new Set<number>();
    return fetched.map((one, index) => {
      const { within: _, ...submodule } = one;
      return submodule.problem !== null || renewed.has(index) ? submodule : { ...submodule, problem: kept };
    });

    async function putInPlace(): Promise<ReadonlySet<number>> {
      const program = `${gitlinkFunctions()}\n${programText(import.meta.url, "renew-submodules.sh")}`;
      const command = { command: "sh", arguments: ["-c", program], environment: { OFFSTAGE_RENEWED: folder } };
      const seen = { ...folders, readOnly: [...folders.readOnly, folder] };
      let output = "";
      await runCommand({ sandbox, limits, signal }, seen, command, async ({ stdout }) => {
        // The agent's own settings may have git print more.
        for await (const chunk of stdout) output = `${output}${String(chunk)}`.slice(0, fetched.length * numberBytes);
      });
      return new Set(
        output
          .split("\n")
          .filter((line) => /^\d+$/u.test(line))
          .map(Number),
      );
    }
  } finally {
    await services.folders.removeSetup(outer);
  }
}
