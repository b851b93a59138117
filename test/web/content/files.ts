import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Database } from "../../../src/database/database.ts";
import { isAddressProblem, parseRepositoryUrl } from "../../../src/domain/repositories/repository.ts";
import { createMirrors } from "../../../src/worker/git/mirrors/mirrors.ts";

/** Files by their path, and where links lead. */
export interface StoredFiles {
  readonly files: Readonly<Record<string, string>>;
  readonly links?: Readonly<Record<string, string>>;
}

/** Of a small shop, for pictures. */
export const filesBefore: StoredFiles["files"] = {
  "README.md": "# The shop\n\nWhat is in a cart, and what it costs.\n",
  "package.json": '{\n  "name": "shop",\n  "type": "module"\n}\n',
  "docs/prices.md": "# Prices\n\nIn cents, as whole numbers.\n",
  "src/cart/discount.ts": "export const discount = (total: number): number => total * 0.9;\n",
  "src/cart/total.ts":
    'import { discount } from "./discount.ts";\n\n/** What a cart costs, in cents. */\nexport function total(prices: readonly number[]): number {\n  return discount(prices.reduce((sum, price) => sum + price, 0));\n}\n',
  "test/cart/total.test.ts": 'import { total } from "../../src/cart/total.ts";\n',
};
/** The same after a session's work. */
export const filesAfter: StoredFiles["files"] = {
  ...filesBefore,
  "src/cart/total.ts": `${filesBefore["src/cart/total.ts"]}\nexport const rounded = (prices: readonly number[]): number => Math.round(total(prices));\n`,
  "test/cart/rounded.test.ts": 'import { rounded } from "../../src/cart/total.ts";\n',
};

/**
 * Gives a session without a worker the files of its first repository, as commits in a mirror of the worker that runs.
 * @param data folder of that worker's data
 * @param before as the session began
 * @param after as it left them
 */
export async function storeFiles(
  database: Database,
  data: string,
  session: string,
  before: StoredFiles,
  after: StoredFiles,
): Promise<void> {
  const { rows } = await database.pool.query<{ url: string }>(
    `select repository.url from session_repository part join repository on repository.id = part.repository_id
     where part.session_id = $1 order by part.position limit 1`,
    [session],
  );
  const address = parseRepositoryUrl(rows[0]?.url ?? "");
  if (isAddressProblem(address)) throw new Error(`session ${session} has no repository`);
  const mirror = createMirrors({ dataDirectory: data, allowLocalRepositories: false }).pathOf(address.cloneUrl);
  await mkdir(mirror, { recursive: true });
  git(mirror, null, "init", "--quiet", "--bare");
  const commits: string[] = [];
  for (const stored of [before, after]) commits.push(await commitOf(mirror, stored));
  await database.pool.query(
    `update session_repository set base_sha = $2, head_sha = $3, directory = $4
     where session_id = $1 and position = (select min(position) from session_repository where session_id = $1)`,
    [session, ...commits, address.cloneUrl.slice(address.cloneUrl.lastIndexOf("/") + 1)],
  );
  await database.pool.query("update session set workspace_worker = (select min(id) from worker_node) where id = $1", [
    session,
  ]);
}

async function commitOf(mirror: string, { files, links = {} }: StoredFiles): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "offstage-files-"));
  try {
    for (const path of [...Object.keys(files), ...Object.keys(links)])
      await mkdir(dirname(join(folder, path)), { recursive: true });
    for (const [path, content] of Object.entries(files)) await writeFile(join(folder, path), content);
    for (const [path, target] of Object.entries(links)) await symlink(target, join(folder, path));
    git(mirror, folder, "add", "--all");
    return git(mirror, folder, "commit-tree", git(mirror, folder, "write-tree"), "-m", "files");
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function git(mirror: string, workTree: string | null, ...parameters: string[]): string {
  const environment = { ...process.env, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1", GIT_DIR: mirror };
  const names = ["-c", "user.name=a", "-c", "user.email=a@b.c"];
  return execFileSync("git", [...names, ...parameters], {
    cwd: workTree ?? mirror,
    env: { ...environment, ...(workTree !== null && { GIT_WORK_TREE: workTree }) },
    encoding: "utf8",
  }).trim();
}
