import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SessionError } from "../../src/domain/errors/errors.ts";
import { readConfig } from "../../src/config/config.ts";
import { createForges } from "../../src/forges/forges.ts";
import type { OrganizationForges } from "../../src/forges/organization-forges.ts";
import { repositoryRemotes } from "../../src/server/repository-remotes.ts";
import { startForge, type TestForge } from "../forge/server.ts";
import { inOtherClone } from "../other-clone.ts";

let forge: TestForge;
let data: string;
let remotes: ReturnType<typeof repositoryRemotes>;

beforeAll(async () => {
  forge = await startForge();
  data = await mkdtemp(join(tmpdir(), "offstage-trees-"));
  const forges = createForges([{ kind: "github", webUrl: forge.url, apiUrl: forge.apiUrl, token: forge.token }]);
  const config = readConfig({ OFFSTAGE_DATA: data });
  const own = { of: () => Promise.resolve({ ...forges, secrets: () => [] }), forget: () => undefined };
  remotes = repositoryRemotes({ config, forges: own satisfies OrganizationForges });
});

afterAll(async () => {
  remotes?.stop();
  await forge?.close();
  await rm(data, { recursive: true, force: true });
});

let count = 0;
async function repository(files: Record<string, string>): Promise<string> {
  return (await forge.createRepository("acme", `listed-${(count += 1)}`, files)).url;
}

test("the branches and the files of each are those of the remote now, and nothing stays on the disk", async () => {
  const url = await repository({ "README.md": "# Listed\n", "src/deep/ä file.ts": "export {};\n" });
  await inOtherClone(
    { forge },
    url,
    "git checkout -qb dev && echo x > only-dev.txt && git add -A && git commit -qm Dev && git push -q origin dev",
  );
  const { names, defaultBranch } = await remotes.branches(url, "any");
  expect([...names].sort()).toEqual(["dev", "main"]);
  expect(defaultBranch).toBe("main");
  expect(await remotes.files(url, "any", null)).toMatchObject({
    branch: "main",
    paths: ["README.md", "src/deep/ä file.ts"],
  });
  const both = await Promise.all([remotes.files(url, "any", "dev"), remotes.files(url, "any", "dev")]);
  expect(both[0]).toEqual(both[1]);
  expect(both[0]?.paths).toContain("only-dev.txt");
  expect(await readdir(join(data, "trees"))).toEqual([]);
});

test("a branch, a repository and a host that are not there are told as such", async () => {
  const url = await repository({ "README.md": "# Listed\n" });
  const codeOf = (asked: Promise<unknown>): Promise<string> =>
    asked.then(
      () => "none",
      (error: unknown) => (error instanceof SessionError ? error.code : String(error)),
    );
  expect(await codeOf(remotes.files(url, "any", "gone"))).toBe("target_branch_not_found");
  expect(await codeOf(remotes.branches(`${forge.url}/acme/not-there`, "any"))).toBe("repository_not_found");
  expect(await codeOf(remotes.branches("http://nowhere.invalid/a/b", "any"))).toBe("repository_unreachable");
  expect(await codeOf(remotes.branches("http://127.0.0.1:1/a/b", "any"))).toMatch(/^repository_/u);
});
