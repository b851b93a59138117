import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createForges, type Forges } from "../../src/forges/forges.ts";
import { createLogger } from "../../src/observability.ts";
import { readConfig } from "../../src/config/config.ts";
import { SessionError } from "../../src/domain/errors/errors.ts";
import { sectionText } from "../../src/domain/conversations/section.ts";
import { markedSection } from "../../src/domain/repositories/pull-request-section.ts";
import { isAddressProblem, parseRepositoryUrl } from "../../src/domain/repositories/repository.ts";
import {
  beginEditing,
  claimDueSections,
  endEditing,
  putOffSection,
  settleSection,
  type Editing,
} from "../../src/store/repositories/pull-request-sections.ts";
import { createRestingHosts } from "../../src/worker/conversations/ask-forge.ts";
import {
  createSectionSweep,
  sweepSections,
  type SectionServices,
} from "../../src/worker/conversations/section-sweep.ts";
import { createTestApp, type TestApp } from "../api/app.ts";
import { startForge, type TestForge } from "../forge/server.ts";
import { addSession } from "../store/fixtures.ts";
import { waitFor } from "../wait-for.ts";

let api: TestApp;
let forge: TestForge;
let forges: Forges;
let services: SectionServices;
/** Whether the forge can't be reached. */
let isAway = false;
let laterMs = 0;
let count = 0;

beforeAll(async () => {
  api = await createTestApp();
  forge = await startForge();
  forges = createForges([{ kind: "github", webUrl: forge.url, apiUrl: forge.apiUrl, token: forge.token }]);
  services = {
    database: api.database,
    logger: createLogger("silent"),
    forgeOf: (address) => {
      if (!isAway) return Promise.resolve(forges.forgeOf(address));
      const reason = "It is away.";
      return Promise.reject(new SessionError({ code: "forge_unavailable", reason, retryable: true, remedy: "Wait." }));
    },
    resting: createRestingHosts(() => laterMs),
    publicUrl: () => "https://offstage.example",
    limits: readConfig({}).conversations,
  };
});
afterAll(async () => {
  await forge.close();
  await api.close();
});

interface Part {
  readonly name: string;
  readonly id: string;
  readonly url: string;
}
let parts: readonly Part[];
let sessionId: string;

const first = (): Part => parts[0] as Part;

/** A session on two repositories, each with an open pull request whose text has our section, as if it were alone. */
beforeEach(async () => {
  laterMs += 3_600_000;
  const made: Part[] = [];
  for (let index = 0; index < 2; index += 1) {
    const name = `part-${(count += 1)}`;
    const { url } = await forge.createRepository("acme", name, { "a.txt": "a\n" });
    await forge.commit("acme", name, "work", { "b.txt": "b\n" });
    made.push({ name, url, id: (await api.post("/repository/create", { url })).body.id });
  }
  parts = made;
  const session = await addSession(api.database, api.organizationId, { repositories: made, branchName: "work" });
  sessionId = session.id;
  for (const part of made) await open(part);
});

async function open({ id, url, name }: Part): Promise<void> {
  const address = addressOf(url);
  const body = `Words.\n\n${markedSection(sectionText({ sessionUrl: `https://offstage.example/sessions/${sessionId}`, others: [], approval: null, loop: null }))}`;
  const request = { head: "work", target: "main", title: name, body };
  const { number, url: page } = await forges
    .forgeOf(address)
    .openPullRequest(address, request, AbortSignal.timeout(20_000));
  await api.database.pool.query(
    `insert into pull_request (id, organization_id, session_id, repository_id, head, target, number, url)
     values ($1, $2, $3, $4, 'work', 'main', $5, $6)`,
    [randomUUID(), api.organizationId, sessionId, id, number, page],
  );
}

const sweep = () => sweepSections(services, new AbortController().signal);
const bodyOf = async ({ name }: Part): Promise<string> => (await forge.pullRequests("acme", name))[0]?.body ?? "";
const patches = (part: Part): number =>
  forge.asked().filter((line) => line.startsWith("PATCH ") && line.includes(`/${part.name}/`)).length;

async function moveSession(...statuses: string[]): Promise<void> {
  for (const status of statuses) {
    await api.database.pool.query("select move_session($1, $2, null, null, null, false, waits_for => null)", [
      sessionId,
      status,
    ]);
  }
}

async function editOnForge(part: Part, change: (body: string) => string): Promise<void> {
  const address = addressOf(part.url);
  await forges.forgeOf(address).editPullRequest(address, 1, change, AbortSignal.timeout(20_000));
}

test("a move of the session brings the section of each of its pull requests up to date, once", async () => {
  await moveSession("cancelled");
  expect(await sweep()).toBe(2);
  const [one, two] = parts as [Part, Part];
  expect(await bodyOf(one)).toContain(`- It goes with [acme/${two.name} #1](${two.url}/pull/1).`);
  expect(await bodyOf(two)).toContain(`- It goes with [acme/${one.name} #1](${one.url}/pull/1).`);
  expect(await bodyOf(one)).toMatch(/^Words\.\n\n<!-- offstage section -->/u);
  const before = patches(one);
  await moveSession("queued", "cancelled");
  expect(await sweep()).toBe(2);
  expect([patches(one), await sweep()]).toEqual([before, 0]);
});

test("a text whose forge does not answer holds up no other that is due later", async () => {
  const [one, two] = parts as [Part, Part];
  const { pool } = api.database;
  await moveSession("cancelled");
  const dueAt = (part: Part, at: string) =>
    pool.query("update pull_request set section_due_at = $2::timestamptz where repository_id = $1", [part.id, at]);
  await dueAt(two, "infinity");
  const answered = Promise.withResolvers<void>();
  let asked = 0;
  const service = createSectionSweep({
    ...services,
    async forgeOf(address, organizationId) {
      if (address.path.includes(one.name)) {
        asked += 1;
        await answered.promise;
      }
      return services.forgeOf(address, organizationId);
    },
  });
  await service.start();
  try {
    await waitFor(() => asked > 0, "the forge is asked for the first");
    await dueAt(two, "-infinity");
    await waitFor(() => patches(two) > 0, "the text of the second is edited");
    expect(patches(one)).toBe(0);
  } finally {
    answered.resolve();
    await service.stop();
  }
  expect(patches(one)).toBe(1);
  await moveSession("queued", "cancelled");
  expect(await claimDueSections(pool, { limit: 10, leaseMs: 0, busy: [api.organizationId] })).toEqual([]);
  expect(await claimDueSections(pool, { limit: 10, leaseMs: 0 })).toHaveLength(2);
});

test("it tells what came after, and nothing that is not so any more", async () => {
  const [one] = parts as [Part, Part];
  const { pool } = api.database;
  await pool.query("update session_repository set pushed_sha = $2 where session_id = $1", [sessionId, "a".repeat(40)]);
  await pool.query(
    "insert into message (id, session_id, position, text, status) values ($1, $2, 2, 'More', 'done'), ($3, $2, 3, 'And more', 'pending')",
    [randomUUID(), sessionId, randomUUID()],
  );
  await moveSession("cancelled");
  await sweep();
  expect(await bodyOf(one)).toContain(
    "- 1 follow-up so far; its last commit here is `aaaaaaaaaa`.\n- It stopped: the session was cancelled.\n",
  );
  await moveSession("queued");
  await sweep();
  expect(await bodyOf(one)).toContain("- It works on what it was asked last.\n");
  expect(await bodyOf(one)).not.toContain("It stopped");
});

test("what people wrote stays, and so does a text without our marks", async () => {
  const [one, two] = parts as [Part, Part];
  await editOnForge(one, (body) => `Mine. ${body} Mine too.`);
  await editOnForge(two, () => "All mine.");
  await moveSession("cancelled");
  await sweep();
  expect(await bodyOf(one)).toMatch(/^Mine\. Words\.[^]*It goes with[^]*<!-- \/offstage section --> Mine too\.$/u);
  expect(await bodyOf(two)).toBe("All mine.");
});

test.each(["closed", "merged"] as const)("one that was %s on the forge stays as it was read then", async (state) => {
  const before = await bodyOf(first());
  forge.endPullRequest("acme", first().name, 1, state);
  await moveSession("cancelled");
  await sweep();
  expect(await bodyOf(first())).toBe(before);
});

test("a forge that does not answer is asked again later, and what became due meanwhile stays due", async () => {
  isAway = true;
  await moveSession("cancelled");
  await sweep();
  isAway = false;
  const due = async () =>
    (
      await api.database.pool.query(
        "select section_attempts from pull_request where session_id = $1 and section_due_at is not null",
        [sessionId],
      )
    ).rows;
  expect(await due()).toEqual([{ section_attempts: 1 }, { section_attempts: 1 }]);
  laterMs += 3_600_000;
  await api.database.pool.query("update pull_request set section_due_at = now() where section_due_at is not null");
  await sweep();
  expect(await due()).toEqual([]);
  for (const part of parts) expect(await bodyOf(part)).toContain("It goes with");
});

test("what becomes due while it is written is looked at again", async () => {
  await moveSession("cancelled");
  const claimed = await claimDueSections(api.database.pool, { limit: 10, leaseMs: 60_000 });
  expect(claimed).toHaveLength(2);
  await moveSession("queued");
  // No other worker edits it meanwhile.
  expect(await claimDueSections(api.database.pool, { limit: 10, leaseMs: 60_000 })).toEqual([]);
  for (const each of claimed) await settleSection(api.database.pool, each, "told");
  expect(await claimDueSections(api.database.pool, { limit: 10, leaseMs: 60_000 })).toHaveLength(2);
});

test("a turn's words and our section are not written at the same time", async () => {
  const place = placeOfFirst();
  const editing = await hold(60_000);
  expect(await beginEditing(api.database, place, 60_000)).toBeNull();
  await moveSession("cancelled");
  expect(await sweep()).toBe(1);
  await endEditing(api.database, editing);
  expect(await sweep()).toBe(1);
  expect(await bodyOf(first())).toContain("It goes with");
});

test("a worker that ends after its lease does not end the lease of another", async () => {
  const late = await hold(0);
  const claim = async () => {
    await api.database.pool.query("update pull_request set section_due_at = now() where repository_id = $1", [
      first().id,
    ]);
    const [claimed, ...more] = await claimDueSections(api.database.pool, { limit: 10, leaseMs: 0 });
    if (claimed === undefined || more.length > 0) throw new Error("not one section was due");
    return claimed;
  };
  const lateClaims = [await claim(), await claim()] as const;
  const editing = await hold(60_000);
  await endEditing(api.database, late);
  await settleSection(api.database.pool, lateClaims[0], "told");
  await putOffSection(api.database.pool, lateClaims[1], 60_000);
  expect(await beginEditing(api.database, placeOfFirst(), 60_000)).toBeNull();
  await endEditing(api.database, editing);
  // What the late ones said of the section does not count either.
  expect(await claimDueSections(api.database.pool, { limit: 10, leaseMs: 60_000 })).toMatchObject([
    { repositoryId: first().id, attempts: 0, told: null },
  ]);
});

const placeOfFirst = () => ({ organizationId: api.organizationId, repositoryId: first().id, number: 1 });

async function hold(leaseMs: number): Promise<Editing> {
  const editing = await beginEditing(api.database, placeOfFirst(), leaseMs);
  if (editing === null) throw new Error("another worker edits it");
  return editing;
}

function addressOf(url: string) {
  const address = parseRepositoryUrl(url);
  if (isAddressProblem(address)) throw new Error(address.problem);
  return address;
}
