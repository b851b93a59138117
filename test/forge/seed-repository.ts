import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { gitEnvironment } from "./state.ts";

const run = promisify(execFile);

/** What `seedRepository` makes. */
export interface Seed {
  /**
   * Commands for bash in an empty repository on the branch `main`. What they leave is committed, unless they leave nothing;
   * then all branches and tags are pushed.
   */
  readonly commands: string;
  /** Commands for bash in the bare repository, after that. */
  readonly bare?: string;
  readonly objectFormat?: "sha1" | "sha256";
}

/** Makes the bare repository at `path` again by commands. */
export async function seedRepository(
  path: string,
  { commands, bare = "", objectFormat = "sha1" }: Seed,
): Promise<void> {
  const work = await mkdtemp(join(tmpdir(), "offstage-seed-"));
  const env = { ...gitEnvironment, HOME: work, LC_ALL: "C.UTF-8" };
  const git = (...parameters: string[]) => run("git", parameters, { env, cwd: work });
  const bash = (text: string, cwd: string) => run("bash", ["-ec", text], { env, cwd, maxBuffer: 64 * 1024 * 1024 });
  try {
    await rm(path, { recursive: true, force: true });
    const made = ["--quiet", `--object-format=${objectFormat}`, "--initial-branch", "main"];
    await git("init", ...made, "--bare", path);
    await git("-C", path, "config", "http.receivepack", "true");
    await git("init", ...made, "work");
    const folder = join(work, "work");
    await bash(commands, folder);
    await bash("git add --all --force; git diff --cached --quiet || git commit --quiet --message Seed", folder);
    const { stdout: refs } = await git("-C", folder, "for-each-ref");
    if (refs !== "")
      await git("-C", folder, "push", "--quiet", path, "refs/heads/*:refs/heads/*", "refs/tags/*:refs/tags/*");
    if (bare !== "") await bash(bare, path);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}
