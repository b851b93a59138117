import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Offstage } from "../../src/server/offstage.ts";
import { findDefaultOrganization } from "../../src/store/people/organizations.ts";
import { startForge, type TestForge } from "../forge/server.ts";
import { addPerson } from "../store/fixtures.ts";
import { adminKey, createWorld, startInProcess, type World } from "../world.ts";

// The commands of the pages, as a newcomer runs them: one after the other, in one shell. Only addresses and tokens are others.

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
let world: World;
let offstage: Offstage;
let folder: string;
const others: TestForge[] = [];

beforeAll(async () => {
  world = await createWorld(() => [{ write: { path: "done.txt", content: "done" } }, { say: "I did it." }]);
  const overrides = { OFFSTAGE_DEFAULT_AGENT: "basic:scripted", OFFSTAGE_FORGE_HOSTS: "127.0.0.1" };
  ({ offstage } = await startInProcess(world, overrides));
  for (const name of ["project", "one", "two"])
    await world.forge.createRepository("you", name, { "README.md": "# Hi\n" });
  world.forge.describe("you", "project", { issues: [7] });
  folder = await mkdtemp(join(tmpdir(), "offstage-walk-"));
  await mkdir(join(folder, "bin"));
  // A refusal is a mistake of the page's.
  await writeFile(join(folder, "bin/curl"), '#!/bin/sh\nPATH=${PATH#*:} exec curl --fail-with-body "$@"\n');
  await chmod(join(folder, "bin/curl"), 0o755);
});
afterAll(async () => {
  await offstage?.stop();
  await Promise.all(others.map((forge) => forge.close()));
  await world?.close();
  await rm(folder, { recursive: true, force: true });
});

/** The commands of a page, those that `isRun` leaves out excepted. */
async function commandsOf(page: string, isRun: (block: string) => boolean = () => true): Promise<string> {
  const text = await readFile(join(root, page), "utf8");
  const blocks = [...text.matchAll(/^( *)```sh\n(.*?)^ *```/gmsu)].map(([, indent = "", block = ""]) =>
    block.replaceAll(new RegExp(`^${indent}`, "gmu"), ""),
  );
  expect(blocks.length).toBeGreaterThan(0);
  return blocks.filter(isRun).join("\n");
}

async function runAll(commands: string, apiKey = adminKey): Promise<string> {
  const { forge } = world;
  const authenticated = forge.url.replace("http://", `http://x:${forge.token}@`);
  const git = {
    [`url.${authenticated}/.insteadOf`]: `${forge.url}/`,
    "user.name": "You",
    "user.email": "you@example.com",
  };
  const settings = Object.entries(git).flatMap(([key, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, key],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ]);
  const environment = {
    ...(Object.fromEntries(settings) as Record<string, string>),
    GIT_CONFIG_COUNT: String(settings.length / 2),
    PATH: `${join(folder, "bin")}:${process.env["PATH"] ?? ""}`,
    OFFSTAGE_SERVER: offstage.url,
    OFFSTAGE_API_KEY: apiKey,
  };
  const script = `set -e -o pipefail\ntrap 'echo "failed: $BASH_COMMAND" >&2' ERR\n${commands}`;
  const { stdout } = await run("bash", ["--norc", "-c", script], { cwd: folder, env: environment, timeout: 240_000 });
  return stdout;
}

test("each command of docs/automations.md does what the page says", async () => {
  const commands = await commandsOf("docs/automations.md");
  const said = await runAll(commands.replaceAll("https://github.com", world.forge.url));
  expect(said).toContain("the gate ended with 1:");
  expect(said).toContain("duplicate");
  expect(said).toContain('"outcome": "fired"');
  const { rows } = await offstage.database.pool.query(
    "select macro from automation where deleted_at is null order by macro",
  );
  expect(rows.map(({ macro }) => macro as string)).toEqual([
    "bump-linter",
    "estimate",
    "failed-builds",
    "fix-bug",
    "nightly",
    "triage",
    "triage-issues",
  ]);
});

test("each command of docs/forges.md that connects a forge connects it", async () => {
  // A forge for each kind that the page connects, since each is at an address of its own.
  let commands = await commandsOf("docs/forges.md", (block) => !/accept:forge|\/account\//u.test(block));
  const addresses = [
    "https://bitbucket.org",
    "https://bitbucket.example.com",
    "https://github.com",
    "https://gitlab.com",
    "https://git.example.com",
    "https://dev.azure.com",
  ];
  for (const address of addresses) {
    const forge = await startForge();
    others.push(forge);
    await forge.createRepository("acme/shop", "app", { "README.md": "# Hi\n" });
    await forge.createRepository("acme", "app", { "README.md": "# Hi\n" });
    commands = commands
      .split("\n")
      .map((line) =>
        [`${address}/`, `${address}"`].some((named) => line.includes(named))
          ? line.replaceAll(address, forge.url).replaceAll("…", forge.token)
          : line,
      )
      .join("\n")
      // As Azure DevOps names a repository in what it delivers.
      .replaceAll(address.replace("https://", "https://acme@"), forge.url);
  }
  const said = await runAll(commands.replaceAll("whsec_…", `whsec_${randomBytes(32).toString("base64")}`));
  expect(said).toContain('"outcome":"');
  const { rows } = await offstage.database.pool.query(
    "select distinct kind from forge_connection where credential = 'token' and deleted_at is null order by kind",
  );
  expect(rows.map(({ kind }) => kind as string)).toEqual([
    "azure",
    "bitbucket",
    "bitbucketDataCenter",
    "gitea",
    "github",
    "gitlab",
  ]);
});

test("each command of docs/forges.md that connects a person's own account connects it, with a key of theirs", async () => {
  const { database } = offstage;
  const organizationId = await findDefaultOrganization(database);
  const { key } = await addPerson(database, organizationId, { name: "Ada" });
  const { token } = world.forge.addPerson("ada");
  world.forge.setScopes("repo");
  const commands = await commandsOf("docs/forges.md", (block) => block.includes("/account/"));
  const said = await runAll(commands.replaceAll("https://github.com", world.forge.url).replaceAll("…", token), key);
  expect(said).toContain('"state": "ok"');
  expect(said).not.toContain(token);
});
