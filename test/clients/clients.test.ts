import { execFile, spawnSync } from "node:child_process";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { callExample } from "../../src/description/example.ts";
import { operationsOf, type Description, type Operation } from "../../src/description/operations.ts";
import { exampleLanguages, snippet } from "../../src/description/snippets.ts";
import { signedHeaders } from "../../src/worker/background/webhook-sender.ts";
import { createTestApp, type TestApp } from "../api/app.ts";

const root = join(import.meta.dirname, "../..");
const execute = promisify(execFile);
/** Whether the Python client can be tried here. */
const python = spawnSync("python3", ["-c", "import sys; sys.exit(sys.version_info < (3, 9))"]);
const hasPython = python.status === 0;

let api: TestApp;
let server: string;
/** A folder of a program that uses the published package. */
let folder: string;
let operations: Operation[];

beforeAll(async () => {
  api = await createTestApp({ heartbeatMs: 200 });
  server = await api.app.listen({ host: "127.0.0.1", port: 0 });
  operations = operationsOf((await api.get("/openapi.json")).body as Description);
  folder = await mkdtemp(join(tmpdir(), "offstage-client-"));
  await execute(process.execPath, [join(root, "scripts/build-clients.ts")], { cwd: root });
  const packed = await execute("npm", ["pack", "--json", "--pack-destination", folder], {
    cwd: join(root, "clients/typescript"),
  });
  const [{ filename }] = JSON.parse(packed.stdout) as [{ filename: string }];
  await writeFile(join(folder, "package.json"), JSON.stringify({ name: "user", private: true, type: "module" }));
  await execute("npm", ["install", "--no-audit", "--no-fund", `./${filename}`], { cwd: folder });
});
afterAll(async () => {
  await api?.close();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true });
});

const environment = (url: string = server) => ({
  ...process.env,
  OFFSTAGE_SERVER: url,
  OFFSTAGE_API_KEY: api.adminKey,
});

/** Runs a program that uses the package. @returns what it prints, as JSON */
async function used(program: string, url?: string): Promise<unknown> {
  const file = join(folder, "program.mjs");
  await writeFile(file, program);
  const { stdout } = await execute(process.execPath, [file], { cwd: folder, env: environment(url) });
  return JSON.parse(stdout);
}

async function usedByPython(program: string, url?: string): Promise<unknown> {
  const env = { ...environment(url), PYTHONPATH: join(root, "clients/python"), PYTHONDONTWRITEBYTECODE: "1" };
  const { stdout } = await execute("python3", ["-c", program], { env });
  return JSON.parse(stdout);
}

/** A server between a client and the API that loses some answers after the API has given them, also in their midst, and cuts some streams. */
async function losingServer(): Promise<{ url: string; lost: () => number; server: Server }> {
  let lost = 0;
  const seen = new Map<string, number>();
  const between = createServer((request, response) => void pass(request, response));
  async function pass(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await read(request);
    const times = (seen.get(`${request.method} ${request.url}`) ?? 0) + 1;
    seen.set(`${request.method} ${request.url}`, times);
    const answer = await fetch(`${server}${request.url}`, {
      method: request.method ?? "GET",
      headers: Object.fromEntries(
        Object.entries(request.headers).flatMap(([name, value]) =>
          typeof value === "string" && !/^(?:host|connection|content-length)$/u.test(name) ? [[name, value]] : [],
        ),
      ),
      ...(request.method === "POST" && { body }),
    });
    // What may not be sent twice is not healed by sending it again.
    if (times === 1 && request.url?.endsWith("/cancel") !== true) {
      lost += 1;
      // The first bytes of a stream arrive, nothing of another answer.
      if (answer.headers.get("content-type")?.startsWith("text/event-stream") === true) {
        const { value } = (await answer.body?.getReader().read()) ?? {};
        response.writeHead(200, { "content-type": "text/event-stream" }).write(value ?? "");
      }
      request.socket.destroy();
      return;
    }
    const type = { "content-type": answer.headers.get("content-type") ?? "" };
    if (times === 2 && answer.ok && type["content-type"].startsWith("application/json")) {
      lost += 1;
      const whole = Buffer.from(await answer.arrayBuffer());
      response.writeHead(200, { ...type, "content-length": whole.length });
      response.write(whole.subarray(0, 20), () => request.socket.destroy());
      return;
    }
    response.writeHead(answer.status, type);
    for await (const chunk of answer.body ?? []) response.write(chunk);
    response.end();
  }
  await new Promise<void>((resolve) => between.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${(between.address() as AddressInfo).port}`, lost: () => lost, server: between };
}

/** A server that is no Offstage. */
async function pageServer(): Promise<{ url: string; close(): void }> {
  const pages = createServer((_request, response) => void response.end("<html>"));
  await new Promise<void>((resolve) => pages.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${(pages.address() as AddressInfo).port}`, close: () => pages.close() };
}

/** Two statuses are asked for, and a page instead of an answer and instead of a stream. */
interface Asking {
  readonly statuses: readonly string[];
  readonly strange: unknown;
}
const strange = Array.from({ length: 2 }, () => [200, "the answer is none of Offstage's: check the server's address"]);

async function read(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

test("what is written from the API's description is as it would be written now", async () => {
  const { stderr } = await execute(process.execPath, [join(root, "scripts/build-clients.ts"), "--check"], {
    cwd: root,
  });
  expect(stderr).not.toContain("do not follow");
});

interface Heard {
  readonly session: { readonly id: string };
  readonly seen: readonly number[];
  readonly refused: unknown;
  readonly mine: readonly string[];
}

const works = `
  const session = await offstage.session.create({ prompt: "From a client", queueRightAway: false });
  await offstage.session.cancel(session.id);
  const seen = [];
  for await (const event of offstage.events(session.id)) seen.push(event.seq);
  const refused = await offstage.session.get("nothing").catch((error) => ({ status: error.status, message: error.message }));
`;

describe("the TypeScript client as it is published", () => {
  test("works in Node.js, installed in an empty folder", async () => {
    const all = await used(`
      import { createOffstage, everyItem } from "@offstage/client";
      const offstage = createOffstage();
      ${works}
      const mine = [];
      for await (const each of everyItem(offstage.session.list, { limit: 1 })) mine.push(each.id);
      console.log(JSON.stringify({ session, seen, refused, mine }));
    `);
    const { session, seen, refused, mine } = all as Heard;
    expect(session).toMatchObject({ title: "From a client", status: "draft" });
    expect(seen).toEqual([1, 2, 3]);
    expect(refused).toEqual({ status: 404, message: "session nothing was not found" });
    expect(mine).toContain(session.id);
  });

  test("heals a lost stream and a lost answer, and creates nothing twice", async () => {
    const { url, lost, server: between } = await losingServer();
    const { session, seen } = (await used(
      `import { createOffstage } from "@offstage/client"; const offstage = createOffstage();
      ${works} console.log(JSON.stringify({ session, seen }));`.replace("From a client", "Created once"),
      url,
    )) as { session: { id: string }; seen: number[] };
    between.close();
    expect(lost()).toBeGreaterThanOrEqual(3);
    expect(seen).toEqual([1, 2, 3]);
    const { body } = await api.get("/session/search?q=Created+once");
    expect((body.sessions as { id: string }[]).map(({ id }) => id)).toEqual([session.id]);
  });

  test("gives a list in the query several times, and knows what is no answer", async () => {
    for (const queueRightAway of [true, false])
      await api.post("/session/create", { prompt: "asked for", queueRightAway });
    const page = await pageServer();
    const { statuses, strange: reported } = (await used(`
      import { createOffstage } from "@offstage/client";
      const { sessions } = await createOffstage().session.list({ status: ["queued", "draft"], limit: 2 });
      const elsewhere = createOffstage({ server: "${page.url}" });
      const shown = (error) => [error.status, error.message];
      const strange = [await elsewhere.me.get().catch(shown), await elsewhere.events("x").next().catch(shown)];
      console.log(JSON.stringify({ statuses: sessions.map(({ status }) => status), strange }));
    `)) as Asking;
    page.close();
    expect([statuses, reported]).toEqual([["draft", "queued"], strange]);
  });

  test("tells a delivery that the server signed from another", async () => {
    const secret = `whsec_${Buffer.from("0123456789abcdef0123456789abcdef").toString("base64")}`;
    const body = JSON.stringify({ type: "session.completed", timestamp: "2026-01-01T00:00:00Z", data: { id: "x" } });
    const headers = signedHeaders("msg_1", Math.floor(Date.now() / 1_000), body, secret);
    const answer = await used(`
      import { verifyWebhook } from "@offstage/client";
      const [body, headers, secret] = ${JSON.stringify([body, headers, secret])};
      const bad = (given, other) => { try { verifyWebhook(given, other, secret); return "taken"; } catch (error) { return error.name; } };
      console.log(JSON.stringify([
        verifyWebhook(body, headers, secret).type,
        bad(body + " ", headers),
        bad(body, { ...headers, "webhook-timestamp": "1" }),
        bad(body, {}),
      ]));
    `);
    expect(answer).toEqual(["session.completed", ...Array.from({ length: 3 }, () => "WebhookVerificationError")]);
  });

  test("has types that a strict program can use, and refuses what the API would refuse", async () => {
    const program = `
      import { createOffstage, everyItem, type SessionEvent, type SessionGetAnswer } from "@offstage/client";
      const offstage = createOffstage({ server: "https://a.example", key: "ofs_x" });
      export async function run(): Promise<SessionGetAnswer[]> {
        const { id } = await offstage.session.create({ prompt: "x", repositories: ["https://git.example/a/b"] }, { idempotencyKey: "k" });
        for await (const event of offstage.events(id, { after: 3 })) text(event);
        const all: SessionGetAnswer[] = [];
        for await (const session of everyItem(offstage.session.list, { status: "running" })) all.push(session);
        // @ts-expect-error -- no such status
        await offstage.session.list({ status: "asleep" });
        // @ts-expect-error -- a message is needed
        await offstage.session.message(id, {});
        return all;
      }
      function text(event: SessionEvent): string {
        return event.type === "agent.message" ? event.data.text : event.createdAt;
      }
    `;
    await writeFile(join(folder, "typed.ts"), program);
    const options = {
      strict: true,
      module: "nodenext",
      target: "es2023",
      noEmit: true,
      types: [],
      // The package that verifies webhooks names Node's types in its own.
      skipLibCheck: true,
      lib: ["es2023", "dom", "dom.asynciterable"],
    };
    await writeFile(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions: options, include: ["typed.ts"] }));
    const checked = await execute(join(root, "node_modules/.bin/tsc"), ["-p", folder]).catch(
      (error: { stdout: string }) => error,
    );
    expect(checked.stdout).toBe("");
  });

  test("works when a bundler made one file of it", async () => {
    await writeFile(
      join(folder, "bundled.js"),
      `import { createOffstage } from "@offstage/client"; const offstage = createOffstage(); ${works} console.log(JSON.stringify({ seen, refused }));`,
    );
    const { build } = await import("vite");
    await build({
      root: folder,
      logLevel: "silent",
      build: { lib: { entry: "bundled.js", formats: ["es"], fileName: "bundle" }, outDir: "bundle", target: "es2023" },
    });
    const alone = await mkdtemp(join(tmpdir(), "offstage-bundle-"));
    await cp(join(folder, "bundle/bundle.js"), join(alone, "bundle.mjs"));
    const { stdout } = await execute(process.execPath, [join(alone, "bundle.mjs")], { cwd: alone, env: environment() });
    await rm(alone, { recursive: true, force: true });
    expect(JSON.parse(stdout)).toMatchObject({ seen: [1, 2, 3], refused: { status: 404 } });
  });
});

describe.skipIf(!hasPython)("the Python client (skipped where there is no Python 3.9)", () => {
  const worksInPython = `
import json
from offstage import Offstage, OffstageError, every_item
offstage = Offstage()
session = offstage.session.create({"prompt": "From Python", "queueRightAway": False})
offstage.session.cancel(session["id"])
seen = [event["seq"] for event in offstage.events(session["id"])]
try:
    offstage.session.get("nothing")
except OffstageError as error:
    refused = [error.status, str(error)]
mine = [each["id"] for each in every_item(offstage.session.list, limit=1)]
print(json.dumps({"session": session, "seen": seen, "refused": refused, "mine": mine}))
`;

  test("works", async () => {
    const { session, seen, refused, mine } = (await usedByPython(worksInPython)) as Heard;
    expect(session).toMatchObject({ title: "From Python", status: "draft" });
    expect({ seen, refused }).toEqual({ seen: [1, 2, 3], refused: [404, "session nothing was not found"] });
    expect(mine).toContain(session.id);
  });

  test("heals a lost stream and a lost answer, and creates nothing twice", async () => {
    const { url, lost, server: between } = await losingServer();
    const { session, seen } = (await usedByPython(worksInPython.replace("From Python", "Pythons once"), url)) as {
      session: { id: string };
      seen: number[];
    };
    between.close();
    expect(lost()).toBeGreaterThanOrEqual(3);
    expect(seen).toEqual([1, 2, 3]);
    const { body } = await api.get("/session/search?q=Pythons+once");
    expect((body.sessions as { id: string }[]).map(({ id }) => id)).toEqual([session.id]);
  });

  test("gives a list in the query several times, and knows what is no answer", async () => {
    for (const queueRightAway of [true, false])
      await api.post("/session/create", { prompt: "asked for", queueRightAway });
    const page = await pageServer();
    const { statuses, strange: reported } = (await usedByPython(`
import json
from offstage import Offstage, OffstageError
sessions = Offstage().session.list(status=["queued", "draft"], limit=2)["sessions"]
elsewhere = Offstage("${page.url}")
strange = []
for ask in (elsewhere.me.get, lambda: next(elsewhere.events("x"))):
    try:
        ask()
    except OffstageError as error:
        strange.append([error.status, str(error)])
print(json.dumps({"statuses": [each["status"] for each in sessions], "strange": strange}))
`)) as Asking;
    page.close();
    expect([statuses, reported]).toEqual([["draft", "queued"], strange]);
  });

  test("tells a delivery that the server signed from another", async () => {
    const secret = `whsec_${Buffer.from("0123456789abcdef0123456789abcdef").toString("base64")}`;
    const body = JSON.stringify({ type: "session.completed", data: { text: "é" } });
    const headers = signedHeaders("msg_1", Math.floor(Date.now() / 1_000), body, secret);
    const answer = await usedByPython(`
import json
from offstage import WebhookVerificationError, verify_webhook
body, headers, secret = json.loads(${JSON.stringify(JSON.stringify([body, headers, secret]))})
def bad(given, other):
    try:
        verify_webhook(given, other, secret)
        return "taken"
    except WebhookVerificationError:
        return "refused"
print(json.dumps([verify_webhook(body, headers, secret)["type"], bad(body + " ", headers), bad(body, {**headers, "webhook-timestamp": "1"}), bad(body, {})]))
`);
    expect(answer).toEqual(["session.completed", "refused", "refused", "refused"]);
  });
});

interface Asked {
  readonly method: string;
  readonly url: string;
  readonly body: unknown;
}

/** A server that answers everything, and remembers what it was asked. */
async function recorder(): Promise<{ url: string; asked: Asked[]; server: Server }> {
  const asked: Asked[] = [];
  const recording = createServer((request, response) => void record(request, response));
  async function record(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await read(request);
    asked.push({ method: request.method ?? "", url: request.url ?? "", body: body === "" ? {} : JSON.parse(body) });
    const isStream = request.headers.accept === "text/event-stream";
    response.writeHead(200, { "content-type": isStream ? "text/event-stream" : "application/json" });
    response.end(isStream ? "event: end\ndata: {}\n\n" : "{}");
  }
  await new Promise<void>((resolve) => recording.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${(recording.address() as AddressInfo).port}`, asked, server: recording };
}

describe("the examples of every operation", () => {
  test("have bodies that the API takes", async () => {
    const refused: string[] = [];
    for (const operation of operations.filter(({ body }) => body !== null)) {
      expect([operation.id, operation.bodyExample]).toEqual([operation.id, expect.anything()]);
      const { path, body } = callExample(operation);
      const answer = await api.post(path, body);
      // What an example names is not there; what is wrong with a body is reported before that.
      if (answer.status === 400) refused.push(`${operation.id}: ${answer.body.error}`);
    }
    // Whose name it is, the description can't know.
    expect(refused).toEqual([expect.stringContaining("to confirm its erasure") as string]);
  });

  test.each(exampleLanguages.filter((language) => language !== "Python" || hasPython))(
    "ask for the same in %s",
    async (language) => {
      const { url, asked, server: recording } = await recorder();
      const examples = operations.map((operation) => snippet(operation, language));
      const programs = join(folder, language);
      await mkdir(programs, { recursive: true });
      if (language === "curl") {
        await writeFile(join(programs, "all.sh"), `${examples.join("\n")}\n`);
        await execute("bash", ["-e", join(programs, "all.sh")], { env: environment(url) });
      } else if (language === "Python") {
        await writeFile(join(programs, "all.py"), examples.join("\n"));
        await usedByPython(
          `import runpy\nimport sys\nimport io\nout, sys.stdout = sys.stdout, io.StringIO()\nrunpy.run_path(${JSON.stringify(join(programs, "all.py"))})\nsys.stdout = out\nprint("{}")`,
          url,
        );
      } else {
        // Each is a program of its own.
        for (const [index, example] of examples.entries()) await writeFile(join(programs, `${index}.mjs`), example);
        await writeFile(
          join(programs, "all.mjs"),
          examples.map((_, index) => `await import("./${index}.mjs");`).join("\n"),
        );
        await cp(join(folder, "node_modules"), join(programs, "node_modules"), { recursive: true });
        await execute(process.execPath, [join(programs, "all.mjs")], { env: environment(url), cwd: programs });
      }
      recording.close();
      const wanted = operations.map((operation): Asked => {
        const { path, body } = callExample(operation);
        // A client writes a blank as forms do.
        return {
          method: operation.method,
          url: path.replaceAll("%20", language === "curl" ? "%20" : "+"),
          body: body ?? {},
        };
      });
      expect(asked).toEqual(wanted);
    },
  );
});

test("each document of the clients names what there is", async () => {
  const { version } = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as { version: string };
  const published = JSON.parse(await readFile(join(root, "clients/typescript/package.json"), "utf8")) as {
    version: string;
  };
  expect(published.version).toBe(version);
  expect(await readFile(join(root, "clients/python/pyproject.toml"), "utf8")).toContain(`version = "${version}"`);
});
