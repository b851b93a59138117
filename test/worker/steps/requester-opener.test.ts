import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Person } from "../../forge/state.ts";
import { createAccount } from "../../../src/store/secrets/accounts.ts";
import type { Attempt } from "../../../src/worker/attempt/attempt.ts";
import { exportWork } from "../../../src/worker/steps/commit/export-work.ts";
import { openPullRequests } from "../../../src/worker/steps/open-pull-requests.ts";
import { prepareWorkspace } from "../../../src/worker/steps/prepare.ts";
import { push } from "../../../src/worker/steps/push/push.ts";
import { addPerson } from "../../store/fixtures.ts";
import { createStepWorld, type StepServices, type StepWorld } from "./step-world.ts";

let world: StepWorld;
let services: StepServices;
let ada: Person;
let userId: string;

/** A session that Ada Lovelace asked for, who connected her account. */
beforeEach(async () => {
  world = await createStepWorld();
  services = world.worker("one");
  ada = world.forge.addPerson("ada");
});
afterEach(() => world.close());

async function beginAsAda(overrides: { readonly apiUrl?: string } = {}): Promise<Attempt> {
  const { rows } = await world.database.pool.query<{ id: string }>("select organization_id as id from repository");
  const organizationId = rows[0]?.id ?? "";
  ({ userId } = await addPerson(world.database, organizationId, { name: "Ada Lovelace" }));
  const owner = { organizationId, userId };
  await createAccount(world.database, services.vault, owner, {
    id: crypto.randomUUID(),
    kind: "github",
    webUrl: world.forge.url,
    apiUrl: world.forge.apiUrl,
    name: "ada",
    token: ada.token,
    username: null,
    check: { account: "ada", problems: [] },
    ...overrides,
  });
  return world.begin({ requestedBy: userId });
}

/** The steps of an attempt after its turn. */
async function publish(attempt: Attempt, file: string | null): Promise<void> {
  const { clones } = await prepareWorkspace(attempt, services);
  if (file !== null) await writeFile(join(clones[0]?.folder ?? "", file), "words\n");
  const works = await exportWork(attempt, services, clones);
  const { pushed, refused } = await push(
    attempt,
    services,
    works.filter(({ isChanged }) => isChanged),
  );
  await openPullRequests(attempt, services, pushed, "Did it.", refused);
}

const authors = async () => (await world.forge.pullRequests("acme", "app")).map(({ author }) => author);
const notices = async (attempt: Attempt) =>
  (await world.events(attempt)).filter((line) => line.startsWith("notice ")).map((line) => line.slice(7));
const openedBy = async () =>
  (await world.database.pool.query<{ by: string | null }>("select opened_by as by from pull_request")).rows;

test("the person who asked for the session opens its pull request, and does nothing else", async () => {
  const attempt = await beginAsAda();
  await publish(attempt, "one.txt");
  expect(await authors()).toEqual(["ada"]);
  expect(ada.asked).toEqual(["POST /api/v3/repos/acme/app/pulls"]);
  expect(await openedBy()).toEqual([{ by: userId }]);
  expect(await notices(attempt)).toEqual([]);
  // A follow-up goes on with it, by Offstage's own account.
  await publish(await world.again(attempt, "one"), "two.txt");
  expect([await authors(), ada.asked.length]).toEqual([["ada"], 1]);
  expect(await openedBy()).toEqual([{ by: userId }]);
});

test("so the forge's own token need not be able to", async () => {
  world.forge.setGranted(["contents"]);
  const attempt = await beginAsAda();
  expect((await prepareWorkspace(attempt, services)).clones).toHaveLength(1);
  await world.database.pool.query("update session set requested_by = null");
  const again = await world.again(attempt, "one");
  await expect(prepareWorkspace(again, services)).rejects.toMatchObject({ code: "repository_access_denied" });
});

test("of a session without a requester, Offstage's own account opens it", async () => {
  await beginAsAda();
  await world.database.pool.query("update session set requested_by = null, status = 'completed'");
  const attempt = await world.begin();
  await publish(attempt, "one.txt");
  expect([await authors(), ada.asked]).toEqual([["tester"], []]);
});

test("if the forge does not let the person, Offstage opens it, says why, and does not try them there again", async () => {
  const attempt = await beginAsAda();
  ada.refusal = { status: 403, words: "Resource not accessible by personal access token" };
  await publish(attempt, "one.txt");
  expect(await authors()).toEqual(["tester"]);
  expect(await openedBy()).toEqual([{ by: null }]);
  expect(await notices(attempt)).toEqual([
    expect.stringMatching(/did not let the person who asked open the pull request of acme\/app\./u),
  ]);
  const { rows: known } = await world.database.pool.query("select words from forge_account_refusal");
  expect(known).toEqual([{ words: expect.stringContaining("Resource not accessible") as string }]);
  world.forge.endPullRequest("acme", "app", 1, "merged");
  const next = await world.again(attempt, "one");
  await publish(next, "two.txt");
  expect([await authors(), ada.asked.length]).toEqual([["tester", "tester"], 1]);
  expect((await notices(next)).at(-1)).toMatch(/is not opened in the name of the person who asked: the forge refused/u);
});

test("a token that the forge does not take is broken from then on, and in nothing that is shown", async () => {
  const attempt = await beginAsAda();
  world.forge.removePerson(ada);
  await publish(attempt, "one.txt");
  expect(await authors()).toEqual(["tester"]);
  const { rows } = await world.database.pool.query<{ state: string; text: string }>(
    "select state, problems::text || (select string_agg(data::text, '') from event) as text from forge_account",
  );
  expect(rows[0]?.state).toBe("broken");
  expect(rows[0]?.text).not.toContain(ada.token);
});

test("a pull request whose answer was lost with the worker stays the person's, and no other is opened", async () => {
  const attempt = await beginAsAda();
  await publish(attempt, "one.txt");
  // What a worker that dies between the forge's answer and its row leaves behind.
  const { pool } = world.database;
  await pool.query(
    "update session_repository set asked_sha = pushed_sha, asked_at = now(), asked_by = (select opened_by from pull_request)",
  );
  await pool.query("delete from pull_request");
  // By now the forge would refuse them, and lists it late.
  ada.refusal = { status: 403, words: "no" };
  await publish(await world.again(attempt, "one"), null);
  expect(await authors()).toEqual(["ada"]);
  expect([ada.asked.length, await openedBy()]).toEqual([1, [{ by: userId }]]);
});

test("a token goes nowhere but to the address at which it was checked", async () => {
  const attempt = await beginAsAda({ apiUrl: "https://elsewhere.example/api/v3" });
  await publish(attempt, "one.txt");
  expect([await authors(), ada.asked]).toEqual([["tester"], []]);
  expect(await notices(attempt)).toEqual([expect.stringMatching(/not at https:\/\/elsewhere\.example/u)]);
});

test("who may approve is said of the person, who can't review it either", async () => {
  const attempt = await beginAsAda();
  world.forge.describe("acme", "app", { approvals: { excludesPusher: true } });
  await world.database.pool.query("update session set pull_request = $2 where id = $1", [
    attempt.session.sessionId,
    JSON.stringify({ draft: false, labels: [], reviewers: ["ADA", "bob"], assignees: [] }),
  ]);
  await publish(attempt, "one.txt");
  expect((await notices(attempt)).at(-1)).toMatch(
    /nor does one by the person who asked, in whose name it was opened, so somebody else has to approve/u,
  );
  const { rows } = await world.database.pool.query<{ names: string[] }>(
    "select action -> 'names' as names from answer where action ->> 'field' = 'reviewers'",
  );
  expect(rows).toEqual([{ names: ["bob"] }]);
});
