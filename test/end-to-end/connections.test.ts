import { afterAll, beforeAll, expect, it } from "vitest";
import { createClient, type Client } from "../../src/client.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { createKey } from "../../src/store/people/keys.ts";
import { addOrganization } from "../store/fixtures.ts";
import { adminKey, createWorld, startInProcess, untilOver, type World } from "../world.ts";
import { script } from "./script.ts";

let world: World;
let offstage: Offstage;
let client: Client;

beforeAll(async () => {
  world = await createWorld(script);
  // The operator has no token of the forge, and lists its host.
  ({ offstage, client } = await startInProcess(world, {
    OFFSTAGE_FORGES: "[]",
    OFFSTAGE_FORGE_HOSTS: "127.0.0.1",
    OFFSTAGE_DEFAULT_AGENT: "basic:scripted",
  }));
});
afterAll(async () => {
  await offstage?.stop();
  await world?.close();
});

async function post(path: string, body: unknown, key = adminKey) {
  const response = await fetch(`${offstage.url}${path}`, {
    method: "POST",
    headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

it("an organization's sessions work with its connection, and no other organization's do", async () => {
  const { url } = await world.forge.createRepository("acme", "Shop", { "README.md": "# Before\n" });
  const prompt = "write hello.txt: hello there";
  const credential = { type: "token", token: world.forge.token };
  const connection = { kind: "github", webUrl: world.forge.url, apiUrl: world.forge.apiUrl, credential };
  const made = await post("/connection/create", connection);
  expect(made).toMatchObject({ status: 200, body: { account: "tester" } });

  const done = await untilOver(client, (await client.session.create({ prompt, repositories: [url] })).id);
  expect([done.status, done.failure]).toEqual(["completed", null]);
  expect(await world.forge.pullRequests("acme", "Shop")).toHaveLength(1);
  const page = await client.repository.list();
  expect(page.codeRepositories).toMatchObject([{ integration: { type: "github" } }]);

  // What a sender wrote into a payload is shown without it.
  const hook = { type: "webhook", condition: "false" };
  const { body: automation } = await post("/automation/create", {
    name: "Hears",
    macro: "hears",
    instructions: "Look",
    triggers: [hook],
  });
  const { url: address } = (automation["triggers"] as { type: string; url: string }[])[1] ?? { url: "" };
  const { body: delivered } = await post(new URL(address).pathname, { said: `${credential.token}, that is it` });
  const headers = { Authorization: `Bearer ${adminKey}` };
  const entry = await fetch(`${offstage.url}/ledger/${String(delivered["ledgerId"])}`, { headers });
  expect(await entry.json()).toMatchObject({ payload: { said: "[secret], that is it" } });

  // The mirror is there, and what the first organization may read in it is still no other's.
  const other = await addOrganization(offstage.database);
  const { key } = await createKey(offstage.database, other, { name: "other", scopes: ["admin"] });
  const theirs = createClient({ baseUrl: offstage.url, key });
  const wrong = { kind: "git", webUrl: world.forge.url, credential: { type: "token", token: "wrong" } };
  expect((await post("/connection/create", wrong, key)).status).toBe(200);
  const refused = await untilOver(theirs, (await theirs.session.create({ prompt, repositories: [url] })).id);
  expect(refused).toMatchObject({ status: "failed", failure: { code: "repository_access_denied" } });

  await post(`/connection/${String(made.body["id"])}/delete`, {});
  const after = await untilOver(client, (await client.session.create({ prompt, repositories: [url] })).id);
  expect(after).toMatchObject({
    status: "failed",
    failure: { code: expect.stringMatching(/^repository_/u) as string },
  });
});
