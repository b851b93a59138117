import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { z } from "zod";
import { programText } from "../../programs/program-text.ts";
import type { ResourceLimits, Sandbox } from "../sandbox.ts";

const checkLimits: ResourceLimits = { memoryBytes: 256 * 1024 ** 2, processes: 64, diskBytes: 2 ** 30, cpus: 1 };

/**
 * Starts a container and measures its limits inside: some engines accept a limit and do not enforce it. It is
 * also verified as every container is before its command runs, the network included.
 * @returns the problem with containers here; null if there is none
 */
export async function testContainers({
  start,
  makeWritable,
  releaseOwner: giveBack,
}: Pick<Sandbox, "start" | "makeWritable" | "releaseOwner">): Promise<string | null> {
  const folder = await mkdtemp(join(tmpdir(), "offstage-check-"));
  const home = join(folder, "home");
  try {
    await makeWritable(home);
    const child = start({
      command: process.execPath,
      arguments: ["-e", programText(import.meta.url, "self-test.cjs")],
      environment: {},
      workspace: home,
      home,
      readOnly: [],
      limits: checkLimits,
      signal: AbortSignal.timeout(60_000),
    });
    child.stdin.end();
    const [output, complained, { code }] = await Promise.all([text(child.stdout), text(child.stderr), child.exited]);
    if (code !== 0) return `containers do not start here: ${complained.trim().slice(-500) || `exit ${code}`}`;
    return selfTestProblem(output);
  } finally {
    await rm(folder, { recursive: true, force: true });
    await giveBack(folder);
  }
}

/** What `self-test.cjs` prints. */
const selfTestSchema = z.object({
  memory: z.number().nullable(),
  wrote: z.boolean(),
  git: z.boolean(),
});

function selfTestProblem(output: string): string | null {
  const { memory, wrote, git } = selfTestSchema.parse(JSON.parse(output));
  if (!wrote) return "the container can't write to its workspace: run the server as root or as the engine's user";
  if (memory === null) return "the engine shows no memory limit inside its containers, so that it can't be checked";
  if (memory !== checkLimits.memoryBytes) {
    return "the engine does not enforce the memory limit (rootless engines need cgroup version 2): use an engine that does";
  }
  return git ? null : "the image has no git: choose one that has it (OFFSTAGE_CONTAINER_IMAGE)";
}
