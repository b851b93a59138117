import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Client } from "../../src/client.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { script } from "../end-to-end/script.ts";
import { createWorld, startInProcess, untilOver, type World } from "../world.ts";
import { startCompany, type Company } from "./company.ts";

let world: World;
let company: Company;
let offstage: Offstage | null = null;
let hooks: Server;
const delivered: string[] = [];
const repository = "https://git.company.test/acme/app";

/** Settings of a server in the company, without its proxy and its authority. */
const settings = (): Record<string, string> => ({
  OFFSTAGE_FORGES: JSON.stringify([
    {
      kind: "github",
      webUrl: "https://git.company.test",
      apiUrl: "https://git.company.test/api/v3",
      token: world.forge.token,
    },
  ]),
  OFFSTAGE_MODEL_BASE_URL: "https://model.company.test/v1",
  OFFSTAGE_DEFAULT_AGENT: "basic:scripted",
  OFFSTAGE_EGRESS_ALLOW: "git.company.test",
});

const proxied = (): Record<string, string> => ({
  HTTPS_PROXY: company.proxy,
  http_proxy: company.proxy,
  OFFSTAGE_CA_FILE: join(world.data, "company.pem"),
});

beforeAll(async () => {
  world = await createWorld(script);
  company = await startCompany();
  hooks = createServer((request, response) => {
    void text(request).then((body) => {
      delivered.push(body);
      response.end();
    });
  });
  hooks.listen(0, "127.0.0.1");
  await once(hooks, "listening");
  await company.serve("git.company.test", world.forge.url);
  await company.serve("model.company.test", world.model.url);
  await company.serve("hooks.company.test", `http://127.0.0.1:${(hooks.address() as AddressInfo).port}`);
  await writeFile(join(world.data, "company.pem"), `The company's own.\n${company.authority.certificate}`);
  await world.forge.createRepository("acme", "app", { "README.md": "# App\n" });
});

afterAll(async () => {
  await offstage?.stop();
  hooks?.close();
  await company?.close();
  await world?.close();
});

async function start(variables: Record<string, string>): Promise<Client> {
  await offstage?.stop();
  // What is asked is whether something can be reached, not whether it will be some time.
  const started = await startInProcess(world, { ...settings(), OFFSTAGE_RETRY_HOURS: "0", ...variables });
  ({ offstage } = started);
  return started.client;
}

async function run(client: Client, prompt: string) {
  const { id } = await client.session.create({ prompt, repositories: [repository] });
  return untilOver(client, id);
}

it("reaches nothing of the company without its proxy, nor trusts it without its authority", async () => {
  const alone = await run(await start({}), "write a.txt: alone");
  expect(alone.failure).toMatchObject({ code: "repository_unreachable" });
  expect(alone.failure?.reason).toContain("Could not resolve host: git.company.test");
  expect(company.asked).toEqual([]);

  const untrusting = await run(await start({ HTTPS_PROXY: company.proxy }), "write a.txt: untrusting");
  expect(untrusting.failure?.reason).toMatch(/certificate/u);
  expect(company.asked).toContain("CONNECT git.company.test:443");
});

it("does git, the forge's API, the model and webhooks through the proxy, with the company's authority", async () => {
  const client = await start(proxied());
  await client.webhook.create({ url: "https://hooks.company.test/in", events: ["session.completed"] });
  const before = company.asked.length;
  const done = await run(client, "write a.txt: by the proxy");
  expect(done).toMatchObject({ status: "completed", failure: null });
  expect(await world.forge.pullRequests("acme", "app")).toHaveLength(1);
  await expect.poll(() => delivered.length).toBe(1);
  const asked = new Set(company.asked.slice(before));
  expect(asked).toEqual(
    new Set(["CONNECT git.company.test:443", "CONNECT model.company.test:443", "CONNECT hooks.company.test:443"]),
  );
  // The control: what is on this machine is contacted directly, the database and the API among it.
  expect(company.asked.join("\n")).not.toContain("127.0.0.1");
});

it("lets an agent out through the gateway and the proxy, and trusts the authority inside only if configured to", async () => {
  const look = "shell git ls-remote https://git.company.test/acme/app > seen.txt 2>&1; git --version >> seen.txt";
  const patchOf = async (client: Client): Promise<string> => {
    const { id } = await run(client, look);
    return (await client.session.diff(id)).repositories[0]?.patch ?? "";
  };
  const untrusting = await patchOf(await start(proxied()));
  expect(untrusting).toContain("+git version");
  expect(untrusting).toMatch(/certificate/u);
  const before = company.asked.filter((entry) => entry === "CONNECT git.company.test:443").length;
  const patch = await patchOf(await start({ ...proxied(), OFFSTAGE_CA_IN_SANDBOX: "true" }));
  expect(company.asked.filter((entry) => entry === "CONNECT git.company.test:443").length).toBeGreaterThan(before);
  expect(patch).not.toMatch(/certificate/u);
  // The forge's answer without a credential: none of the server's is inside.
  expect(patch).toContain("could not read Username for 'https://git.company.test'");
});

it("contacts directly what NO_PROXY names", async () => {
  const client = await start({ ...proxied(), NO_PROXY: "git.company.test" });
  const before = company.asked.length;
  const done = await run(client, "write a.txt: direct");
  expect(done.failure?.reason).toContain("Could not resolve host: git.company.test");
  expect(company.asked.slice(before)).not.toContain("CONNECT git.company.test:443");
});
