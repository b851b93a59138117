import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Client } from "../../src/client.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { script } from "../end-to-end/script.ts";
import { startCompany, type Company } from "../outbound/company.ts";
import { createWorld, startInProcess, untilOver, type World } from "../world.ts";
import { isInstalled } from "./installed.ts";
import { goModule, rubyGem, servePackages, type PrivatePackages, type Served } from "./private-packages.ts";

const hasGo = isInstalled("go", "version");
const hasGem = isInstalled("gem", "--version");
const hasBundler = isInstalled("bundle", "--version");

const word = "what only members know";
/** In two halves, of which an order to the agent may name each without being what is looked for. */
const halves = ["the-password-of-", "these-registries"];
const token = halves.join("");
const basic = Buffer.from(`worker:${token}`).toString("base64");

let world: World;
let company: Company;
let offstage: Offstage;
let client: Client;
const servers: PrivatePackages[] = [];

/** Starts a server of packages and puts it behind a name of the company's. */
async function serve(host: string, served: Served): Promise<PrivatePackages> {
  const server = await servePackages(served, `Basic ${basic}`);
  servers.push(server);
  await company.serve(host, server.url);
  return server;
}

beforeAll(async () => {
  world = await createWorld(script);
  company = await startCompany();
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
  for (const server of servers) await server.close();
  await company?.close();
  await world?.close();
});

/**
 * Looks for the password and its encodings in all that an agent can read: files, and the arguments and environments of
 * all processes. The file of what is looked for is found itself, or nothing was looked for.
 */
const look = [
  `printf '%s%s\\n%s%s\\n' ${halves.join(" ")} ${basic.slice(0, 20)} ${basic.slice(20)} > /tmp/sought`,
  'grep -rlF -f /tmp/sought ~ /tmp "$PWD" /proc/[0-9]*/environ /proc/[0-9]*/cmdline > found.txt 2>/dev/null',
].join("; ");

/** Runs commands as the agent's. @returns the diff */
async function patchOf(url: string, commands: string): Promise<string> {
  const { id } = await client.session.create({ prompt: `shell ${commands}; ${look}`, repositories: [url] });
  expect(await untilOver(client, id)).toMatchObject({ status: "completed", failure: null });
  const patch = (await client.session.diff(id)).repositories[0]?.patch ?? "";
  expect(patch.match(/^\+\/.*/gmu)).toEqual(["+/tmp/sought"]);
  return patch;
}

/** Does something with a registry, and once more after it was deleted. @returns the diffs */
async function withRegistry(kind: "go" | "rubygems", url: string, commands: string, repository: string) {
  const { id } = await client.registry.create({ kind, url, username: "worker", token });
  try {
    return await patchOf(repository, commands);
  } finally {
    await client.registry.delete(id);
  }
}

it.skipIf(!hasGo)("gives Go itself a module that only members get", async () => {
  const server = await serve("go.company.test", goModule("go.company.test/members", "v1.0.0", word));
  const { url } = await world.forge.createRepository("acme", "goes", {
    "go.mod": "module example.test/app\n\ngo 1.18\n\nrequire go.company.test/members v1.0.0\n",
    "main.go":
      'package main\n\nimport (\n\t"fmt"\n\n\t"go.company.test/members"\n)\n\nfunc main() { fmt.Println(members.Word) }\n',
  });
  const build = "(go mod tidy && go run .) > out.txt 2>&1; echo over >> out.txt";
  // The control: the same without the registry's credential.
  expect(await patchOf(url, build)).not.toContain(`+${word}`);
  expect(server.asked).toEqual([]);
  const patch = await withRegistry("go", "https://go.company.test/", build, url);
  expect(patch).toContain(`+${word}`);
  expect(patch).toContain("+go.company.test/members v1.0.0 h1:");
});

it.skipIf(!hasGem)("gives gem itself a gem that only members get", async () => {
  const server = await serve("gems.company.test", await rubyGem("members-only", "1.0.0", word));
  const { url } = await world.forge.createRepository("acme", "gems", { a: "a\n" });
  const install =
    "(gem install --no-document --user-install members-only && ruby -e 'require \"members_only\"; puts Members::WORD') > out.txt 2>&1; echo over >> out.txt";
  expect(await patchOf(url, install)).not.toContain(`+${word}`);
  expect(server.asked).toEqual([]);
  expect(await withRegistry("rubygems", "https://gems.company.test/", install, url)).toContain(`+${word}`);
});

it.skipIf(!hasBundler)("gives Bundler itself a gem that only members get", async () => {
  const server = await serve("bundle.company.test", await rubyGem("members-only", "1.0.0", word));
  const { url } = await world.forge.createRepository("acme", "bundles", {
    Gemfile: 'source "https://rubygems.org"\ngem "members-only"\n',
    ".gitignore": "vendor\n",
  });
  const install =
    "(bundle config set --local path vendor && bundle install --retry 0 && bundle exec ruby -e 'require \"members_only\"; puts Members::WORD') > out.txt 2>&1; echo over >> out.txt";
  expect(await patchOf(url, install)).not.toContain(`+${word}`);
  expect(server.asked).toEqual([]);
  const patch = await withRegistry("rubygems", "https://bundle.company.test/", install, url);
  expect(patch).toContain(`+${word}`);
  // Every clone of the repository can use the lock file: it names the registries behind the gateway.
  expect(patch).toContain("+  remote: https://rubygems.org/");
});
