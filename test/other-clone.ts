import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { World } from "./world.ts";

/** Runs commands in another person's clone. */
export async function inOtherClone(world: Pick<World, "forge">, url: string, commands: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "offstage-elsewhere-"));
  try {
    const authenticated = url.replace("://", `://x:${world.forge.token}@`);
    const identity = "git config user.name Other && git config user.email other@example.com";
    const { stdout } = await promisify(execFile)(
      "sh",
      ["-ec", `git clone -q ${authenticated} . && ${identity} && ${commands}`],
      { cwd: folder },
    );
    return stdout.trim();
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
