import { execFile, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { connect, type AddressInfo } from "node:net";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { connect as connectTls } from "node:tls";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { fileAddressesOf, registryFolder } from "../../src/domain/environments/registry.ts";
import { openGateway, type LocalGateway } from "../../src/gateway/gateway.ts";
import { useProcessWide } from "../../src/outbound/process-wide.ts";
import type { HomeFiles } from "../../src/worker/sandboxed/harness-files.ts";
import { startCompany, type Company } from "../outbound/company.ts";
import { zip } from "./archive.ts";
import { nugetPackage } from "./private-packages.ts";
import { throughGateway, writeHomeFiles } from "./through-gateway.ts";

let company: Company;
let upstream: Server;
let home: string;
let gateway: LocalGateway;
let restore: () => void;
const seen: { method: string | undefined; url: string | undefined; headers: IncomingMessage["headers"] }[] = [];

const authorization = "Basic d29ya2VyOnRoZSB0b2tlbg==";
const registries = [
  { id: "python", kind: "pypi", url: "https://packages.company.test/pypi/simple/", scope: null, username: "worker" },
  { id: "rust", kind: "cargo", url: "https://packages.company.test/cargo/", scope: null, username: "worker" },
  { id: "java", kind: "maven", url: "https://packages.company.test/maven/", scope: null, username: "worker" },
  {
    id: "dotnet",
    kind: "nuget",
    url: "https://packages.company.test/nuget/index.json",
    scope: null,
    username: "worker",
  },
] as const;

/** Its index names addresses elsewhere at its host, as Azure Artifacts does. */
const nuget = nugetPackage(
  "https://packages.company.test/a1b2/nuget/",
  "Members.Only",
  "1.0.0",
  "what only members know",
);

/** A wheel of one module. */
const wheel = zip([
  ["members_only.py", "word = 'what only members know'\n"],
  ["members_only-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: members-only\nVersion: 1.0\n"],
  [
    "members_only-1.0.dist-info/WHEEL",
    "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
  ],
  ["members_only-1.0.dist-info/RECORD", ""],
]);

const parentPath = "/maven/org/acme/members/1/members-1.pom";
const parentPom =
  "<project><modelVersion>4.0.0</modelVersion><groupId>org.acme</groupId><artifactId>members</artifactId><version>1</version><packaging>pom</packaging></project>";

/** A crate of one function, as a compressed archive of its folder. */
let crate: Buffer;

async function packCrate(): Promise<Buffer> {
  const place = join(home, "crate/members-only-1.0.0");
  await mkdir(join(place, "src"), { recursive: true });
  await writeFile(join(place, "Cargo.toml"), '[package]\nname = "members-only"\nversion = "1.0.0"\nedition = "2021"\n');
  await writeFile(join(place, "src/lib.rs"), 'pub const WORD: &str = "what only members know";\n');
  const packing = ["-cz", "-C", join(home, "crate"), "members-only-1.0.0"];
  return (await promisify(execFile)("tar", packing, { encoding: "buffer" })).stdout;
}

/** The address of crates in the index: beside it, as Artifactory has them. */
let crates = "https://packages.company.test/artifacts/crates";

/** A sparse index of one crate, which asks for a token (https://doc.rust-lang.org/cargo/reference/registry-index.html). */
function serveCrates(url: string, response: ServerResponse): void {
  if (url === "/cargo/config.json") response.end(JSON.stringify({ dl: crates, "auth-required": true }));
  else if (url === "/cargo/me/mb/members-only") {
    const cksum = createHash("sha256").update(crate).digest("hex");
    const version = { name: "members-only", vers: "1.0.0", deps: [], cksum, features: {}, yanked: false };
    response.end(`${JSON.stringify(version)}\n`);
  } else if (url === "/artifacts/crates/members-only/1.0.0/download") response.end(crate);
  else response.writeHead(404).end();
}

beforeAll(async () => {
  company = await startCompany();
  home = await mkdtemp(join(tmpdir(), "offstage-registries-"));
  crate = await packCrate();
  upstream = createServer((incoming, response) => {
    const { method, url = "", headers } = incoming;
    seen.push({ method, url, headers });
    incoming.resume();
    if (url.startsWith("/open/")) return response.end("open to all");
    if (headers.authorization !== authorization) return response.writeHead(401).end("who are you?");
    if (url === "/pypi/simple/moved") return response.writeHead(302, { location: "https://cdn.company.test/x" }).end();
    if (url === "/pypi/simple/members-only/")
      return response
        .writeHead(200, { "content-type": "text/html" })
        .end('<a href="../../files/members_only-1.0-py3-none-any.whl">x</a>');
    if (/^\/(?:cargo|artifacts)\//u.test(url)) return serveCrates(url, response);
    const ofNuGet = nuget.get(url === "/nuget/index.json" ? "/index.json" : url.replace(/^\/a1b2\/nuget/u, ""));
    if (ofNuGet !== undefined) return response.end(ofNuGet);
    if (url === parentPath) return response.end(parentPom);
    if (url === `${parentPath}.sha1`) return response.end(createHash("sha1").update(parentPom).digest("hex"));
    if (url.endsWith(".whl")) return response.end(wheel);
    return response
      .writeHead(200, { "set-cookie": "session=as good as the token", "x-served": url })
      .end(`served ${url}`);
  });
  await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
  await company.serve("packages.company.test", url);
  await company.serve("cdn.company.test", url);
  const proxies = { http: null, https: company.proxy, direct: [] };
  restore = useProcessWide({ proxies: { ...proxies, https: null }, authorities: [company.authority.certificate] }, []);
  gateway = await openGateway({
    directory: home,
    models: {},
    egress: { open: false, rules: [] },
    onRefused: () => undefined,
    proxies,
    registries: [
      ...registries.map(({ id, kind, url: at }) => ({
        id,
        url: registryFolder(at),
        also: fileAddressesOf(kind, at),
        namesFiles: kind === "cargo" || kind === "nuget",
        authorization,
        scope: null,
        mayBePrivate: false,
      })),
      {
        id: "gitlab",
        url: "https://packages.company.test/gitlab/api/v4/packages/npm/",
        also: fileAddressesOf("npm", "https://packages.company.test/gitlab/api/v4/packages/npm/"),
        authorization,
        scope: "@c",
        mayBePrivate: false,
      },
      ...["a", "b"].map((owner) => ({
        id: owner,
        url: "https://packages.company.test/npm/",
        authorization: `Bearer of ${owner}`,
        scope: `@${owner}`,
        mayBePrivate: false,
      })),
      { id: "inside", url: "https://10.1.2.3/npm/", authorization, scope: null, mayBePrivate: false },
    ],
    authorities: [company.authority.certificate],
  });
});

beforeEach(() => void (seen.length = 0));

afterAll(async () => {
  restore?.();
  await gateway?.close();
  upstream?.closeAllConnections();
  upstream?.close();
  await company?.close();
  await rm(home, { recursive: true, force: true });
});

/** A request from a sandbox, inside of the tunnel to a host. */
async function ask(
  path: string,
  options: { host?: string; named?: string; method?: string; headers?: Record<string, string>; body?: string } = {},
) {
  const { host = "packages.company.test", named = host, method = "GET", headers = {}, body } = options;
  const raw = connect(gateway.socket);
  raw.write(`CONNECT ${host}:443 HTTP/1.1\r\nHost: ${host}:443\r\n\r\n`);
  const line = await new Promise<string>((resolve) => raw.once("data", (chunk: Buffer) => resolve(chunk.toString())));
  if (!line.includes(" 200 ")) {
    raw.destroy();
    return { status: Number(line.split(" ")[1]), headers: {}, body: "" };
  }
  const socket = connectTls({
    socket: raw,
    ...(host === "10.1.2.3" ? {} : { servername: host }),
    ca: readFileSync(gateway.authoritiesFile ?? "", "utf8"),
    ...(host === "10.1.2.3" && { host }),
  });
  return new Promise<{ status: number; headers: IncomingMessage["headers"]; body: string }>((resolve, reject) => {
    const sent = request(
      { createConnection: () => socket, method, path, headers: { host: named, ...headers } },
      (answer) => {
        text(answer).then(
          (words) => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: words }),
          reject,
        );
      },
    );
    sent.once("error", reject).end(body);
  });
}

it("adds the credential below the registry's address, in the place of the sandbox's own, and keeps cookies", async () => {
  const answer = await ask("/pypi/simple/x?y=1", {
    headers: { authorization: "Bearer mine", cookie: "a=b", "x-more": "c" },
  });
  expect(answer).toMatchObject({ status: 200, body: "served /pypi/simple/x?y=1" });
  expect(answer.headers).not.toHaveProperty("set-cookie");
  expect(seen).toMatchObject([
    { url: "/pypi/simple/x?y=1", headers: { authorization, host: "packages.company.test", "x-more": "c" } },
  ]);
  expect(seen[0]?.headers).not.toHaveProperty("cookie");
});

it("adds the credential of the scope, if registries of several have one address", async () => {
  // The last is where GitHub has its archives.
  for (const path of ["/npm/@a%2fx", "/npm/@b%2Fx", "/npm/@b/x/-/x-1.0.0.tgz", "/npm/download/@b/x/1.0.0/0a1b"])
    await ask(path);
  expect(seen.map(({ headers }) => headers.authorization?.slice(-1))).toEqual(["a", "b", "b", "b"]);
});

it("adds it to the archives of GitLab's projects, which an address of the whole instance names, and to nothing else there", async () => {
  expect(await ask("/gitlab/api/v4/projects/12/packages/npm/@c/x/-/@c/x-1.0.0.tgz")).toMatchObject({ status: 200 });
  expect(seen.map(({ headers }) => headers.authorization)).toEqual([authorization]);
  for (const path of [
    "projects/12/repository/files/a",
    "projects/1/2/packages/npm/x",
    "projects//packages/npm/x",
    "user",
  ])
    expect((await ask(`/gitlab/api/v4/${path}`)).status).toBe(403);
  expect(seen).toHaveLength(1);
});

it("adds it where Cargo's index says that crates are, at its own host, once it has said so", async () => {
  const path = "/artifacts/crates/members-only/1.0.0/download";
  const config = () =>
    ask("/cargo/config.json", { headers: { "if-none-match": '"known"', "accept-encoding": "gzip" } });
  expect((await ask(path)).status).toBe(403);
  expect(await config()).toMatchObject({ status: 200 });
  expect((await ask(path)).status).toBe(200);
  expect(seen.map(({ url }) => url)).toEqual(["/cargo/config.json", path]);
  expect(seen[0]?.headers).not.toHaveProperty("if-none-match");
  for (const elsewhere of ["https://cdn.company.test/crates", "http://packages.company.test/other", "../other"]) {
    crates = elsewhere;
    await config();
    expect((await ask("/other/x")).status).toBe(403);
    expect((await ask("/crates/x", { host: "cdn.company.test" })).status).toBe(403);
  }
  crates = "https://packages.company.test/artifacts/crates/{crate}/{version}/download";
  await config();
  expect((await ask(path)).status).toBe(200);
});

it("adds it where NuGet's index says that packages are, once it has said so", async () => {
  const versions = "/a1b2/nuget/flat/members.only/index.json";
  expect((await ask(versions)).status).toBe(403);
  expect((await ask("/nuget/index.json")).status).toBe(200);
  expect(await ask(versions)).toMatchObject({ status: 200, body: '{"versions":["1.0.0"]}' });
  expect((await ask("/a1b2/nuget/registration/members.only/index.json")).status).toBe(200);
  expect((await ask("/a1b2/nuget/other")).status).toBe(403);
});

it.each([
  "/admin",
  "/pypiother/x",
  "/pypi/simple/../../admin",
  "/pypi/simple/%2e%2e/%2e%2e/admin",
  "/pypi/simple/%252e%252e/admin",
  "/pypi/simple/..%2f..%2fadmin",
  "/pypi/simple/..;/admin",
])("sends no credential to %s", async (path) => {
  const { status } = await ask(path);
  expect([400, 403]).toContain(status);
  expect(seen).toEqual([]);
});

it.each(["PUT", "POST", "DELETE", "PATCH"])("passes on no %s", async (method) => {
  const answer = await ask("/pypi/simple/x", { method, body: "{}" });
  expect(answer.status).toBe(403);
  expect(answer.body).toContain("a sandbox can read from this registry");
  expect(seen).toEqual([]);
});

it("serves no other host in a registry's tunnel, nor a registry at a private address that no operator named", async () => {
  expect((await ask("/pypi/simple/x", { named: "cdn.company.test" })).status).toBe(421);
  expect((await ask("/npm/x", { host: "10.1.2.3" })).status).toBe(403);
  expect(seen).toEqual([]);
  expect(company.asked.join(" ")).not.toContain("10.1.2.3");
});

it("hands a redirect to the sandbox, which gets no credential elsewhere, and is let nowhere by it", async () => {
  const moved = await ask("/pypi/simple/moved");
  expect(moved).toMatchObject({ status: 302, headers: { location: "https://cdn.company.test/x" } });
  expect((await ask("/x", { host: "cdn.company.test" })).status).toBe(403);
  expect(seen.map(({ url }) => url)).toEqual(["/pypi/simple/moved"]);
});

it("serves Maven on loopback, by the session's token alone", async () => {
  const get = (path: string) =>
    new Promise<string>((resolve, reject) => {
      request(
        { socketPath: gateway.socket, path },
        (answer) => void text(answer).then((body) => resolve(`${answer.statusCode} ${body}`), reject),
      )
        .once("error", reject)
        .end();
    });
  const base = new URL(gateway.registryAt("http://127.0.0.1", "java")).pathname;
  expect(await get(`${base}org/acme/a.pom`)).toBe("200 served /maven/org/acme/a.pom");
  expect(await get(base.replace(gateway.token, "another"))).toMatch(/^404/u);
  expect(await get(`${base}../other`)).toMatch(/^40[03]/u);
});

const writeSettings = (files: HomeFiles): Promise<void> => writeHomeFiles(home, files);

const hasPip = spawnSync("python3", ["-m", "pip", "--version"]).status === 0;
if (!hasPip) console.warn("pip is not tested: it is not installed");

it.skipIf(!hasPip)("installs with pip itself", async () => {
  const tools = await throughGateway(gateway, registries, home);
  await writeSettings(tools.files);
  const target = join(home, "installed");
  const pip = (env: Record<string, string>) =>
    promisify(execFile)(
      "python3",
      [
        "-m",
        "pip",
        "install",
        "--no-cache-dir",
        "--disable-pip-version-check",
        "--retries",
        "0",
        "--target",
        target,
        "members-only",
      ],
      { env },
    );
  try {
    // The control: without the gateway the host is not even known.
    const { HTTPS_PROXY: _a, https_proxy: _b, ...alone } = tools.environment;
    await expect(pip(alone)).rejects.toThrow("members-only");
    await pip(tools.environment);
    const { stdout } = await promisify(execFile)("python3", ["-c", "import members_only; print(members_only.word)"], {
      env: { ...tools.environment, PYTHONPATH: target },
    });
    expect(stdout.trim()).toBe("what only members know");
    expect(JSON.stringify(tools)).not.toContain(authorization.slice(6));
  } finally {
    tools.close();
  }
});

const hasCargo = spawnSync("cargo", ["--version"]).status === 0;
if (!hasCargo) console.warn("Cargo is not tested: it is not installed");

describe("Cargo's settings", () => {
  const own = "[net]\nretry = 0\n\n[build]\njobs = 1";
  const settings = (): Promise<string> => readFile(join(home, ".cargo/config.toml"), "utf8");
  beforeEach(async () => {
    await rm(join(home, ".cargo"), { recursive: true, force: true });
    await mkdir(join(home, ".cargo"));
  });

  it("of a setup stay, with ours below them, however often they are written", async () => {
    const { files, close } = await throughGateway(gateway, registries, home);
    close();
    await writeFile(join(home, ".cargo/config.toml"), own);
    await writeSettings(files);
    const once = await settings();
    expect(once.startsWith(`${own}\n`)).toBe(true);
    expect(once).toContain('registry = "sparse+https://packages.company.test/cargo/"');
    await writeSettings(files);
    expect(await settings()).toBe(once);
  });

  it.each([
    ["a table", '[source.crates-io]\nreplace-with = "mine"\n'],
    ["a quoted table", '[ source."crates-io" ]\nreplace-with = "mine"\n'],
    ["a dotted key", 'source.crates-io.replace-with = "mine"\n'],
  ])("of a setup that says where crates.io is, in %s, are left as they are", async (_, mine) => {
    const { files, close } = await throughGateway(gateway, registries, home);
    close();
    await writeFile(join(home, ".cargo/config.toml"), mine);
    await writeSettings(files);
    expect(await settings()).toBe(mine);
  });

  it.skipIf(!hasCargo)("let Cargo itself fetch a crate, beside those of a setup", async () => {
    const tools = await throughGateway(gateway, registries, home);
    const project = join(home, "project");
    await mkdir(join(project, "src"), { recursive: true });
    await writeFile(join(project, "src/lib.rs"), "");
    await writeFile(
      join(project, "Cargo.toml"),
      '[package]\nname = "project"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\nmembers-only = "1"\n',
    );
    await writeFile(join(home, ".cargo/config.toml"), own);
    await writeSettings(tools.files);
    // Rust's own launcher looks for its tools below the home.
    const installed = { RUSTUP_HOME: process.env["RUSTUP_HOME"] ?? join(homedir(), ".rustup") };
    const vendor = (environment: Record<string, string>) =>
      promisify(execFile)("cargo", ["vendor", "--respect-source-config"], {
        cwd: project,
        env: { ...environment, ...installed },
      });
    try {
      const { HTTPS_PROXY: _a, https_proxy: _b, ...alone } = tools.environment;
      await expect(vendor(alone)).rejects.toThrow("packages.company.test");
      await vendor(tools.environment);
      const source = await readFile(join(project, "vendor/members-only/src/lib.rs"), "utf8");
      expect(source).toContain("what only members know");
      // Every clone of the repository can use the lock file: it names the registries behind the gateway.
      expect(await readFile(join(project, "Cargo.lock"), "utf8")).toContain("crates.io-index");
    } finally {
      tools.close();
    }
  });
});

const hasMaven = spawnSync("mvn", ["--version"]).status === 0;
if (!hasMaven) console.warn("Maven is not tested: it is not installed");

it.skipIf(!hasMaven)("gives Maven itself a project's parent, with the settings that its arguments name", async () => {
  const tools = await throughGateway(gateway, registries, home);
  const project = await mkdtemp(join(home, "maven-"));
  const parent =
    "<parent><groupId>org.acme</groupId><artifactId>members</artifactId><version>1</version><relativePath/></parent>";
  await writeFile(
    join(project, "pom.xml"),
    `<project><modelVersion>4.0.0</modelVersion>${parent}<artifactId>project</artifactId><packaging>pom</packaging></project>`,
  );
  await writeSettings(tools.files);
  // As Maven 3.9 takes them from the variable itself.
  const named = (tools.environment["MAVEN_ARGS"] ?? "").split(" ");
  // Java takes the home from the system's list of users.
  const local = `-Dmaven.repo.local=${join(home, "maven-repository")}`;
  const { MAVEN_ARGS: _named, ...env } = tools.environment;
  const validate = (...settings: string[]) =>
    promisify(execFile)("mvn", ["--batch-mode", ...settings, local, "-U", "validate"], { cwd: project, env });
  try {
    // The control: Maven's own settings lead elsewhere.
    await expect(validate()).rejects.toMatchObject({
      stdout: expect.stringContaining("Non-resolvable parent POM") as string,
    });
    expect(seen).toEqual([]);
    await validate(...named);
    expect(seen.map(({ url }) => url)).toEqual([parentPath, `${parentPath}.sha1`]);
    expect(seen.map(({ headers }) => headers.authorization)).toEqual([authorization, authorization]);
  } finally {
    tools.close();
  }
});

const hasNuGet = spawnSync("nuget", ["help"]).status === 0;
if (!hasNuGet) console.warn("NuGet is not tested: it is not installed");

it.skipIf(!hasNuGet)("gives NuGet itself a package, with the additional settings of a person", async () => {
  const tools = await throughGateway(gateway, registries, home);
  const run = (env: Record<string, string>, command: string, ...words: string[]) =>
    promisify(execFile)(command, words, { cwd: home, env, timeout: 60_000 });
  await writeSettings(tools.files);
  const install = (env: Record<string, string>) =>
    run(
      env,
      "nuget",
      "install",
      "Members.Only",
      "-Source",
      "offstage",
      "-Version",
      "1.0.0",
      "-OutputDirectory",
      join(home, "nuget"),
    );
  const { HTTPS_PROXY: origin = "", https_proxy: _own, ...alone } = tools.environment;
  try {
    await expect(install(alone)).rejects.toThrow("nuget install");
    // Mono has a store of certificates of its own, and a proxy by another name: .NET has neither.
    await run(tools.environment, "cert-sync", "--user", tools.environment["SSL_CERT_FILE"] ?? "");
    await install({ ...tools.environment, http_proxy: origin });
    expect(await readFile(join(home, "nuget/Members.Only.1.0.0/content/word.txt"), "utf8")).toBe(
      "what only members know",
    );
  } finally {
    tools.close();
  }
});
