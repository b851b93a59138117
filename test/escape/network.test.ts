import { execFile } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { createServer as createSocketServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "../../src/client.ts";
import type { SessionEvent } from "../../src/domain/sessions/event.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { inOneLine, script } from "../end-to-end/script.ts";
import { marked } from "../sandboxes/did-run.ts";
import { waitFor } from "../wait-for.ts";
import { createWorld, modelKey, startInProcess, untilOver, type World } from "../world.ts";

/** What a command of an agent may try on the world around its sandbox. Each attempt is made by a real session. */
let world: World;
let offstage: Offstage;
let client: Client;
let host: Server;
let hostAddress: string;
const visits: string[] = [];

beforeAll(async () => {
  world = await createWorld(script);
  ({ offstage, client } = await startInProcess(world, { OFFSTAGE_DEFAULT_AGENT: "basic:scripted" }));
  host = createServer((request, response) => {
    visits.push(request.url ?? "");
    response.end("reached");
  });
  await new Promise<void>((resolve) => host.listen(0, "127.0.0.1", resolve));
  hostAddress = `127.0.0.1:${(host.address() as AddressInfo).port}`;
});

afterAll(async () => {
  host?.close();
  await offstage?.stop();
  await world?.close();
});

interface Attempt {
  readonly id: string;
  /** What the commands printed, and how they ended. */
  readonly output: string;
  readonly events: readonly SessionEvent[];
}

/** @throws DidNotRunError if no shell of the session's ran it to its end */
async function attempt(command: string, repositories: readonly string[] = []): Promise<Attempt> {
  const { script: wrapped, read } = marked(command);
  const prompt = `shell ${inOneLine(wrapped)}`;
  const { id } = await client.session.create({ prompt, repositories: [...repositories] });
  await untilOver(client, id);
  const seen = await look(id);
  return { ...seen, output: read(seen.output) };
}

async function look(id: string): Promise<Attempt> {
  const { events } = await client.session.events(id, { limit: 1_000 });
  const output = events.flatMap((event) =>
    event.type === "agent.tool" && event.data.status !== "in_progress" ? event.data.content : [],
  );
  return { id, events, output: output.map((content) => (content.type === "text" ? content.text : "")).join("\n") };
}

/** The same commands with no sandbox around them: the control of an attempt. @returns what they printed */
async function outside(command: string, options: { cwd?: string; env?: Record<string, string> } = {}): Promise<string> {
  const ran = await promisify(execFile)("sh", ["-c", command], {
    cwd: options.cwd ?? "/",
    env: { PATH: process.env["PATH"] ?? "", ...options.env },
    maxBuffer: 2 ** 26,
  });
  return `${ran.stdout}${ran.stderr}`;
}

const refusals = ({ events }: Attempt) =>
  events.flatMap((event) => (event.type === "egress.refused" ? [event.data] : []));

/** Each prints `open` only where it got through. */
const node = (code: string): string => `node -e ${JSON.stringify(code.replaceAll("\n", " "))}`;
const reach = (port: string, address: string): string =>
  node(
    `const s=require('net').connect(${port},'${address}');s.on('connect',()=>{console.log('op'+'en');process.exit()});s.on('error',(e)=>{console.log(e.code);process.exit()});setTimeout(()=>process.exit(),3000)`,
  );

describe("the network", () => {
  test("has no interface but loopback", async () => {
    const { output } = await attempt(node("console.log(Object.keys(require('os').networkInterfaces()).join())"));
    expect(output.split("\n")[0]).toBe("lo");
  });

  test.each([
    ["the host's own services", () => reach(hostAddress.split(":")[1] ?? "", "127.0.0.1"), "open"],
    ["the model's server itself", () => reach(new URL(world.model.url).port, "127.0.0.1"), "open"],
    ["the forge", () => reach(new URL(world.forge.url).port, "127.0.0.1"), "open"],
    ["the API", () => reach(new URL(offstage.url).port, "127.0.0.1"), "open"],
    // Whether these can be reached outside is the machine's affair.
    ["a public address", () => reach("443", "1.1.1.1"), null],
    ["the metadata of clouds", () => reach("80", "169.254.169.254"), null],
    ["a public IPv6 address", () => reach("443", "2606:4700::1111"), null],
  ])("does not lead past the gateway to %s", async (_, command, withoutSandbox) => {
    const { output } = await attempt(command());
    expect(output).not.toContain("open");
    // It was refused, and not only late.
    expect(output).toMatch(/ECONNREFUSED|ENETUNREACH|EADDRNOTAVAIL|EHOSTUNREACH/u);
    expect(visits).toEqual([]);
    expect(withoutSandbox === null ? "" : await outside(command())).toContain(withoutSandbox ?? "");
  });

  test("answers no name of its own", async () => {
    const { output } = await attempt(
      node(
        "require('dns').lookup('example.com',(e,a)=>console.log(e?e.code:'op'+'en'));new (require('dns').Resolver)().resolve4('example.com',(e)=>console.log(e?e.code:'op'+'en'))",
      ),
    );
    expect(output).not.toContain("open");
  });

  test("carries no UDP to the host, nor questions to its name server", async () => {
    const heard: string[] = [];
    const listener = createSocket("udp4", (datagram) => heard.push(datagram.toString("latin1")));
    listener.bind(0, "127.0.0.1");
    await once(listener, "listening");
    const { port } = listener.address();
    const tell = (who: string): string =>
      node(
        `const d=require('dgram').createSocket('udp4');d.send('from ${who}',${port},'127.0.0.1',()=>d.close());const r=new (require('dns').Resolver)({timeout:500,tries:1});r.setServers(['127.0.0.1:${port}']);r.resolve4('${who}.example',(e)=>console.log(e.code))`,
      );
    try {
      await attempt(tell("inside"));
      await outside(tell("outside"));
      await waitFor(() => heard.length >= 2, "what is sent outside is heard");
      expect(heard.filter((words) => words.includes("inside"))).toEqual([]);
      expect(heard).toContain("from outside");
    } finally {
      listener.close();
    }
  });

  test.each([
    ["by its path", () => join(world.data, "a-service.sock")],
    ["by an abstract name", () => `\0offstage-escape-${process.pid}`],
  ])("carries nothing to a unix socket of the host, %s", async (_, path) => {
    const service = createSocketServer((connection) => connection.end());
    await new Promise<void>((resolve) => service.listen(path(), resolve));
    if (!path().startsWith("\0")) await chmod(path(), 0o666);
    const written = path().replace("\0", "'+String.fromCharCode(0)+'");
    const connect = node(
      `const s=require('net').connect('${written}');s.on('connect',()=>{console.log('op'+'en');process.exit()});s.on('error',(e)=>console.log(e.code))`,
    );
    try {
      const { output } = await attempt(connect);
      expect(output).not.toContain("open");
      expect(output).toMatch(/ENOENT|EACCES|ECONNREFUSED/u);
      expect(await outside(connect)).toContain("open");
    } finally {
      service.close();
    }
  });

  test("carries no UDP away", async () => {
    const { output } = await attempt(
      node(
        "const d=require('dgram').createSocket('udp4');d.send('x',53,'1.1.1.1',(e)=>{console.log(e?e.code:'op'+'en');process.exit()})",
      ),
    );
    expect(output).toContain("ENETUNREACH");
  });

  test("refuses a host that is not allowed, reports it once, and lets it through once it is allowed for the repository", async () => {
    const { url } = await world.forge.createRepository("acme", "egress", { "a.txt": "a\n" });
    const { script: wrapped, read } = marked(
      `for i in 1 2 3; do curl -s --noproxy '' http://${hostAddress}/hello; done; curl -s -o /dev/null https://example.com; true`,
    );
    const fetchHost = `shell ${inOneLine(wrapped)}`;
    const { id } = await client.session.create({ prompt: fetchHost, repositories: [url] });
    const session = await untilOver(client, id);
    const before = await look(id);
    expect(read(before.output)).not.toContain("reached");
    expect(visits).toEqual([]);
    const [name, port] = hostAddress.split(":");
    expect(refusals(before)).toEqual([
      { host: name, port: Number(port), reason: "not allowed" },
      { host: "example.com", port: 443, reason: "not allowed" },
    ]);

    await client.repository.allow(session.repositories[0]?.id ?? "", hostAddress);
    await client.session.message(id, { message: fetchHost });
    await untilOver(client, id);
    expect((await look(id)).output).toContain("reached");
    expect(visits).toHaveLength(3);
    visits.length = 0;
  });

  test("refuses the gateway's models without a token of this session", async () => {
    const tries = ["messages", "models", "organizations/api_keys"].map(
      (path) =>
        `curl -s -o /dev/null -w '%{http_code} ' -H 'x-api-key: forged' $HTTP_PROXY/model/compatible/v1/${path}`,
    );
    const { output } = await attempt(tries.join("; "));
    expect(output).toContain("401 401 401");
  });
});

describe("credentials", () => {
  test("are in no environment, argument, file or process that a command can see", async () => {
    // Without packages: if the clone is below /tmp, the test runner keeps this very file among them.
    const search = (places: string): string =>
      `env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; find ${places} -name node_modules -prune -o -type f -size -200k -print 2>/dev/null | xargs grep -h -s -e ${modelKey.slice(0, 12)} -e ${world.forge.token.slice(0, 20)}; true`;
    const { output } = await attempt(search(`$HOME /tmp /run /etc ${world.data}`));
    expect(output).toContain("OFFSTAGE_PROCESS");
    expect(output).not.toContain(modelKey);
    expect(output).not.toContain(world.forge.token);
    expect(output).not.toContain("[secret]");
    expect(output).not.toContain("DATABASE_URL");
    // The control: the same commands find them in a variable and in a file.
    const place = await mkdtemp(join(tmpdir(), "offstage-found-"));
    await writeFile(join(place, "token"), world.forge.token);
    const found = await outside(search(place), { env: { KEY: modelKey } });
    await rm(place, { recursive: true });
    expect(found).toContain(modelKey);
    expect(found).toContain(world.forge.token);
  });

  test("of git are not to be had by asking", async () => {
    const { url } = await world.forge.createRepository("acme", "git-asks", { "a.txt": "a\n" });
    const ask =
      "printf 'protocol=http\\nhost=127.0.0.1\\n\\n' | GIT_TERMINAL_PROMPT=0 git credential fill; git config --list --show-origin; GIT_TERMINAL_PROMPT=0 git fetch origin; git push origin HEAD:refs/heads/stolen; true";
    const isStolen = (name: string): Promise<boolean> =>
      outside("git rev-parse --verify --quiet refs/heads/stolen", { cwd: world.forge.pathOf("acme", name) }).then(
        () => true,
        () => false,
      );
    const { output } = await attempt(ask, [url]);
    expect(output).not.toContain(world.forge.token);
    expect(await isStolen("git-asks")).toBe(false);
    expect(await world.forge.pullRequests("acme", "git-asks")).toEqual([]);

    // The control: if git has the token, the same commands get it and push.
    const { url: open } = await world.forge.createRepository("acme", "git-gives", { "a.txt": "a\n" });
    const clone = await mkdtemp(join(tmpdir(), "offstage-gives-"));
    const helper = `!f() { echo username=x; echo password=${world.forge.token}; }; f`;
    await promisify(execFile)("git", ["-c", `credential.helper=${helper}`, "clone", "--quiet", open, clone]);
    await promisify(execFile)("git", ["-C", clone, "config", "credential.helper", helper]);
    expect(await outside(ask, { cwd: clone, env: { HOME: clone } })).toContain(world.forge.token);
    await rm(clone, { recursive: true });
    expect(await isStolen("git-gives")).toBe(true);
  });

  test("a session's token dies with its turn", async () => {
    const { output } = await attempt(
      "t=$(cat /proc/*/environ | tr '\\0' '\\n' | grep -o 'offstage-session-[A-Za-z0-9_-]*' | head -1); echo \"$t\"; curl -s -o /dev/null -w 'alive: %{http_code}' -H \"Authorization: Bearer $t\" $HTTP_PROXY/model/compatible/v1/models",
    );
    const token = /offstage-session-[\w-]+/u.exec(output)?.[0] ?? "";
    expect(token).not.toBe("");
    expect(output).toMatch(/alive: (?!401|000)\d{3}/u);
    const later = await attempt(
      `curl -s -o /dev/null -w '%{http_code}' -H 'Authorization: Bearer ${token}' $HTTP_PROXY/model/compatible/v1/models`,
    );
    expect(later.output).toContain("401");
  });
});
