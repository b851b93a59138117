import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { InvalidInputError } from "../../src/domain/errors/errors.ts";
import type { RepositoryAddress } from "../../src/domain/repositories/repository.ts";
import { createForges } from "../../src/forges/forges.ts";
import { createLogger } from "../../src/observability.ts";
import { applyFiles } from "../../src/store/automations/apply-files.ts";
import { claimSync } from "../../src/store/automations/file-sync.ts";
import { receiveEvent } from "../../src/store/automations/inbound-events.ts";
import { createKey } from "../../src/store/people/keys.ts";
import { createConnection } from "../../src/store/secrets/forge-connections.ts";
import { environmentKeyring } from "../../src/store/secrets/keyring.ts";
import { createVault } from "../../src/store/secrets/vault.ts";
import { decideNext } from "../../src/worker/events/event-decisions.ts";
import { createFileSyncs, syncNext, type FileSyncs } from "../../src/worker/background/sync-automation-files.ts";
import { createMirrors } from "../../src/worker/git/mirrors/mirrors.ts";
import { createTestApp, type TestApp } from "../api/app.ts";
import { gitEnvironment } from "../forge/state.ts";
import { startForge, type TestForge } from "../forge/server.ts";
import { delivered, secret } from "../inbound/deliveries.ts";
import { addOrganization } from "../store/fixtures.ts";
import { waitFor } from "../wait-for.ts";

const run = promisify(execFile);
const vault = createVault(environmentKeyring(Buffer.alloc(32, 7).toString("base64")));
const { signal } = new AbortController();
let forge: TestForge;
let api: TestApp;
let data: string;
let options: FileSyncs;
let forges: ReturnType<typeof createForges>;
let count = 0;
/** The repository of the test. */
let repository: { readonly id: string; readonly name: string; readonly url: string };

beforeAll(async () => {
  forge = await startForge();
  forges = createForges([{ kind: "github", webUrl: forge.url, apiUrl: forge.apiUrl, token: forge.token }]);
  const repositoryKeyOf = (address: RepositoryAddress) => forges.keyOf(address);
  api = await createTestApp({ vault, repositoryKeyOf });
  data = await mkdtemp(join(tmpdir(), "offstage-files-"));
  const { database, templates } = api;
  options = {
    database,
    vault,
    templates,
    logger: createLogger("silent"),
    mirrors: createMirrors({ dataDirectory: data, allowLocalRepositories: false }),
    forgeOf: (address) => Promise.resolve(forges.forgeOf(address)),
    providers: ["opencode"],
    allowLocalRepositories: false,
    publicUrl: () => "http://offstage.test",
  };
});
afterAll(async () => {
  await api?.close();
  await forge?.close();
  await rm(data, { recursive: true, force: true });
});

beforeEach(async () => {
  const name = `repo-${(count += 1)}`;
  const { url } = await forge.createRepository("acme", name, { "README.md": "# Before\n" });
  const { body } = await api.post("/repository/create", { url });
  repository = { id: body.id, name, url };
});

/** Pushes what the folder of automations has from now on, and nothing else. @returns the commit */
async function push(
  files: Readonly<Record<string, string>>,
  prepare?: (folder: string) => Promise<void>,
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "offstage-push-"));
  const git = async (...parameters: string[]): Promise<string> =>
    (await run("git", parameters, { cwd: folder, env: { ...process.env, ...gitEnvironment } })).stdout.trim();
  try {
    await git("clone", "--quiet", forge.pathOf("acme", repository.name), ".");
    const place = join(folder, ".offstage/automations");
    await rm(place, { recursive: true, force: true });
    for (const [path, content] of Object.entries(files)) {
      await mkdir(dirname(join(place, path)), { recursive: true });
      await writeFile(join(place, path), content);
    }
    await prepare?.(place);
    await git("add", "--all");
    await git(
      "-c",
      "user.name=A",
      "-c",
      "user.email=a@example.com",
      "commit",
      "--quiet",
      "--allow-empty",
      "-m",
      "Change",
    );
    await git("push", "--quiet", "origin", "HEAD:main");
    return await git("rev-parse", "HEAD");
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const due = () =>
  api.database.pool.query("update automation_sync set due_at = now() where repository_id = $1", [repository.id]);
async function look(): Promise<void> {
  await due();
  while (await syncNext(options, signal)) continue;
}
const switchTo = (enabled: boolean) => api.post(`/repository/${repository.id}/automation-files`, { enabled });
const state = async () => (await api.get(`/repository/${repository.id}/automation-files`)).body;
async function statuses(): Promise<{ sha: string; state: string; description: string }[]> {
  const { rows } = await api.database.pool.query<{ action: { sha: string; state: string; description: string } }>(
    "select action from answer where repository_id = $1 order by number",
    [repository.id],
  );
  return rows.map(({ action }) => action);
}
const file = (more = "", instructions = "Fix it") => `name: Fix\ninstructions: ${instructions}\n${more}`;
const macroOf = (word: string) => `${word}-${repository.name}`;

test("files make automations of their repository once that is switched on, which can't be changed elsewhere", async () => {
  const commit = await push({
    [`${macroOf("fix")}.yaml`]: file("triggers: [{type: forge, events: [push]}]\n"),
    "notes.md": "x",
  });
  await look();
  expect(await state()).toMatchObject({ enabled: false, files: [] });
  expect((await api.get(`/automation/${macroOf("fix")}`)).status).toBe(404);

  expect((await switchTo(true)).body).toMatchObject({ enabled: true, syncedAt: null });
  await look();
  const path = `.offstage/automations/${macroOf("fix")}.yaml`;
  const { body } = await api.get(`/automation/${macroOf("fix")}`);
  expect(body).toMatchObject({
    instructions: "Fix it",
    repositories: [{ id: repository.id }],
    file: { repositoryId: repository.id, path, problem: null, url: `${repository.url}/blob/${commit}/${path}` },
  });
  expect(await state()).toMatchObject({
    branch: "main",
    commit,
    problem: null,
    files: [{ path, automationId: body.id, problem: null }],
  });
  expect(await statuses()).toMatchObject([
    { sha: commit, state: "success", description: "1 automation is as in the files" },
  ]);

  for (const [change, with_] of [
    ["update", { instructions: "x" }],
    ["delete", {}],
  ] as const) {
    const refused = await api.post(`/automation/${body.id}/${change}`, with_);
    expect([refused.status, refused.body.error]).toEqual([409, expect.stringContaining(path)]);
  }
  expect((await api.post(`/automation/${body.id}/update`, { paused: true })).status).toBe(200);
  await look();
  expect((await api.get(`/automation/${body.id}`)).body).toMatchObject({
    paused: true,
    updatedAt: expect.any(String) as string,
  });
  expect(await statuses()).toHaveLength(1);

  expect((await switchTo(false)).body).toMatchObject({ enabled: false, files: [], commit: null });
  expect((await api.get(`/automation/${body.id}`)).status).toBe(404);
});

test("a change keeps the automation's id and addresses, also in a renamed file; a file that is gone takes it along", async () => {
  const triggers = "triggers: [{type: webhook, verify: {type: hmac, header: x-signature}}]\n";
  await push({ "a.yaml": file(`macro: ${macroOf("kept")}\n${triggers}`), [`${macroOf("other")}.yml`]: file() });
  await switchTo(true);
  await look();
  const first = (await api.get(`/automation/${macroOf("kept")}`)).body;
  const other = (await api.get(`/automation/${macroOf("other")}`)).body;

  await push({ "b.yaml": file(`macro: ${macroOf("kept")}\n${triggers}`, "Fix it well") });
  await look();
  const second = (await api.get(`/automation/${macroOf("kept")}`)).body;
  expect(second).toMatchObject({
    id: first.id,
    instructions: "Fix it well",
    file: { path: ".offstage/automations/b.yaml" },
  });
  expect(second.triggers[1]).toMatchObject({ id: first.triggers[1].id, url: first.triggers[1].url });
  expect((await api.get(`/automation/${other.id}`)).status).toBe(404);

  await push({ "b.yaml": file(`macro: ${macroOf("renamed")}\n${triggers}`) });
  await look();
  expect((await api.get(`/automation/${macroOf("renamed")}`)).body.id).toBe(first.id);
});

test("each trigger of a file keeps its address if one before it is taken out, or another comes before it", async () => {
  const webhook = (kind: string, most = 5): string =>
    `  - {type: webhook, condition: "event.kind == '${kind}'", maxPerHour: ${most}}\n`;
  const addressesOf = async (...webhooks: string[]): Promise<Record<string, string>> => {
    await push({ "a.yaml": file(`macro: ${macroOf("several")}\ntriggers:\n${webhooks.join("")}`) });
    await look();
    const { triggers } = (await api.get(`/automation/${macroOf("several")}`)).body;
    const all = triggers.slice(1) as { readonly condition: string; readonly url: string }[];
    return Object.fromEntries(all.map(({ condition, url }) => [condition.split("'")[1], url]));
  };
  await switchTo(true);
  const { build, ...others } = await addressesOf(webhook("build"), webhook("deploy"), webhook("alert"));
  expect(new Set([build, ...Object.values(others)]).size).toBe(3);
  // One is taken out, and another one changed.
  expect(await addressesOf(webhook("deploy", 9), webhook("alert"))).toEqual(others);
  const again = await addressesOf(webhook("build"), webhook("alert"), webhook("deploy", 9));
  expect(again).toMatchObject(others);
  expect(again["build"]).not.toBe(build);
});

test("an error in one file is reported at the commit, leaves its last good version working, and the others change", async () => {
  await push({ [`${macroOf("a")}.yaml`]: file(), [`${macroOf("b")}.yaml`]: file() });
  await switchTo(true);
  await look();
  const broken = file("", "'{% if %}'");
  const commit = await push({
    [`${macroOf("a")}.yaml`]: broken,
    [`${macroOf("b")}.yaml`]: file("", "Fix it well"),
    [`${macroOf("c")}.yaml`]: file("repositories: [https://example.com/other/one]\n"),
    [`${macroOf("d")}.yaml`]: file("triggers: [{type: api, condition: event.x +}]\n"),
    [`${macroOf("e")}.yaml`]: file("agent: none:x\n"),
    [`${macroOf("f")}.yaml`]: file(`macro: ${macroOf("b")}\n`),
  });
  await look();
  expect((await api.get(`/automation/${macroOf("a")}`)).body).toMatchObject({
    instructions: "Fix it",
    file: { problem: expect.stringContaining("instructions: ") as string },
  });
  expect((await api.get(`/automation/${macroOf("b")}`)).body).toMatchObject({ instructions: "Fix it well" });
  const { files } = await state();
  expect(files.map(({ problem }: { problem: string | null }) => problem)).toEqual([
    expect.stringContaining("instructions: "),
    null,
    expect.stringContaining("unknown field: repositories"),
    expect.stringContaining("triggers[0].condition: "),
    expect.stringContaining("agent: there is no provider none"),
    expect.stringContaining(`macro: ${macroOf("b")} is that of`),
  ]);
  const status = (await statuses()).at(-1);
  expect(status).toMatchObject({ sha: commit, state: "failure" });
  expect(status?.description.length).toBeLessThanOrEqual(140);
  await look();
  expect(await statuses()).toHaveLength(2);

  const mended = await push({ [`${macroOf("a")}.yaml`]: file("", "Mended") });
  await look();
  expect((await api.get(`/automation/${macroOf("a")}`)).body).toMatchObject({
    instructions: "Mended",
    file: { problem: null },
  });
  expect((await statuses()).at(-1)).toMatchObject({ sha: mended, state: "success" });
});

test("a macro that another automation has stays that one's, until it gives it free", async () => {
  const taken = macroOf("taken");
  const { body } = await api.post("/automation/create", { name: "Own", macro: taken, instructions: "Own" });
  await push({ [`${taken}.yaml`]: file() });
  await switchTo(true);
  await look();
  expect((await state()).files).toMatchObject([
    { automationId: null, problem: `macro: ${taken} is taken by another automation` },
  ]);
  expect((await api.get(`/automation/${taken}`)).body).toMatchObject({ id: body.id, file: null });
  await api.post(`/automation/${taken}/delete`, {});
  await look();
  expect((await api.get(`/automation/${taken}`)).body).toMatchObject({ file: { problem: null } });
});

test("what is no plain file, or too large, or too many, is reported and read no further", async () => {
  const large = `${file()}title: ${"x".repeat(70_000)}\n`;
  await push({ "large.yaml": large }, (folder) => symlink("/etc/passwd", join(folder, "link.yaml")));
  await switchTo(true);
  await look();
  expect((await state()).files).toMatchObject([
    { path: ".offstage/automations/large.yaml", problem: "has more than 64 KiB" },
    { path: ".offstage/automations/link.yaml", problem: "is no plain file" },
  ]);
  await push(Object.fromEntries(Array.from({ length: 51 }, (_, index) => [`f${index}.yaml`, file()])));
  await look();
  expect((await state()).problem).toContain("more than 50 files");
});

test("a file that is not UTF-8 does not count, and a name that can't be stored is reported", async () => {
  const text = file("", "Pr\u00fcfe es");
  await push({ "marked.yaml": `\ufeff${text}` }, async (folder) => {
    await writeFile(join(folder, "latin.yaml"), Buffer.from(text, "latin1"));
    await writeFile(join(folder, "wide.yaml"), Buffer.from(`\ufeff${text}`, "utf16le"));
  });
  await switchTo(true);
  await look();
  expect((await state()).files).toMatchObject([
    { path: ".offstage/automations/latin.yaml", problem: "must be UTF-8" },
    { path: ".offstage/automations/marked.yaml", problem: null },
    { path: ".offstage/automations/wide.yaml", problem: "must be UTF-8" },
  ]);
  expect((await api.get("/automation/marked")).body.instructions).toBe("Pr\u00fcfe es");
  const unreadable = (first: string) => Buffer.from(`/${first}\u00ff.yaml`, "latin1");
  await push({}, async (folder) => {
    await mkdir(folder, { recursive: true });
    for (const first of ["", "\u00fe"]) await writeFile(Buffer.concat([Buffer.from(folder), unreadable(first)]), text);
  });
  await look();
  expect((await state()).problem).toContain("whose name is no text");
});

test("the branch's present head decides, and a worker that was overtaken changes nothing", async () => {
  const macro = macroOf("race");
  await push({ [`${macro}.yaml`]: file("", "One") });
  await switchTo(true);
  const slow = await claimSync(api.database, 60_000);
  expect(slow?.repositoryId).toBe(repository.id);
  if (slow === null) return;
  // No other worker may read while it has the lease.
  await due();
  expect(await syncNext(options, signal)).toBe(false);
  await api.database.pool.query(
    "update automation_sync set lease_until = now() - interval '1 second' where repository_id = $1",
    [repository.id],
  );
  const commit = await push({ [`${macro}.yaml`]: file("", "Two") });
  await look();
  const late = { branch: "main", commit: "0".repeat(40), files: [] };
  expect(await applyFiles(api.database, vault, slow, late, () => Promise.reject(new Error("never")))).toBeNull();
  expect((await api.get(`/automation/${macro}`)).body).toMatchObject({ instructions: "Two" });
  expect(await state()).toMatchObject({ commit });
});

test("a look that failed for another reason than the repository is repeated within seconds, else within minutes", async () => {
  await push({});
  await switchTo(true);
  const secondsUntilNext = async (): Promise<number> => {
    const { rows } = await api.database.pool.query<{ s: number }>(
      "select extract(epoch from due_at - now())::float8 as s from automation_sync where repository_id = $1",
      [repository.id],
    );
    return rows[0]?.s ?? Number.NaN;
  };
  const fails = async (error: Error): Promise<number> => {
    await due();
    await syncNext({ ...options, forgeOf: () => Promise.reject(error) }, signal);
    return secondsUntilNext();
  };
  expect(await fails(new Error("deadlock detected"))).toBeLessThanOrEqual(5);
  expect(await state()).toMatchObject({ problem: "the worker could not read it: see the server's log" });
  expect(await fails(new InvalidInputError("it has no branch main"))).toBeGreaterThan(60);
  expect(await state()).toMatchObject({ problem: "it has no branch main" });
  await look();
  expect(await state()).toMatchObject({ problem: null });
});

test("a signed push to the connection has the files looked at, and an automation of a file hears of its own repository alone", async () => {
  const connectionId = randomUUID();
  const made = await createConnection(api.database, vault, api.organizationId, {
    id: connectionId,
    kind: "github",
    name: "GitHub",
    webUrl: forge.url,
    apiUrl: forge.apiUrl,
    credential: { type: "configured" },
    check: { account: null, problems: [] },
  });
  const macro = macroOf("hears");
  await push({ [`${macro}.yaml`]: file("triggers: [{type: forge, events: [issue.opened]}]\n") });
  await switchTo(true);
  await look();
  const dueAt = async (): Promise<boolean> => {
    const { rows } = await api.database.pool.query<{ due: boolean }>(
      "select due_at < now() + interval '1 minute' as due from automation_sync where repository_id = $1",
      [repository.id],
    );
    return rows[0]?.due ?? false;
  };
  expect(await dueAt()).toBe(false);
  const payload = {
    ref: "refs/heads/main",
    before: "1".repeat(40),
    after: "2".repeat(40),
    commits: [],
    repository: { id: 1, full_name: `acme/${repository.name}`, html_url: repository.url, default_branch: "main" },
    sender: { id: 1, login: "joan" },
  };
  const send = async (key: string): Promise<number> => {
    const { headers, body } = delivered(
      { forge: "github", headers: { "x-github-event": "push" }, payload },
      key,
      randomUUID(),
    );
    const raw = body.toString();
    const answer = await api.request("POST", `/hook/forge/${connectionId}`, {
      key: null,
      headers: { ...(headers as Record<string, string>), "content-type": "application/json" },
      raw,
    });
    return answer.status;
  };
  expect(await send("wrong")).toBe(401);
  expect(await dueAt()).toBe(false);
  expect(await send((made as { webhookSecret?: string }).webhookSecret ?? secret)).toBe(202);
  expect(await dueAt()).toBe(true);

  const other = await forge.createRepository("acme", `other-${count}`, { "README.md": "x" });
  await api.post("/repository/create", { url: other.url });
  const tell = (url: string) =>
    receiveEvent(api.database, {
      id: randomUUID(),
      organizationId: api.organizationId,
      connectionId,
      scope: connectionId,
      keys: [],
      name: "issue.opened",
      deliveryId: null,
      subject: null,
      payload: { repository: { url }, issue: { number: 1 } },
      traceParent: null,
    });
  const { database, templates } = api;
  const keyOf = (address: RepositoryAddress) => Promise.resolve(forges.keyOf(address));
  const decide = async () => {
    while (await decideNext({ database, templates, worker: "w", logger: createLogger("silent"), keyOf })) continue;
  };
  await tell(other.url);
  await decide();
  expect((await api.get(`/automation/${macro}/runs`)).body.runs).toEqual([]);
  await tell(repository.url);
  await decide();
  expect((await api.get(`/automation/${macro}/runs`)).body.runs).toHaveLength(1);
});

test("an admin of another organization can neither switch a repository's files off nor on", async () => {
  await push({ [`${macroOf("own")}.yaml`]: file() });
  await switchTo(true);
  await look();
  const other = await addOrganization(api.database);
  const { key } = await createKey(api.database, other, {
    name: "foreign",
    scopes: ["admin"],
    expiresAt: null,
    automationIds: null,
  });
  const before = await state();
  for (const enabled of [false, true]) {
    const answer = await api.post(`/repository/${repository.id}/automation-files`, { enabled }, { key });
    expect(answer.status).toBe(404);
  }
  expect(await state()).toEqual(before);
  expect((await api.get(`/automation/${macroOf("own")}`)).status).toBe(200);
  // What they can't, the repository's own admin can.
  await switchTo(false);
  expect((await api.get(`/automation/${macroOf("own")}`)).status).toBe(404);
});

test("a repository that is disconnected loses the automations of its files, also if it is connected again", async () => {
  await push({ [`${macroOf("gone")}.yaml`]: file() });
  await switchTo(true);
  await look();
  await due();
  const underway = await claimSync(api.database, 60_000);
  expect(underway?.repositoryId).toBe(repository.id);
  if (underway === null) return;

  expect((await api.post(`/repository/${repository.id}/delete`, {})).status).toBe(200);
  expect((await api.get(`/automation/${macroOf("gone")}`)).status).toBe(404);
  const late = { branch: "main", commit: "0".repeat(40), files: [] };
  expect(await applyFiles(api.database, vault, underway, late, () => Promise.reject(new Error("never")))).toBeNull();

  const { body } = await api.post("/repository/create", { url: repository.url });
  expect(body.id).toBe(repository.id);
  await look();
  expect(await state()).toMatchObject({ enabled: false, commit: null, files: [] });
  expect((await api.get(`/automation/${macroOf("gone")}`)).status).toBe(404);
  await switchTo(true);
  await look();
  expect((await api.get(`/automation/${macroOf("gone")}`)).status).toBe(200);
});

test("what an automation of a file remembered goes with its file, and that of others stays", async () => {
  await push({ [`${macroOf("one")}.yaml`]: file(), [`${macroOf("two")}.yaml`]: file() });
  await switchTo(true);
  await look();
  const ids: string[] = [];
  for (const word of ["one", "two"]) {
    const { body } = await api.get(`/automation/${macroOf(word)}`);
    ids.push(body.id);
    expect((await api.post(`/automation/${body.id}/state/update`, { set: { seen: 1 } })).status).toBe(200);
  }
  const remembered = async (): Promise<string[]> => {
    const { rows } = await api.database.pool.query<{ id: string }>(
      "select automation_id as id from automation_state where automation_id = any($1)",
      [ids],
    );
    return rows.map(({ id }) => id);
  };
  await push({ [`${macroOf("two")}.yaml`]: file("", "Fix it well") });
  await look();
  expect(await remembered()).toEqual([ids[1]]);
});

/** Looks at what other tests have left, which is due now and then, and would be looked at first. */
async function lookAtAll(): Promise<void> {
  while (await syncNext(options, signal)) continue;
}

/** The synchronisation with a forge that does not answer about one repository until the look is broken off. */
function slowAt(name: string) {
  const reached = Promise.withResolvers<undefined>();
  const slow: FileSyncs = {
    ...options,
    forgeOf: async (address, organizationId) => {
      const quick = await options.forgeOf(address, organizationId);
      if (!address.cloneUrl.includes(`/${name}`)) return quick;
      return {
        ...quick,
        credentials: (_, over) => {
          over?.throwIfAborted();
          const { promise, reject } = Promise.withResolvers<never>();
          over?.addEventListener("abort", () => reject(over.reason as Error));
          reached.resolve(undefined);
          return promise;
        },
      };
    },
  };
  return { slow, reached: reached.promise };
}

test("a look that is broken off is taken up at once", async () => {
  await push({ [`${macroOf("broken")}.yaml`]: file() });
  await lookAtAll();
  await switchTo(true);
  const { slow, reached } = slowAt(repository.name);
  const stopping = new AbortController();
  const looking = syncNext(slow, stopping.signal);
  await reached;
  expect(await syncNext(options, signal)).toBe(false);
  stopping.abort();
  expect(await looking).toBe(true);
  expect(await syncNext(options, signal)).toBe(true);
  expect((await api.get(`/automation/${macroOf("broken")}`)).status).toBe(200);
});

test("a repository that is slow delays no other", async () => {
  const macro = macroOf("quick");
  await push({ [`${macro}.yaml`]: file() });
  const { url } = await forge.createRepository("acme", `slow-${count}`, { "README.md": "x" });
  const { body: other } = await api.post("/repository/create", { url });
  await api.post(`/repository/${other.id}/automation-files`, { enabled: true });
  const { slow, reached } = slowAt(`slow-${count}`);
  const service = createFileSyncs(slow);
  await service.start();
  try {
    await reached;
    await switchTo(true);
    await waitFor(
      async () => (await api.get(`/automation/${macro}`)).status === 200,
      "the other repository's files are read",
    );
  } finally {
    await service.stop();
  }
  expect((await api.get(`/repository/${other.id}/automation-files`)).body.syncedAt).toBeNull();
  await api.post(`/repository/${other.id}/automation-files`, { enabled: false });
});

test("a claim is renewed as long as the look takes, which ends if the claim is lost", async () => {
  await push({ [`${macroOf("long")}.yaml`]: file() });
  await lookAtAll();
  await switchTo(true);
  const { slow, reached } = slowAt(repository.name);
  const looking = syncNext({ ...slow, leaseMs: 1_500 }, signal);
  await reached;
  const leaseUntil = async (): Promise<number> => {
    const { rows } = await api.database.pool.query<{ at: Date }>(
      "select lease_until as at from automation_sync where repository_id = $1",
      [repository.id],
    );
    return rows[0]?.at.getTime() ?? 0;
  };
  const first = await leaseUntil();
  await waitFor(async () => (await leaseUntil()) > first, "the claim is renewed");
  await switchTo(false);
  expect(await looking).toBe(true);
  expect(await state()).toMatchObject({ enabled: false, problem: null });
});

test("the schema that validates files is published", async () => {
  const { status, body } = await api.get("/schemas/automation.json", { key: null });
  expect([status, body.type, body.additionalProperties]).toEqual([200, "object", false]);
  expect(Object.keys(body.properties)).toEqual(expect.arrayContaining(["name", "macro", "instructions", "triggers"]));
  expect(body.required).toEqual(["name", "instructions"]);
});
