import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Client } from "../../src/client.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { callApi } from "../call.ts";
import { script } from "../end-to-end/script.ts";
import { startCompany, type Company } from "../outbound/company.ts";
import { createWorld, startInProcess, untilOver, type World } from "../world.ts";
import { isInstalled } from "./installed.ts";
import { startVerdaccio, type PrivateNpm } from "./verdaccio.ts";

let world: World;
let company: Company;
let registry: PrivateNpm;
let offstage: Offstage;
let client: Client;

beforeAll(async () => {
  world = await createWorld(script);
  company = await startCompany();
  registry = await startVerdaccio("https://npm.company.test");
  await registry.publish("@acme/secret-lib", "1.2.3", "module.exports = 'what only members know';\n");
  await company.serve("npm.company.test", registry.url);
  await writeFile(join(world.data, "company.pem"), company.authority.certificate);
  ({ offstage, client } = await startInProcess(world, {
    OFFSTAGE_DEFAULT_AGENT: "basic:scripted",
    OFFSTAGE_EGRESS: "none",
    HTTPS_PROXY: company.proxy,
    OFFSTAGE_CA_FILE: join(world.data, "company.pem"),
  }));
});

afterAll(async () => {
  await offstage?.stop();
  await registry?.close();
  await company?.close();
  await world?.close();
});

const files = { "package.json": '{"name":"app","version":"1.0.0"}\n', ".gitignore": "node_modules\nsecret.txt\n" };

/** Adds the registry to the organization, unless a test has. */
async function addRegistry(): Promise<unknown> {
  const { registries } = await client.registry.list();
  const request = { kind: "npm", url: "https://npm.company.test", scope: "@acme", token: registry.token } as const;
  return registries[0] ?? client.registry.create(request);
}

/** Runs commands as the agent's. @returns the diff */
async function patchOf(url: string, commands: string): Promise<string> {
  const { id } = await client.session.create({ prompt: `shell ${commands}`, repositories: [url] });
  expect(await untilOver(client, id)).toMatchObject({ status: "completed", failure: null });
  return (await client.session.diff(id)).repositories[0]?.patch ?? "";
}

const install =
  "npm install @acme/secret-lib --no-fund > out.txt 2>&1; cp node_modules/@acme/secret-lib/index.js got.js; echo over >> out.txt";

it("installs with npm from a private registry, with a token that never enters the sandbox", async () => {
  const { url } = await world.forge.createRepository("acme", "installs", files);
  // The control: without the registry's token it is refused, nor is its host allowed.
  expect((await fetch(`${registry.url}/@acme%2fsecret-lib`)).status).toBe(401);
  expect(await patchOf(url, install)).not.toContain("what only members know");

  const made = await addRegistry();
  expect(JSON.stringify([made, await client.registry.list()])).not.toContain(registry.token);

  const look = "env | sort > env.txt; cat ~/.offstage/registries/npmrc >> env.txt; cat ~/.npmrc >> env.txt 2>/dev/null";
  const patch = await patchOf(url, `${install}; ${look}`);
  expect(patch).toContain("+module.exports = 'what only members know';");
  expect(patch).toContain("+@acme:registry=https://npm.company.test/");
  // Every clone of the repository can use the lock file: it names the registry's own address.
  expect(patch).toContain('"resolved": "https://npm.company.test/@acme/secret-lib/-/secret-lib-1.2.3.tgz"');
  expect(patch).not.toContain("127.0.0.1:4873");
  for (const hidden of [registry.token, "[secret]", "Bearer"]) expect(patch).not.toContain(hidden);
});

it("gives setup scripts the same, and lets nothing be published", async () => {
  await addRegistry();
  const { url } = await world.forge.createRepository("acme", "sets-up", files);
  const { id } = (await callApi(offstage.url, "/repository/create", { url })) as { id: string };
  await callApi(offstage.url, `/repository/${id}/environment`, {
    setupScript:
      "npm install --no-save --no-fund @acme/secret-lib && cp node_modules/@acme/secret-lib/index.js secret.txt",
  });
  const put =
    "node -e \"fetch('https://npm.company.test/@acme%2fother',{method:'PUT',body:'{}'}).then(async r=>console.log('put',r.status,await r.text()))\" > put.txt 2>&1";
  const patch = await patchOf(url, `cat secret.txt > seen.txt; ${put}`);
  expect(patch).toContain("+module.exports = 'what only members know';");
  expect(patch).toContain("+put 403 a sandbox can read from this registry, and not PUT anything there");
});

/** The hosts that a session's sandbox asked for and did not reach. */
async function refusedHosts(url: string, commands: string): Promise<string[]> {
  const { id } = await client.session.create({ prompt: `shell ${commands}`, repositories: [url] });
  expect(await untilOver(client, id)).toMatchObject({ status: "completed", failure: null });
  const { events } = await client.session.events(id, { limit: 1_000 });
  return events.flatMap((event) => (event.type === "egress.refused" ? [event.data.host] : []));
}

/** Yarn's one file, as repositories keep it. Their settings have it write `node_modules`, and install a package that is new. */
async function yarnFiles(): Promise<Record<string, string>> {
  const yarn = join(import.meta.dirname, "../../node_modules/@yarnpkg/cli-dist/bin/yarn.js");
  return {
    ...files,
    ".yarn/releases/yarn.cjs": await readFile(yarn, "utf8"),
    ".yarnrc.yml": 'nodeLinker: node-modules\nenableTelemetry: false\nnpmPreapprovedPackages: ["@acme/*"]\n',
    "yarn.lock": "",
    ".gitignore": "node_modules\n.yarn/*\n!.yarn/releases\n",
  };
}

const yarn =
  "node .yarn/releases/yarn.cjs add @acme/secret-lib; cp node_modules/@acme/secret-lib/index.js got.js; true";

it("installs with Yarn from a private registry, unless the repository says where packages are", async () => {
  await addRegistry();
  const own = await yarnFiles();
  const { url } = await world.forge.createRepository("acme", "yarn", own);
  const patch = await patchOf(url, yarn);
  expect(patch).toContain("+module.exports = 'what only members know';");
  expect(patch).not.toContain("127.0.0.1");
  const settings = `${own[".yarnrc.yml"] ?? ""}npmRegistryServer: "https://own.company.test"\nnpmScopes:\n  acme:\n    npmRegistryServer: "https://own.company.test"\n`;
  const other = await world.forge.createRepository("acme", "yarn-own", { ...own, ".yarnrc.yml": settings });
  expect(await refusedHosts(other.url, yarn)).toContain("own.company.test");
});

it("lets Yarn, which does not look at HTTPS_PROXY, find the gateway for public packages", async () => {
  const { url } = await world.forge.createRepository("acme", "yarn-public", await yarnFiles());
  expect(await refusedHosts(url, "node .yarn/releases/yarn.cjs add is-number")).toContain("registry.yarnpkg.com");
});

it.skipIf(!isInstalled("mvn", "--version"))("lets Maven find the gateway for public packages", async () => {
  const { url } = await world.forge.createRepository("acme", "maven-public", { a: "a\n" });
  const get = "mvn -B dependency:get -Dartifact=junit:junit:4.13 || true";
  expect(await refusedHosts(url, get)).toContain("repo.maven.apache.org");
});

it("stops as soon as the registry is deleted", async () => {
  const { registries } = await client.registry.list();
  for (const { id } of registries) await client.registry.delete(id);
  const { url } = await world.forge.createRepository("acme", "stops", files);
  expect(await patchOf(url, install)).not.toContain("what only members know");
});
