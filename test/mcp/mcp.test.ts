import type { Client } from "@modelcontextprotocol/client";
import { createTaskSessionFromClient, resultFromTaskOutcome } from "@modelcontextprotocol/ext-tasks/client";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Scope } from "../../src/domain/people/key.ts";
import { createKey, revokeKey } from "../../src/store/people/keys.ts";
import { createBrowserSession } from "../../src/store/people/logins.ts";
import { createTestApp, type TestApp } from "../api/app.ts";
import { addAutomation } from "../store/fixtures.ts";
import { connected, listening, revisions, said } from "./connect.ts";

let api: TestApp;
let url: string;
const open: Client[] = [];

beforeAll(async () => {
  api = await createTestApp();
  url = await listening(api.app);
});
afterAll(() => api?.close());
afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
});

async function client(options: Parameters<typeof connected>[1] = {}): Promise<Client> {
  const made = await connected(url, { key: api.adminKey, ...options });
  open.push(made);
  return made;
}
const keyOf = async (...scopes: Scope[]): Promise<string> =>
  (await createKey(api.database, api.organizationId, { name: "mcp", scopes })).key;

describe.each(revisions)("revision %s", (revision, mode) => {
  test("is spoken, and says who answers", async () => {
    const mcp = await client({ mode });
    expect(mcp.getNegotiatedProtocolVersion()).toBe(revision);
    expect(mcp.getServerVersion()).toMatchObject({ name: "offstage", version: "1.0.0" });
    const { tools } = await mcp.listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      "get_session",
      "list_sessions",
      "start_session",
      "send_message",
      "cancel_session",
      "retry_session",
      "list_repositories",
      "list_agents",
      "follow_session",
      "wait_for_session",
      "read_diff",
      "list_automations",
      "trigger_automation",
      "get_run",
    ]);
  });

  test("a session is started, listed, found, steered, cancelled and retried", async () => {
    const mcp = await client({ mode });
    const call = async (name: string, given: object) => said(await mcp.callTool({ name, arguments: { ...given } }));
    const started = await call("start_session", { prompt: `Paint the shed ${revision.replaceAll("-", "")}` });
    expect(started).toMatchObject({ isError: false, facts: { status: "queued", pullRequests: [], problem: null } });
    const { sessionId } = started.facts as { sessionId: string };
    expect((await api.get(`/session/${sessionId}`)).body).toMatchObject({ status: "queued" });
    const found = await call("list_sessions", { search: revision.replaceAll("-", "") });
    expect(found.facts.sessions).toMatchObject([{ sessionId }]);
    expect((await call("list_sessions", { limit: 1 })).facts.sessions).toHaveLength(1);
    expect((await call("send_message", { sessionId, message: "In red" })).facts.sessionId).toBe(sessionId);
    expect((await call("cancel_session", { sessionId })).facts.status).toBe("cancelled");
    expect((await call("wait_for_session", { sessionId })).facts.status).toBe("cancelled");
    expect((await call("retry_session", { sessionId })).facts.status).toBe("queued");
    const followed = await call("follow_session", { sessionId });
    expect(followed.facts).toMatchObject({ status: "queued", isMore: false });
    expect(followed.texts.at(-1)).toContain("queued");
    expect((await call("read_diff", { sessionId })).texts.at(-1)).toBe("nothing is changed");
  });

  test("what the API refuses is its sentence, and no error of the protocol", async () => {
    const mcp = await client({ mode });
    const sessionId = crypto.randomUUID();
    const refused = said(await mcp.callTool({ name: "get_session", arguments: { sessionId } }));
    expect(refused).toMatchObject({ isError: true, texts: [`session ${sessionId} was not found`] });
    const wrong = said(await mcp.callTool({ name: "start_session", arguments: { prompt: "x", agent: "nobody:x" } }));
    expect(wrong.isError).toBe(true);
    expect(wrong.texts[0]).toContain("nobody");
  });

  test("prompts, resources and skills are there", async () => {
    const mcp = await client({ mode });
    const { body } = await api.post("/session/create", { prompt: "A resource" });
    const uri = `offstage://session/${body.id}`;
    expect((await mcp.listResources()).resources.map((resource) => resource.uri)).toContain(uri);
    const read = await mcp.readResource({ uri });
    expect(JSON.parse((read.contents[0] as { text: string }).text)).toMatchObject({ sessionId: body.id });
    await expect(mcp.readResource({ uri: `offstage://session/${crypto.randomUUID()}` })).rejects.toThrow("not found");
    const prompt = await mcp.getPrompt({ name: "hand_over", arguments: { task: "the tests" } });
    expect(JSON.stringify(prompt.messages)).toContain("the tests");
    const skill = await mcp.readResource({ uri: "skill://offstage/SKILL.md" });
    const served = await api.app.inject({ url: "/skills/offstage/SKILL.md" });
    expect(served.headers["content-type"]).toContain("text/markdown");
    expect((skill.contents[0] as { text: string }).text).toBe(served.body);
    expect(served.body).toContain("# Hand work over to Offstage");
  });
});

describe("who may", () => {
  const ask = (headers: Record<string, string>, target = "/mcp", app: TestApp["app"] = api.app) =>
    app.inject({
      method: "POST",
      url: target,
      headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers },
      payload: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" }),
    });

  test("a caller without a key gets the address at which to ask for access", async () => {
    const { statusCode, headers, json } = await ask({ host: "localhost:4747" });
    expect(statusCode).toBe(401);
    expect(headers["www-authenticate"]).toBe(
      'Bearer resource_metadata="http://localhost:4747/.well-known/oauth-protected-resource/mcp", scope="read write"',
    );
    expect(json()).toEqual({ error: expect.stringContaining("Authorization: Bearer") as string });
    expect((await ask({ authorization: `Bearer ${api.adminKey}` })).statusCode).toBe(200);
  });

  test("neither a browser's cookie nor a key in the address counts", async () => {
    const { organizationId, database } = api;
    const person = { organizationId, keyId: null, userId: null, scopes: ["admin"], automationIds: null } as const;
    const cookie = await createBrowserSession(database, person, { days: 1, address: null, userAgent: null });
    const signedIn = { cookie: `offstage_session=${cookie}` };
    expect((await ask(signedIn)).statusCode).toBe(401);
    expect((await ask({}, `/mcp?apiKey=${api.adminKey}`)).statusCode).toBe(401);
    expect((await api.get("/session/list", { key: null, headers: signedIn })).status).toBe(200);
  });

  test("a page of another site is refused, whatever it sends, and so is another name of the server", async () => {
    const authorization = `Bearer ${api.adminKey}`;
    expect((await ask({ authorization, origin: "https://evil.example" })).statusCode).toBe(403);
    expect((await ask({ authorization, origin: "http://10.0.0.7" })).statusCode).toBe(403);
    expect((await ask({ authorization, origin: "null" })).statusCode).toBe(403);
    expect((await ask({ authorization, host: "evil.example" })).statusCode).toBe(421);
    expect((await ask({ authorization, host: "offstage.test", origin: "http://offstage.test" })).statusCode).toBe(200);
  });

  test("a key does what its scopes allow, and gets the scope that it lacks", async () => {
    const reader = await client({ key: await keyOf("read") });
    expect(said(await reader.callTool({ name: "list_sessions", arguments: {} })).isError).toBe(false);
    const refused = said(await reader.callTool({ name: "start_session", arguments: { prompt: "x" } }));
    expect(refused).toMatchObject({ isError: true, texts: ["this key lacks the scope write: use one that has it"] });

    await addAutomation(api.database, api.organizationId, "fix-it");
    const trigger = await client({ key: await keyOf("trigger") });
    const fired = said(await trigger.callTool({ name: "trigger_automation", arguments: { automation: "fix-it" } }));
    expect(fired).toMatchObject({ isError: false, facts: { status: "pending" } });
    expect(said(await trigger.callTool({ name: "list_automations", arguments: {} })).isError).toBe(true);
    const { runId } = fired.facts as { runId: string };
    const run = said(await (await client()).callTool({ name: "get_run", arguments: { runId } }));
    expect(run.facts).toMatchObject({ runId, status: "pending", sessions: [] });
    const listed = said(await (await client()).callTool({ name: "list_automations", arguments: {} }));
    expect(listed.facts.automations).toContainEqual(expect.objectContaining({ macro: "fix-it", paused: false }));
  });

  test("a key that is revoked is refused from then on", async () => {
    const { key, record } = await createKey(api.database, api.organizationId, { name: "gone", scopes: ["read"] });
    const mcp = await client({ key });
    expect(said(await mcp.callTool({ name: "list_agents", arguments: {} })).facts.agents).toHaveLength(2);
    await revokeKey(api.database, api.organizationId, record.id);
    await expect(mcp.callTool({ name: "list_agents", arguments: {} })).rejects.toThrow(
      "the API key is wrong, revoked or expired",
    );
  });

  test("each call counts once towards the limit of the key, whatever the tool asks for", async () => {
    const app = await api.another({ rateLimitPerMinute: 3 });
    const authorization = `Bearer ${await keyOf("read", "write")}`;
    const start = {
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name: "start_session", arguments: { prompt: "x" } },
    };
    const call = () =>
      app.inject({
        method: "POST",
        url: "/mcp",
        headers: { authorization, "content-type": "application/json", accept: "application/json, text/event-stream" },
        payload: JSON.stringify(start),
      });
    // Each makes two requests of the API.
    for (let count = 0; count < 3; count += 1) expect((await call()).statusCode).toBe(200);
    const refused = await call();
    expect(refused.statusCode).toBe(429);
    expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
  });

  test("what a tool did stands in the audit log as what it is, with whose key it was", async () => {
    const { key, record } = await createKey(api.database, api.organizationId, { name: "audited", scopes: ["write"] });
    const mcp = await client({ key });
    await mcp.callTool({ name: "start_session", arguments: { prompt: "Seen" } });
    const actions = async (): Promise<string[]> => {
      const { body } = await api.get("/audit/list?limit=100");
      return (body.entries as { keyId: string; action: string }[])
        .filter(({ keyId }) => keyId === record.id)
        .map(({ action }) => action);
    };
    await expect.poll(actions).toEqual(["postPublic-apiSessionCreate"]);
    await ask({ authorization: "Bearer ofs_wrong" });
    const refused = async (): Promise<unknown[]> =>
      (await api.get("/audit/list?limit=100&action=mcp")).body.entries as unknown[];
    await expect.poll(refused).toContainEqual(expect.objectContaining({ action: "mcp", status: 401 }));
  });
});

describe("answers", () => {
  test("no character of an agent's or a person's making controls a terminal", async () => {
    const evil = "\u001B[2J\u001B]0;owned\u0007 \u202Eevil\u200B";
    const { body } = await api.post("/session/create", { prompt: `Paint${evil}` });
    // As in sessions that were made before titles were cleaned.
    await api.database.pool.query("update session set title = $2 where id = $1", [body.id, `Paint${evil}`]);
    const mcp = await client();
    for (const [name, given] of [
      ["get_session", { sessionId: body.id }],
      ["list_sessions", { limit: 1 }],
      ["follow_session", { sessionId: body.id }],
    ] as const) {
      const text = JSON.stringify(await mcp.callTool({ name, arguments: given }));
      // oxlint-disable-next-line no-control-regex
      expect(text).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202a-\u202e]|\\u001b/iu);
    }
  });

  test("a long history is returned in pieces that fit, none lost and none twice", async () => {
    const { body } = await api.post("/session/create", { prompt: "Long", queueRightAway: false });
    const lines = Array.from({ length: 3_000 }, (_, index) => `line ${index} ${"x".repeat(60)}`);
    await api.database.pool.query(
      `insert into event (session_id, seq, type, data)
       select $1, last_event + number, 'notice', jsonb_build_object('level', 'info', 'text', text)
       from session, unnest($2::text[]) with ordinality as given(text, number) where id = $1`,
      [body.id, lines],
    );
    await api.database.pool.query("update session set last_event = last_event + $2 where id = $1", [
      body.id,
      lines.length,
    ]);
    const mcp = await client();
    let after = 0;
    let all = "";
    for (let more = true; more;) {
      const { facts, texts } = said(
        await mcp.callTool({ name: "follow_session", arguments: { sessionId: body.id, after } }),
      );
      expect((texts.at(-1) ?? "").length).toBeLessThanOrEqual(40_000);
      all += texts.at(-1);
      expect(facts.after).toBeGreaterThan(after);
      ({ after, isMore: more } = facts as { after: number; isMore: boolean });
    }
    expect(all.match(/line \d+/gu)).toEqual(lines.map((line) => /line \d+/u.exec(line)?.[0]));
  });

  test("a large diff is returned file by file and in pieces", async () => {
    const repositories = ["https://git.example.com/acme/large"];
    const { body } = await api.post("/session/create", { prompt: "Large", repositories });
    const file = (name: string, count: number) =>
      `diff --git a/${name} b/${name}\n--- a/${name}\n+++ b/${name}\n@@ -0,0 +1,${count} @@\n${"+y\n".repeat(count)}`;
    await api.database.pool.query("update session_repository set patch = $2 where session_id = $1", [
      body.id,
      file("src/small.ts", 2) + file("src/big.ts", 40_000),
    ]);
    const mcp = await client();
    const read = async (given: object) =>
      said(await mcp.callTool({ name: "read_diff", arguments: { sessionId: body.id as string, ...given } }));
    const whole = await read({});
    expect(whole.facts.files).toEqual([
      { repository: expect.any(String) as string, path: "src/small.ts", added: 2, removed: 0 },
      { repository: expect.any(String) as string, path: "src/big.ts", added: 40_000, removed: 0 },
    ]);
    expect(whole.facts.nextOffset).toBe(40_000);
    const next = await read({ offset: 40_000 });
    expect(next.texts.at(-1)?.length).toBe(40_000);
    expect((await read({ path: "src/small.ts" })).texts.at(-1)).toBe(file("src/small.ts", 2));
    expect((await read({ path: "src/" })).facts.files).toHaveLength(2);
    expect((await read({ path: "elsewhere" })).texts.at(-1)).toBe("nothing is changed");
  });

  test("a request that is sent again with its key does its work once", async () => {
    const mcp = await client();
    const arguments_ = { prompt: "Once", idempotencyKey: "mcp-once" };
    const [one, other] = [
      said(await mcp.callTool({ name: "start_session", arguments: arguments_ })),
      said(await mcp.callTool({ name: "start_session", arguments: arguments_ })),
    ];
    expect(one.facts.sessionId).toBe(other.facts.sessionId);
    const strange = { ...arguments_, idempotencyKey: "once \u2014 again" };
    const refused = said(await mcp.callTool({ name: "start_session", arguments: strange }));
    expect([refused.isError, refused.texts[0]]).toEqual([true, expect.stringContaining("idempotencyKey")]);
  });

  test("an argument that the tool does not have is named", async () => {
    const mcp = await client();
    const wrong = said(await mcp.callTool({ name: "start_session", arguments: { prompt: "x", repo: "y" } }));
    expect(wrong.isError).toBe(true);
    expect(wrong.texts[0]).toContain("repo");
  });
});

test("an event of a tool keeps the digits of an id that JavaScript can't hold", async () => {
  await api.post("/automation/create", { name: "Digits", macro: "digits", instructions: "{{ event.id }}" });
  const call = JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name: "trigger_automation", arguments: { automation: "digits", event: { id: 0 } } },
  });
  const response = await fetch(`${url}/mcp`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${api.adminKey}`,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2025-11-25",
    },
    body: call.replace('"id":0', '"id":12345678901234567890'),
  });
  expect(await response.text()).toContain("runId");
  const { rows } = await api.database.pool.query(
    "select payload from job where automation_id = (select id from automation where macro = 'digits')",
  );
  expect(rows).toEqual([{ payload: { id: "12345678901234567890" } }]);
});

describe("what takes long", () => {
  /** Sends a request of the tasks extension as the extension's own client frames it. */
  async function dispatch(body: unknown): Promise<never> {
    const { method, params } = body as { method: string; params: { name?: string; taskId?: string } };
    const response = await fetch(`${url}/mcp`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${api.adminKey}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
        "mcp-name": params.name ?? params.taskId ?? "",
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, ...(body as object) }),
    });
    return (await response.json()) as never;
  }
  const framing = {
    protocolVersion: "2026-07-28",
    clientInfo: { name: "test", version: "1.0.0" },
    clientCapabilities: {},
  };

  test("is a task for the extension's own client, which outlives the call", async () => {
    const { body } = await api.post("/session/create", { prompt: "Long" });
    const mcp = await client({ extensions: { "io.modelcontextprotocol/tasks": {} } });
    const session = createTaskSessionFromClient(mcp, {
      endpointId: "offstage",
      rawDispatch: dispatch,
      v2RequestFraming: framing,
    });
    const execution = await session.callTool("wait_for_session", { sessionId: body.id as string });
    expect(execution.kind).toBe("task");
    await api.post(`/session/${body.id}/cancel`, {});
    const { outcome } = await execution.settle();
    expect(outcome.status).toBe("cancelled");
    await session.close();
  });

  test("is answered with its result once it is over, and can be cancelled", async () => {
    const { body } = await api.post("/session/create", { prompt: "Long too" });
    const mcp = await client({ extensions: { "io.modelcontextprotocol/tasks": {} } });
    const session = createTaskSessionFromClient(mcp, {
      endpointId: "offstage",
      rawDispatch: dispatch,
      v2RequestFraming: framing,
    });
    const execution = await session.callTool("wait_for_session", { sessionId: body.id as string });
    await api.database.pool.query("update session set status = 'completed', finished_at = now() where id = $1", [
      body.id,
    ]);
    const { outcome } = await execution.settle();
    expect(resultFromTaskOutcome(outcome)).toMatchObject({
      structuredContent: { status: "completed" },
      isError: false,
    });
    await session.close();
  });

  test("is refused to who does not know tasks, and waited for instead", async () => {
    const { body } = await api.post("/session/create", { prompt: "Wait" });
    const meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    const answer = await dispatch({ method: "tasks/get", params: { taskId: body.id, _meta: meta } });
    expect(answer).toMatchObject({ error: { code: -32021 } });
    const mcp = await client();
    const progress: number[] = [];
    const waiting = mcp.callTool(
      { name: "wait_for_session", arguments: { sessionId: body.id as string, seconds: 600 } },
      { onprogress: (reported) => progress.push(reported.progress), resetTimeoutOnProgress: true, timeout: 120_000 },
    );
    await expect.poll(() => progress.length).toBeGreaterThan(0);
    await api.post(`/session/${body.id}/cancel`, {});
    expect(said(await waiting).facts.status).toBe("cancelled");
  });

  test("a session without an owner is no task", async () => {
    const meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientCapabilities": { extensions: { "io.modelcontextprotocol/tasks": {} } },
    };
    const taskId = crypto.randomUUID();
    for (const method of ["tasks/get", "tasks/cancel", "tasks/update"]) {
      expect(await dispatch({ method, params: { taskId, _meta: meta } })).toMatchObject({ error: { code: -32602 } });
    }
  });
});

test.each(revisions)(
  "several nodes behind a balancer answer the requests of one client (%s)",
  async (_revision, mode) => {
    const other = await listening(await api.another());
    let count = 0;
    const mcp = await connected(url, {
      mode,
      key: api.adminKey,
      route: (target) => (count++ % 2 === 0 ? target : target.replace(url, other)),
    });
    open.push(mcp);
    const { facts } = said(await mcp.callTool({ name: "start_session", arguments: { prompt: "Balanced" } }));
    for (let turn = 0; turn < 4; turn += 1) {
      const read = said(
        await mcp.callTool({ name: "get_session", arguments: { sessionId: facts.sessionId as string } }),
      );
      expect(read.facts.sessionId).toBe(facts.sessionId);
    }
    expect(count).toBeGreaterThanOrEqual(6);
  },
);
