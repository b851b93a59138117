import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { client as acpClient, methods, ndJsonStream, type SessionUpdate } from "@agentclientprotocol/sdk";
import { Client as McpClient } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { Client } from "../../src/client.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { script } from "../end-to-end/script.ts";
import { connected, revisions, said } from "../mcp/connect.ts";
import { waitFor } from "../wait-for.ts";
import { adminKey, createWorld, startInProcess, untilOver, type World } from "../world.ts";
import { createPerson, ended, main, type Person } from "./person.ts";

let world: World;
let offstage: Offstage;
let api: Client;
let url: string;
let person: Person;

beforeAll(async () => {
  world = await createWorld(script);
  ({ offstage, client: api } = await startInProcess(world, { OFFSTAGE_DEFAULT_AGENT: "basic:scripted" }));
  ({ url } = await world.forge.createRepository("acme", "client", { "README.md": "# Before\n" }));
});
afterAll(async () => {
  await offstage?.stop();
  await world?.close();
});
beforeEach(async () => {
  const cloned = new URL(url);
  cloned.username = "ada";
  cloned.password = world.forge.token;
  const variables = { OFFSTAGE_SERVER: offstage.url, OFFSTAGE_API_KEY: adminKey };
  person = await createPerson({ url: cloned.toString(), variables });
  return () => person.leave();
});

/** The repository's address as the server keeps it. */
const repository = (): string => url.replace(/\.git$/u, "");

describe.each(revisions)("an MCP client of revision %s", (_revision, mode) => {
  test.each(["HTTP", "stdio"])("has a session do its work, and reads what it changed, by %s", async (by) => {
    const mcp =
      by === "HTTP"
        ? await connected(offstage.url, { mode, key: adminKey })
        : new McpClient({ name: "test", version: "1.0.0" }, { versionNegotiation: { mode } });
    if (by === "stdio") {
      const transport = new StdioClientTransport({
        command: process.execPath,
        args: [main, "mcp"],
        cwd: person.clone,
        env: person.environment,
      });
      await mcp.connect(transport);
    }
    const call = async (name: string, given: object) => said(await mcp.callTool({ name, arguments: { ...given } }));
    const file = `${by}-${_revision}.txt`;
    const started = await call("start_session", { prompt: `write ${file}: hello`, repositories: [url] });
    const { sessionId } = started.facts as { sessionId: string };
    for (let status = "queued"; status !== "completed";) {
      const waited = await call("wait_for_session", { sessionId, seconds: 30 });
      ({ status } = waited.facts as { status: string });
      expect(waited.facts.problem).toBeNull();
    }
    const done = (await call("get_session", { sessionId })).facts;
    expect(done.pullRequests).toMatchObject([{ state: "open" }]);
    expect(done.summary).toContain("Did as asked");
    const read = await call("read_diff", { sessionId, path: file });
    expect(read.facts.files).toMatchObject([{ path: file, added: 1, removed: 0 }]);
    expect(read.texts.at(-1)).toContain("+hello");
    const followed = await call("follow_session", { sessionId });
    expect(followed.texts.at(-1)).toContain("│ Did as asked");
    expect(followed.facts.status).toBe("completed");
    expect((await call("list_repositories", {})).facts.repositories).toContainEqual(
      expect.objectContaining({ url: repository() }),
    );
    await mcp.close();
  });
});

test("offstage mcp says on stderr what is missing, and nothing on stdout", async () => {
  person.environment["OFFSTAGE_API_KEY"] = "";
  const { code, out, err } = await person.run(["mcp"]);
  expect({ code, out }).toEqual({ code: 2, out: "" });
  expect(err).toContain("offstage login");
});

interface Heard {
  readonly updates: SessionUpdate[];
  text(): string;
}

/** An editor that starts `offstage acp`, as the protocol's own SDK is one. */
async function withEditor<Result>(
  argv: readonly string[],
  work: (
    ask: (method: string, params: object) => Promise<never>,
    heard: Heard,
    tell: (method: string, params: object) => Promise<void>,
    /** What it has written to stderr. */
    noted: () => string,
  ) => Promise<Result>,
): Promise<Result> {
  const child = person.start("acp", ...argv);
  let err = "";
  child.stderr.on("data", (chunk: Buffer) => (err += chunk.toString()));
  const updates: SessionUpdate[] = [];
  const heard: Heard = {
    updates,
    text: () =>
      updates
        .map((update) =>
          update.sessionUpdate === "agent_message_chunk" && update.content.type === "text" ? update.content.text : "",
        )
        .join(""),
  };
  const stream = ndJsonStream(
    Writable.toWeb(child.stdin) as WritableStream<Uint8Array>,
    Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>,
  );
  try {
    return await acpClient({ name: "test-editor" })
      .onNotification(methods.client.session.update, ({ params }) => void updates.push(params.update))
      .connectWith(stream, async (editor) => {
        await editor.request(methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} });
        return work(
          (method, params) => editor.request<never, object>(method, params),
          heard,
          (method, params) => editor.notify(method as never, params as never),
          () => err,
        );
      });
  } finally {
    child.kill();
    if (child.exitCode === null && child.signalCode === null) await once(child, "close");
    expect(err).not.toContain("    at ");
  }
}

const { session } = methods.agent;
const textPrompt = (text: string) => [{ type: "text", text }];
/** The id of the server's session in an editor's updates. */
const idIn = (heard: Heard): string => /sessions\/([0-9a-f-]{36})/u.exec(heard.text())?.[1] ?? "";

describe("an editor", () => {
  test("opens Offstage as an agent: a prompt is a session on the checkout's repository and branch, a second one a follow-up", async () => {
    await person.git("switch", "--quiet", "--create", "feature-acp");
    await person.git("push", "--quiet", "--set-upstream", "origin", "feature-acp");
    await withEditor([], async (ask, heard) => {
      const opened: { sessionId: string; configOptions: { id: string; category: string }[] } = await ask(session.new, {
        cwd: person.clone,
        mcpServers: [],
      });
      expect(opened.configOptions.map(({ category }) => category)).toEqual(["model", "mode"]);
      const { sessionId } = opened;
      const answer = await ask(session.prompt, { sessionId, prompt: textPrompt("write acp.txt: from an editor") });
      expect(answer).toMatchObject({ stopReason: "end_turn" });
      const detail = await api.session.get(idIn(heard));
      expect(detail).toMatchObject({ status: "completed", targetBranch: "feature-acp" });
      expect(detail.repositories.map((each) => each.url)).toEqual([repository()]);
      expect(heard.text()).toContain("Did as asked");
      expect(heard.text()).toContain(`Pull request: ${detail.pullRequests[0]?.url}`);
      expect(heard.updates).toContainEqual({ sessionUpdate: "session_info_update", title: detail.title });
      const calls = heard.updates.filter((update) => update.sessionUpdate === "tool_call");
      expect(calls.map(({ title }) => title)).toEqual(
        expect.arrayContaining(["Prepare a clone", "Push the branch", "Open the pull request"]),
      );
      const diffs = heard.updates.flatMap((update) =>
        update.sessionUpdate === "tool_call_update" || update.sessionUpdate === "tool_call"
          ? (update.content ?? []).filter(({ type }) => type === "diff")
          : [],
      );
      expect(diffs).toContainEqual(
        expect.objectContaining({ path: join(person.clone, "acp.txt"), newText: "from an editor" }),
      );

      const before = heard.updates.length;
      const prompt = textPrompt("write second.txt: a follow-up");
      expect(await ask(session.prompt, { sessionId, prompt })).toMatchObject({ stopReason: "end_turn" });
      expect(heard.updates.slice(before).filter(({ sessionUpdate }) => sessionUpdate === "user_message_chunk")).toEqual(
        [],
      );
      expect(JSON.stringify(heard.updates.slice(before))).toContain("second.txt");
      expect(JSON.stringify(heard.updates.slice(before))).not.toContain("from an editor");
      const [only] = (await api.session.get(detail.id)).pullRequests;
      expect(only?.url).toBe(detail.pullRequests[0]?.url);
    });
  });

  test("sends uncommitted changes along if its option says so, and files by their path in the repository", async () => {
    await writeFile(join(person.clone, "unsaved.txt"), "not in any commit\n");
    await withEditor([], async (ask, heard) => {
      const { sessionId }: { sessionId: string } = await ask(session.new, { cwd: person.clone, mcpServers: [] });
      const wrong = ask(session.setConfigOption, { sessionId, configId: "changes", value: "nonsense" });
      await expect(wrong).rejects.toThrow("changes");
      const { configOptions }: { configOptions: object[] } = await ask(session.setConfigOption, {
        sessionId,
        configId: "changes",
        value: "send",
      });
      expect(configOptions).toContainEqual(expect.objectContaining({ id: "changes", currentValue: "send" }));
      await ask(session.setConfigOption, { sessionId, configId: "model", value: "basic:scripted" });
      const link = { type: "resource_link", name: "unsaved.txt", uri: `file://${join(person.clone, "unsaved.txt")}` };
      const prompt = [...textPrompt("shell cat unsaved.txt\nSee "), link];
      await ask(session.prompt, { sessionId, prompt });
      const detail = await api.session.get(idIn(heard));
      expect(detail.agent).toBe("basic:scripted");
      expect(detail.branchName).toMatch(/^offstage\/changes-/u);
      expect(detail.prompt).toContain("[unsaved.txt](unsaved.txt)");
      expect(JSON.stringify(heard.updates)).toContain("not in any commit");
    });
    expect(await person.git("status", "--porcelain")).toBe("?? unsaved.txt");
  });

  test("cancels, lists, loads and resumes, in other processes too; closing it cancels nothing", async () => {
    const { name, id } = await withEditor([], async (ask, heard, tell) => {
      const { sessionId }: { sessionId: string } = await ask(session.new, { cwd: person.clone, mcpServers: [] });
      const turn = ask(session.prompt, { sessionId, prompt: textPrompt("shell sleep 600") });
      await expect.poll(() => idIn(heard)).not.toBe("");
      await waitFor(async () => (await api.session.get(idIn(heard))).status === "running", "the session runs");
      await tell(session.cancel, { sessionId });
      expect(await turn).toMatchObject({ stopReason: "cancelled" });
      return { name: sessionId, id: idIn(heard) };
    });
    expect((await api.session.get(id)).status).toBe("cancelled");

    const running = await withEditor([], async (ask, heard) => {
      const { sessions }: { sessions: { sessionId: string; cwd: string }[] } = await ask(session.list, {
        cwd: person.clone,
      });
      expect(sessions).toContainEqual(expect.objectContaining({ sessionId: id, cwd: person.clone }));
      // By the name that the first process gave it.
      await ask(session.load, { sessionId: name, cwd: person.clone, mcpServers: [] });
      expect(heard.updates.find(({ sessionUpdate }) => sessionUpdate === "user_message_chunk")).toMatchObject({
        content: { text: "shell sleep 600" },
      });
      // By the server's own, without its history.
      const before = heard.updates.length;
      await ask(session.resume, { sessionId: id, cwd: person.clone });
      expect(heard.updates).toHaveLength(before);
      const prompt = textPrompt("write resumed.txt: yes");
      expect(await ask(session.prompt, { sessionId: id, prompt })).toMatchObject({ stopReason: "end_turn" });
      await expect(
        ask(session.load, { sessionId: crypto.randomUUID(), cwd: person.clone, mcpServers: [] }),
      ).rejects.toThrow("Resource not found");
      const { sessionId }: { sessionId: string } = await ask(session.new, { cwd: person.clone, mcpServers: [] });
      void (ask(session.prompt, { sessionId, prompt: textPrompt("write later.txt: done") }) as Promise<unknown>).catch(
        () => undefined,
      );
      await expect
        .poll(async () => (await api.session.list({ limit: 1 })).sessions[0]?.prompt)
        .toBe("write later.txt: done");
      return (await api.session.list({ limit: 1 })).sessions[0]?.id ?? "";
    });
    expect((await untilOver(api, running)).status).toBe("completed");
  });

  test("gets the reason why a session failed, and that it must sign in", async () => {
    await withEditor([], async (ask) => {
      const { sessionId }: { sessionId: string } = await ask(session.new, { cwd: person.clone, mcpServers: [] });
      const failed = ask(session.prompt, { sessionId, prompt: textPrompt("fail 400") });
      await expect(failed).rejects.toThrow("the scripted model fails");
    });
    person.environment["OFFSTAGE_API_KEY"] = "";
    await withEditor([], async (ask) => {
      const opened = ask(session.new, { cwd: person.clone, mcpServers: [] });
      await expect(opened).rejects.toMatchObject({ code: -32000 });
    });
  });

  test("may prompt again once what the server refused is mended", async () => {
    const remote = await person.git("remote", "get-url", "origin");
    await person.git("remote", "set-url", "origin", `${remote}?x=1`);
    await withEditor([], async (ask, heard) => {
      const { sessionId }: { sessionId: string } = await ask(session.new, { cwd: person.clone, mcpServers: [] });
      const prompt = (text: string) =>
        ask(session.prompt, {
          sessionId,
          prompt: [...textPrompt(text), { type: "resource_link", name: "far", uri: "file://elsewhere/a.txt" }],
        });
      await expect(prompt("say one")).rejects.toThrow("must not have a query");
      await person.git("remote", "set-url", "origin", remote);
      await prompt("say two");
      expect((await api.session.get(idIn(heard))).prompt).toBe("say two[far](file://elsewhere/a.txt)");
    });
  });

  test("no character of an agent's making reaches it that controls a terminal", async () => {
    await withEditor([], async (ask, heard) => {
      const { sessionId }: { sessionId: string } = await ask(session.new, { cwd: person.home, mcpServers: [] });
      const evil = "say \u001B[2J\u001B]0;owned\u0007hello \u202Eevil";
      await ask(session.prompt, { sessionId, prompt: textPrompt(evil) });
      expect((await api.session.get(idIn(heard))).repositories).toEqual([]);
      expect(heard.text()).toContain("hello");
      expect(JSON.stringify(heard.updates)).not.toMatch(/\\u001b|\\u0007|\u202e/iu);
    });
  });
});

describe("offstage login --browser", () => {
  const credentials = () => join(person.home, ".config/offstage/credentials.json");

  /** Signs a browser in, and gives a grant to the program that printed this address. */
  async function allow(address: string): Promise<string> {
    const signedIn = await fetch(`${offstage.url}/login/create`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ key: adminKey }),
    });
    const cookie = signedIn.headers.getSetCookie()[0]?.split(";")[0] ?? "";
    const opened = await fetch(address, { redirect: "manual" });
    const token = (opened.headers.get("location") ?? "").replace("/authorize/", "");
    const decided = await fetch(`${offstage.url}/oauth/request/${token}/decide`, {
      method: "POST",
      headers: { "content-type": "application/json", cookie },
      body: JSON.stringify({ allow: true }),
    });
    const { redirectUrl } = (await decided.json()) as { redirectUrl: string };
    return (await fetch(redirectUrl)).text();
  }

  test("keeps tokens for its owner's eyes alone, renews them, and gives them back", async () => {
    person.environment["OFFSTAGE_API_KEY"] = "";
    const child = person.start("login", "--browser");
    let said_ = "";
    child.stderr.on("data", (chunk: Buffer) => (said_ += chunk.toString()));
    const printed = () => /^http\S+\/oauth\/authorize\?\S+$/mu.exec(said_)?.[0] ?? "";
    await expect.poll(printed).not.toBe("");
    expect(await allow(printed())).toContain("Go back to your terminal");
    const [code] = (await once(child, "close")) as [number];
    expect(code).toBe(0);
    const kept = JSON.parse(await readFile(credentials(), "utf8")) as {
      servers: Record<string, { accessToken: string; refreshToken: string; expiresAt: number }>;
    };
    const tokens = kept.servers[offstage.url];
    expect(tokens?.accessToken).toMatch(/^ofa_/u);
    expect(said_).not.toContain(tokens?.accessToken);

    expect(await person.run(["list"])).toMatchObject({ code: 0, err: "" });
    // Files are asked for in the person's name, too.
    expect(await person.run(["insight", "--csv"])).toMatchObject({ code: 0, err: "" });
    const { grants } = await api.grant.list();
    expect(grants).toMatchObject([{ clientName: "Offstage command line", resource: "api", by: "key" }]);

    // As an hour later.
    const old = { ...kept, servers: { [offstage.url]: { ...tokens, expiresAt: 1 } } };
    await writeFile(credentials(), JSON.stringify(old));
    expect((await person.run(["list"])).code).toBe(0);
    const renewed = JSON.parse(await readFile(credentials(), "utf8")) as typeof kept;
    expect(renewed.servers[offstage.url]?.accessToken).not.toBe(tokens?.accessToken);

    expect((await person.run(["logout"])).out).toContain("signed out");
    expect((await api.grant.list()).grants).toEqual([]);
    expect(await readFile(credentials(), "utf8")).not.toContain("ofa_");
  });

  test("by an editor is good for the server however its address is written", async () => {
    person.environment["OFFSTAGE_API_KEY"] = "";
    await withEditor(["--server", `${offstage.url}/`], async (ask, _heard, _tell, noted) => {
      const printed = () => /^http\S+\/oauth\/authorize\?\S+$/mu.exec(noted())?.[0] ?? "";
      const signedIn = ask(methods.agent.authenticate, { methodId: "browser" });
      await expect.poll(printed).not.toBe("");
      await allow(printed());
      await signedIn;
      expect(await ask(methods.agent.session.new, { cwd: person.clone, mcpServers: [] })).toHaveProperty("sessionId");
    });
  });

  test.skipIf(spawnSync("script", ["--version"]).status !== 0)(
    "opens no browser over ssh, and asks for a key on the terminal",
    async () => {
      const command = `${process.execPath} ${main} login`;
      person.environment["OFFSTAGE_API_KEY"] = "";
      const terminal = spawn("script", ["-qec", command, "/dev/null"], {
        cwd: person.clone,
        env: { ...person.environment, DISPLAY: ":0", SSH_CONNECTION: "10.0.0.1 1 10.0.0.2 22" },
      });
      const { code, out } = await ended(terminal, `${adminKey}\n`);
      expect(out).toContain(`API key for ${offstage.url}`);
      expect(code).toBe(0);
    },
  );
});
