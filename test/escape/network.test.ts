import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "../../src/client.ts";
import type { SessionEvent } from "../../src/domain/sessions/event.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { inOneLine, script } from "../end-to-end/script.ts";
import { marked } from "../sandboxes/did-run.ts";
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
    ["the host's own services", () => reach(hostAddress.split(":")[1] ?? "", "127.0.0.1")],
    ["the model's server itself", () => reach(new URL(world.model.url).port, "127.0.0.1")],
    ["the forge", () => reach(new URL(world.forge.url).port, "127.0.0.1")],
    ["the API", () => reach(new URL(offstage.url).port, "127.0.0.1")],
    ["a public address", () => reach("443", "1.1.1.1")],
    ["the metadata of clouds", () => reach("80", "169.254.169.254")],
    ["a public IPv6 address", () => reach("443", "2606:4700::1111")],
  ])("does not lead past the gateway to %s", async (_, command) => {
    const { output } = await attempt(command());
    expect(output).not.toContain("open");
    expect(visits).toEqual([]);
  });

  test("answers no name of its own", async () => {
    const { output } = await attempt(
      node(
        "require('dns').lookup('example.com',(e,a)=>console.log(e?e.code:'op'+'en'));new (require('dns').Resolver)().resolve4('example.com',(e)=>console.log(e?e.code:'op'+'en'))",
      ),
    );
    expect(output).not.toContain("open");
  });

  test.each([
    [
      "UDP",
      "const d=require('dgram').createSocket('udp4');d.send('x',53,'1.1.1.1',(e)=>{console.log(e?e.code:'op'+'en');process.exit()})",
    ],
    [
      "the host's unix sockets",
      "const s=require('net').connect('/var/run/docker.sock');s.on('connect',()=>console.log('op'+'en'));s.on('error',(e)=>console.log(e.code))",
    ],
  ])("carries no %s", async (_, code) => {
    expect((await attempt(node(code))).output).not.toContain("open");
  });

  test("refuses a host that is not allowed, tells of it once, and lets it through once it is allowed for the repository", async () => {
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

  test("refuses the gateway's models to whoever has no token of this session", async () => {
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
    const { output } = await attempt(
      `env; cat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'; find $HOME /tmp /run /etc ${world.data} -type f -size -200k 2>/dev/null | xargs grep -l -s -e ${modelKey.slice(0, 12)} -e ${world.forge.token.slice(0, 20)}; true`,
    );
    expect(output).toContain("OFFSTAGE_PROCESS");
    expect(output).not.toContain(modelKey);
    expect(output).not.toContain(world.forge.token);
    expect(output).not.toContain("[secret]");
    expect(output).not.toContain("DATABASE_URL");
  });

  test("of git are not to be had by asking", async () => {
    const { url } = await world.forge.createRepository("acme", "git-asks", { "a.txt": "a\n" });
    const { output } = await attempt(
      "printf 'protocol=http\\nhost=127.0.0.1\\n\\n' | GIT_TERMINAL_PROMPT=0 git credential fill; git config --list --show-origin; GIT_TERMINAL_PROMPT=0 git fetch origin; git push origin HEAD:refs/heads/stolen; true",
      [url],
    );
    expect(output).not.toContain(world.forge.token);
    expect(output).not.toContain("stolen ->");
    expect(await world.forge.pullRequests("acme", "git-asks")).toEqual([]);
  });

  test("a session's token dies with its turn", async () => {
    const { output } = await attempt(
      "cat /proc/*/environ | tr '\\0' '\\n' | grep -o 'offstage-session-[A-Za-z0-9_-]*' | head -1",
    );
    const token = /offstage-session-[\w-]+/u.exec(output)?.[0] ?? "";
    expect(token).not.toBe("");
    const later = await attempt(
      `curl -s -o /dev/null -w '%{http_code}' -H 'Authorization: Bearer ${token}' $HTTP_PROXY/model/compatible/v1/models`,
    );
    expect(later.output).toContain("401");
  });
});
