import { afterAll, beforeAll, expect, test } from "vitest";
import { createClient, type Client } from "../../src/client.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { findDefaultOrganization } from "../../src/store/people/organizations.ts";
import type { Person } from "../forge/state.ts";
import { addPerson } from "../store/fixtures.ts";
import { createWorld, noticesOf, startInProcess, untilOver, type World } from "../world.ts";
import { script } from "./script.ts";

let world: World;
let offstage: Offstage;
let ada: Person;
/** Of Ada Lovelace, with a key of hers. */
let client: Client;

beforeAll(async () => {
  world = await createWorld(script);
  ada = world.forge.addPerson("ada");
  world.forge.setScopes("repo");
  ({ offstage } = await startInProcess(world, { OFFSTAGE_DEFAULT_AGENT: "basic:scripted" }));
  const { database } = offstage;
  const organizationId = await findDefaultOrganization(database);
  const { key } = await addPerson(database, organizationId, { name: "Ada Lovelace" });
  client = createClient({ baseUrl: offstage.url, key });
});
afterAll(async () => {
  await offstage?.stop();
  await world?.close();
});

async function run(name: string) {
  const { url } = await world.forge.createRepository("acme", name, { "README.md": "# Before\n" });
  const { id } = await client.session.create({ prompt: "write hello.txt: hello there", repositories: [url] });
  const done = await untilOver(client, id);
  expect([done.status, done.failure]).toEqual(["completed", null]);
  return { id, pulls: await world.forge.pullRequests("acme", name) };
}

test("a person's sessions open their pull requests in the person's name, until the forge refuses their token", async () => {
  const account = await client.account.create({ webUrl: world.forge.url, token: ada.token });
  expect(account).toMatchObject({ kind: "github", name: "ada", health: { state: "ok" } });
  ada.asked.length = 0;
  expect((await run("first")).pulls).toMatchObject([{ author: "ada" }]);
  expect(ada.asked).toEqual(["POST /api/v3/repos/acme/first/pulls"]);

  world.forge.removePerson(ada);
  const { id, pulls } = await run("second");
  expect(pulls).toMatchObject([{ author: "tester" }]);
  expect((await noticesOf(client, id)).join()).toMatch(/did not let the person who asked open/u);
  const { accounts } = await client.account.list();
  expect(accounts).toMatchObject([{ id: account.id, health: { state: "broken" } }]);

  // What is stored and shown of it all has the token nowhere.
  const { rows } = await offstage.database.pool.query<{ text: string }>(
    `select coalesce(string_agg(shown, ''), '') as text from (
       select event::text as shown from event union all select audit_entry::text from audit_entry
       union all select session::text from session union all select forge_account::text from forge_account
       union all select pull_request::text from pull_request) everything`,
  );
  expect(rows[0]?.text).toContain("did not let the person who asked");
  expect(rows[0]?.text).not.toContain("Ada Lovelace");
  expect(rows[0]?.text).not.toContain(ada.token);
});
