import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { RegistryKind } from "../../src/domain/environments/registry.ts";
import { registrySettings } from "../../src/worker/setup/registry-settings.ts";
import { testEnvironment } from "../test-environment.ts";
import { isInstalled } from "./installed.ts";
import { writeHomeFiles } from "./through-gateway.ts";

/** What a setup, a person or an image says to a tool stays, and goes before what a registry makes us say. */

let home: string;
const ours = "https://packages.company.test/";
const theirs = "https://theirs.company.test/";

beforeEach(async () => void (home = await mkdtemp(join(tmpdir(), "offstage-own-settings-"))));
afterEach(() => rm(home, { recursive: true, force: true }));

const settingsOf = (kind: RegistryKind | null) =>
  registrySettings(
    kind === null ? [] : [{ id: "it", kind, url: ours, scope: null, username: null }],
    { authoritiesFile: null, registryAt: (origin, id) => `${origin}/registries/${id}/` },
    home,
  );

async function write(path: string, content: string): Promise<void> {
  await mkdir(dirname(join(home, path)), { recursive: true });
  await writeFile(join(home, path), content);
}

const read = (path: string): Promise<string> => readFile(join(home, path), "utf8");

/** Writes the settings as before a turn. @returns runs a tool with them @param image variables of an image */
async function configure(kind: RegistryKind | null, image: NodeJS.ProcessEnv = {}) {
  const { environment, files } = settingsOf(kind);
  await writeHomeFiles(home, files, image);
  const env = { ...testEnvironment(), ...image, ...environment, HOME: home };
  return async (command: string, ...words: string[]): Promise<string> =>
    (await promisify(execFile)(command, words, { cwd: home, env, timeout: 60_000 })).stdout.trim();
}

describe("npm", () => {
  it("reads an image's own global file beside ours, which goes before it", async () => {
    const image = { NPM_CONFIG_GLOBALCONFIG: join(home, "image/npmrc") };
    await write("image/npmrc", "engine-strict=true\n");
    const run = await configure("npm", image);
    expect(await run("npm", "config", "get", "engine-strict")).toBe("true");
    expect(await run("npm", "config", "get", "registry")).toBe(ours);
    // These would be the only trusted certificates, without the gateway's.
    await write("image/npmrc", "cafile=/image.pem\nca[]=x\nengine-strict=true\n");
    expect(await (await configure("npm", image))("npm", "config", "get", "cafile")).toBe("null");
    await write("image/npmrc", `engine-strict=true\nregistry=${theirs}\n`);
    expect(await (await configure("npm", image))("npm", "config", "get", "registry")).toBe(theirs);
  });

  it("finds the global file of the Node that is installed", async () => {
    await write("installed/etc/npmrc", "engine-strict=true\n");
    await write("installed/bin/node", "");
    await configure("npm", { PATH: `${join(home, "installed/bin")}:/usr/bin:/bin` });
    expect(await read(".offstage/registries/npmrc")).toBe(`registry=${ours}\nengine-strict=true\n`);
  });
});

describe("Yarn", () => {
  const registry = { id: "it", kind: "npm" as const, username: null };
  const two = [
    { ...registry, url: ours, scope: null },
    { ...registry, url: theirs, scope: "@theirs" },
    { ...registry, url: ours, scope: "@1.0" },
  ];
  const gateway = { authoritiesFile: null, registryAt: () => "" };
  const program = join(import.meta.dirname, "../../node_modules/@yarnpkg/cli-dist/bin/yarn.js");

  it("reads each registry from a person's own file, and what a setup says there stays", async () => {
    await write("package.json", "{}");
    const run = await configure("npm");
    const get = (key: string) => run(process.execPath, program, "config", "get", "--json", key);
    await writeHomeFiles(home, registrySettings(two, gateway, home).files);
    expect(await get("npmRegistryServer")).toBe(JSON.stringify(ours.slice(0, -1)));
    const scopes = JSON.parse(await get("npmScopes")) as Record<string, { npmRegistryServer: string }>;
    expect(scopes["theirs"]?.npmRegistryServer).toBe(theirs.slice(0, -1));
    expect(scopes["1.0"]?.npmRegistryServer).toBe(ours.slice(0, -1));
    expect(await read(".yarnrc")).toContain(`\nregistry "${ours}"\n"@theirs:registry" "${theirs}"\n`);
    const own = `npmRegistryServer: "${theirs}"\n`;
    await write(".yarnrc.yml", own);
    await configure("npm");
    expect(await read(".yarnrc.yml")).toBe(own);
    await configure(null);
    expect(await read(".yarnrc")).toBe("");
  });
});

const pip = (run: (...words: string[]) => Promise<string>, key: string) =>
  run("python3", "-m", "pip", "config", "get", key);

describe.skipIf(!isInstalled("python3", "-m", "pip", "--version"))("pip", () => {
  it("keeps a setup's own settings, and installs from our registry beside them", async () => {
    await write(".config/pip/pip.conf", "[install]\nno-compile = yes\n[global]\ntimeout = 7\n");
    for (let times = 0; times < 2; times += 1) {
      const run = await configure("pypi");
      expect(await pip(run, "global.index-url")).toBe(ours);
      expect(await pip(run, "global.timeout")).toBe("7");
      expect(await pip(run, "install.no-compile")).toBe("yes");
    }
    await configure(null);
    expect(await read(".config/pip/pip.conf")).toBe("[install]\nno-compile = yes\n[global]\ntimeout = 7\n");
  });

  it.each([".config/pip/pip.conf", ".pip/pip.conf"])("leaves out ours if %s says where packages are", async (path) => {
    await write(path, `[global]\nindex-url = ${theirs}\n`);
    const run = await configure("pypi");
    expect(await pip(run, "global.index-url")).toBe(theirs);
  });

  it("lets a setup say after us where packages are", async () => {
    const run = await configure("pypi");
    expect(await pip(run, "global.index-url")).toBe(ours);
    await run("python3", "-m", "pip", "config", "--user", "set", "global.index-url", theirs);
    expect(await pip(await configure("pypi"), "global.index-url")).toBe(theirs);
  });
});

it("uv's settings stay, and ours are left out if they say where packages are", async () => {
  await write(".config/uv/uv.toml", "offline = false\n");
  await configure("pypi");
  expect(await read(".config/uv/uv.toml")).toMatch(/^offline = false\n# .*\n\[\[index\]\]\n/u);
  await write(".config/uv/uv.toml", `index-url = "${theirs}"\n`);
  await configure("pypi");
  expect(await read(".config/uv/uv.toml")).toBe(`index-url = "${theirs}"\n`);
});

describe("Maven", () => {
  const own =
    "<settings><!-- <mirrors></mirrors> --><mirrors><mirror><id>own</id><mirrorOf>central</mirrorOf></mirror></mirrors><offline>false</offline></settings>";
  const written = () => read(".offstage/registries/maven-settings.xml");

  it("reads an image's own global settings with ours, of which the image's mirrors count first", async () => {
    await write("maven/conf/settings.xml", own);
    await configure("maven", { MAVEN_HOME: join(home, "maven") });
    expect(await written()).toMatch(
      /^<settings><mirrors><mirror><id>own<.*<mirror><id>offstage<.*<\/mirrors><offline>false<\/offline><\/settings>$/su,
    );
  });

  it("adds a mirror to an image's settings that have none but in a comment", async () => {
    await write("maven/conf/settings.xml", "<settings><!-- <mirrors></mirrors> --><offline>false</offline></settings>");
    await write("maven/bin/mvn", "");
    await configure("maven", { PATH: `${join(home, "maven/bin")}:/usr/bin:/bin` });
    expect(await written()).toMatch(
      /^<settings><offline>false<\/offline><mirrors><mirror><id>offstage<.*<\/mirrors><\/settings>$/su,
    );
  });
});

it("Cargo's older file is used if a setup has that", async () => {
  await write(".cargo/config", "[net]\nretry = 0\n");
  await configure("cargo");
  expect(await read(".cargo/config")).toMatch(/^\[net\]\nretry = 0\n# .*\n\[source\.crates-io\]\n/u);
  await expect(read(".cargo/config.toml")).rejects.toThrow("ENOENT");
});

describe.skipIf(!isInstalled("go", "version"))("Go", () => {
  it("keeps what a setup wrote, before ours and after", async () => {
    await write(".config/go/env", "GOFLAGS=-mod=mod\n");
    const run = await configure("go");
    expect(await run("go", "env", "GOFLAGS", "GOPROXY", "GONOSUMDB")).toBe(`-mod=mod\n${ours.slice(0, -1)}\n*`);
    await run("go", "env", "-w", `GOPROXY=${theirs}`);
    expect(await (await configure("go"))("go", "env", "GOFLAGS", "GOPROXY")).toBe(`-mod=mod\n${theirs}`);
  });

  it("is as it was once the registry is deleted", async () => {
    const before = await (await configure(null))("go", "env", "GOPROXY");
    await configure("go");
    expect(await (await configure(null))("go", "env", "GOPROXY")).toBe(before);
  });
});

it.skipIf(!isInstalled("nuget", "help"))("NuGet has a setup's sources beside ours", async () => {
  const source = `<configuration><packageSources><add key="own" value="${theirs}" /></packageSources></configuration>`;
  await write(".config/NuGet/NuGet.Config", source);
  const run = await configure("nuget");
  const listed = await run("nuget", "sources", "list");
  expect(listed).toContain(theirs);
  expect(listed).toContain(ours);
});

describe.skipIf(!isInstalled("gem", "--version"))("gem", () => {
  it("keeps a setup's own settings, and installs from our registry beside them", async () => {
    await write(".gemrc", ":backtrace: true\n");
    const run = await configure("rubygems");
    expect(await run("gem", "sources")).toContain(ours);
    expect(await run("gem", "env")).toContain(":backtrace => true");
  });

  it.each([".gemrc", ".config/gem/gemrc"])("takes the sources of %s, written before or after ours", async (path) => {
    const run = await configure("rubygems");
    await write(path, `:sources:\n- ${theirs}\n`);
    expect(await run("gem", "sources")).toContain(theirs);
    expect(await (await configure("rubygems"))("gem", "sources")).not.toContain(ours);
  });
});

describe.skipIf(!isInstalled("bundle", "--version"))("Bundler", () => {
  it("has a setup's own settings, and our mirror beside them", async () => {
    await (
      await configure(null)
    )("bundle", "config", "set", "--global", "retry", "7");
    const run = await configure("rubygems");
    expect(await run("bundle", "config", "get", "retry")).toContain("7");
    expect(await mirrorOf(run)).toBe(ours);
    await run("bundle", "config", "set", "--global", "jobs", "3");
    expect(await (await configure("rubygems"))("bundle", "config", "get", "jobs")).toContain("3");
  });

  it("asks the mirror that a setup named", async () => {
    const run = await configure("rubygems");
    await run("bundle", "config", "set", "--global", "mirror.https://rubygems.org", theirs);
    expect(await mirrorOf(run)).toBe(theirs);
  });

  const mirrorOf = (run: (...words: string[]) => Promise<string>) =>
    run("ruby", "-e", 'require "bundler"; puts Bundler.settings.mirror_for("https://rubygems.org/")');
});
