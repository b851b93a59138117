import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Client } from "../../src/client.ts";
import type { SessionEvent } from "../../src/domain/sessions/event.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { commandLines, running, uniqueMark } from "../sandboxes/sandbox-folders.ts";
import { waitFor } from "../wait-for.ts";
import { createWorld, startInProcess, untilOver, type World } from "../world.ts";
import { script } from "./script.ts";

let world: World;
let offstage: Offstage;
let client: Client;
let count = 0;
/** Another's harness, with processes of its own. */
const agent = "opencode:scripted";

beforeAll(async () => {
  world = await createWorld(script);
  // If the harness does not matter, the one that starts soonest.
  ({ offstage, client } = await startInProcess(world, { OFFSTAGE_DEFAULT_AGENT: "basic:scripted" }));
});

afterAll(async () => {
  await offstage?.stop();
  await world?.close();
});

/** A repository of its own for each test, so that none depends on another. */
async function repository(
  files: Record<string, string> = { "README.md": "# Before\n" },
): Promise<{ name: string; url: string }> {
  const name = `repository-${(count += 1)}`;
  const { url } = await world.forge.createRepository("acme", name, files);
  return { name, url };
}

async function eventsOf(id: string): Promise<SessionEvent[]> {
  const events: SessionEvent[] = [];
  for (let after: string | null = "0"; after !== null;) {
    const page = await client.session.events(id, { after, limit: 100 });
    events.push(...page.events);
    after = page.nextCursor;
  }
  return events;
}

/** Asynchronous, since the forge answers from this very process. */
async function showFile(url: string, branch: string, path: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "offstage-look-"));
  try {
    const authenticated = url.replace("://", `://x:${world.forge.token}@`);
    await promisify(execFile)("git", ["clone", "-q", "--branch", branch, authenticated, folder]);
    return readFileSync(join(folder, path), "utf8");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

test("a prompt becomes exactly one pull request with the agent's diff", async () => {
  const { name, url } = await repository();
  const session = await client.session.create({ prompt: "write hello.txt: hello there", agent, repositories: [url] });
  const done = await untilOver(client, session.id);
  expect(done).toMatchObject({ status: "completed", failure: null });

  const pullRequests = await world.forge.pullRequests("acme", name);
  expect(pullRequests).toHaveLength(1);
  expect(done.pullRequests).toEqual([
    expect.objectContaining({ head: done.branchName, target: "main", state: "open" }),
  ]);
  expect(await showFile(url, done.branchName, "hello.txt")).toBe("hello there");

  const { repositories } = await client.session.diff(session.id);
  expect(repositories[0]?.patch).toContain("+hello there");
  const events = await eventsOf(session.id);
  expect(events.map((event) => event.seq)).toEqual(events.map((_, index) => index + 1));
  const steps = events.filter((event) => event.type === "step.completed").map((event) => event.data.step);
  expect(steps).toEqual(["prepare", "agent", "commit", "push", "pullRequest"]);
});

test("a description alone is enough", async () => {
  const { name, url } = await repository();
  const session = await client.session.create({ description: "write only.txt: described", repositories: [url] });
  expect((await untilOver(client, session.id)).status).toBe("completed");
  expect(await world.forge.pullRequests("acme", name)).toHaveLength(1);
});

test("the text of a pull request follows later turns, and keeps what people wrote into it", async () => {
  const { name, url } = await repository();
  const { id } = await client.session.create({ prompt: "write a.txt: a, then say first turn", repositories: [url] });
  await untilOver(client, id);
  const bodyNow = async (): Promise<string> => (await world.forge.pullRequests("acme", name))[0]?.body ?? "";
  const edit = async (body: string): Promise<void> => {
    await fetch(`${world.forge.url}/api/v3/repos/acme/${name}/pulls/1`, {
      method: "PATCH",
      headers: { Authorization: `Bearer ${world.forge.token}` },
      body: JSON.stringify({ body }),
    });
  };
  await edit(`A reviewer's words.\n\n${await bodyNow()}`);
  const follow = async (message: string): Promise<string> => {
    await client.session.message(id, { message });
    expect((await untilOver(client, id)).status).toBe("completed");
    return bodyNow();
  };
  expect(await follow("write b.txt: b, then say second turn")).toMatch(
    /^A reviewer's words\.\n\nfirst turn\n[^]*\n---\n\nsecond turn\n[^]*Made by \[this Offstage session\]/u,
  );
  await edit("All my own words.");
  expect(await follow("write c.txt: c, then say third turn")).toBe("All my own words.");
  expect(await world.forge.pullRequests("acme", name)).toHaveLength(1);
});

test("runs of an automation are titled by what they are about, as are their branches and pull requests", async () => {
  const { name, url } = await repository();
  await client.automation.create({
    name: "Fix a bug",
    macro: "titles",
    instructions: "write {{ event.file }}: x",
    repositories: [url],
  });
  const run = async (event: Record<string, unknown>) => {
    const { id } = await client.automation.trigger("titles", event);
    const sessionId = await waitFor(async () => (await client.job.get(id)).sessionId, "the job has its session");
    return untilOver(client, sessionId);
  };
  const one = await run({ file: "one.txt" });
  expect(one).toMatchObject({
    title: "write one.txt: x",
    branchName: /^offstage\/write-one-txt-x-/u.exec(one.branchName)?.input,
  });
  await client.automation.update("titles", { title: "Fix {{ event.issue.title }}\nand more" });
  const preview = await client.automation.preview("titles", { file: "x", issue: { title: "the login" } });
  expect(preview).toEqual({ prompt: "write x: x", title: "Fix the login" });
  const two = await run({ file: "two.txt", issue: { title: "the login" } });
  expect(two.title).toBe("Fix the login");
  expect((await world.forge.pullRequests("acme", name)).map(({ title }) => title)).toEqual([
    "write one.txt: x",
    "Fix the login",
  ]);
  await expect(client.automation.update("titles", { title: "{% if %}" })).rejects.toThrow(/^title: /u);
  await client.automation.update("titles", { title: null });
  expect((await run({ file: "three.txt" })).title).toBe("write three.txt: x");
});

test("a commit names its requester as co-author if that is a person with a verified address, and no one else", async () => {
  const { name, url } = await repository();
  const trailers = async (): Promise<string> => {
    const { id } = await client.session.create({ prompt: "write a.txt: a", repositories: [url] });
    const { branchName } = await untilOver(client, id);
    const { stdout } = await promisify(execFile)("git", ["log", "-1", "--format=%B", branchName], {
      cwd: world.forge.pathOf("acme", name),
    });
    return stdout
      .split("\n")
      .filter((line) => /co-authored|localhost/iu.test(line))
      .join("\n");
  };
  expect(await trailers()).toBe("");
  const pool = new pg.Pool({ connectionString: world.variables["DATABASE_URL"] });
  try {
    const user = crypto.randomUUID();
    await pool.query(
      `insert into user_account (id, organization_id, issuer, subject, name, role, email)
       select $1, id, 'https://id.example.com', 'ada', 'Ada <Lovelace>', 'member', null from organization`,
      [user],
    );
    await pool.query("update api_key set user_id = $1", [user]);
    expect(await trailers()).toBe("");
    await pool.query("update user_account set email = 'ada@example.com' where id = $1", [user]);
    expect(await trailers()).toBe("Co-authored-by: Ada Lovelace <ada@example.com>");
  } finally {
    await pool.query("update api_key set user_id = null");
    await pool.end();
  }
});

test("a draft waits until it is queued", async () => {
  const { name, url } = await repository();
  const body = { prompt: "write draft.txt: later", repositories: [url], queueRightAway: false };
  const session = await client.session.create(body);
  expect(session.status).toBe("draft");
  expect(await world.forge.pullRequests("acme", name)).toHaveLength(0);
  await client.session.queue(session.id);
  expect((await untilOver(client, session.id)).status).toBe("completed");
  expect(await world.forge.pullRequests("acme", name)).toHaveLength(1);
});

test("a follow-up lands as a new commit on the same pull request", async () => {
  const { name, url } = await repository();
  const session = await client.session.create({ prompt: "write first.txt: one", agent, repositories: [url] });
  const first = await untilOver(client, session.id);
  await client.session.message(session.id, { message: "write second.txt: two" });
  const second = await untilOver(client, session.id);
  expect(second.status).toBe("completed");
  expect(second.pullRequests).toEqual(first.pullRequests);
  expect(await world.forge.pullRequests("acme", name)).toHaveLength(1);
  expect(await showFile(url, second.branchName, "first.txt")).toBe("one");
  expect(await showFile(url, second.branchName, "second.txt")).toBe("two");
  const resumed = (await eventsOf(session.id)).filter((event) => event.type === "agent.started");
  expect(resumed.map((event) => event.data.resumed)).toEqual([false, true]);
});

test("no change completes without a pull request", async () => {
  const { name, url } = await repository();
  const session = await client.session.create({ prompt: "say nothing to do", repositories: [url] });
  const done = await untilOver(client, session.id);
  expect(done).toMatchObject({ status: "completed", pullRequests: [] });
  expect(await world.forge.pullRequests("acme", name)).toHaveLength(0);
});

test("a session without a repository works in a scratch folder", async () => {
  const session = await client.session.create({ prompt: "write note.txt: scratch" });
  expect(await untilOver(client, session.id)).toMatchObject({ status: "completed", pullRequests: [] });
});

test("cancelling in the middle of a turn ends it without waiting for it and leaves no process", async () => {
  const { name, url } = await repository();
  const mark = uniqueMark();
  const session = await client.session.create({ prompt: `shell sleep ${mark}`, agent, repositories: [url] });
  await waitFor(() => running(mark).length > 0, "the agent's command runs");
  await client.session.cancel(session.id);
  const done = await untilOver(client, session.id);
  expect(done.status).toBe("cancelled");
  expect(running(mark)).toEqual([]);
  expect(await world.forge.pullRequests("acme", name)).toHaveLength(0);
});

test("two sessions on one repository at once each get their own branch and pull request", async () => {
  const { name, url } = await repository();
  const sessions = await Promise.all(
    ["a", "b"].map((letter) =>
      client.session.create({ prompt: `write ${letter}.txt: ${letter}`, repositories: [url] }),
    ),
  );
  const done = await Promise.all(sessions.map((session) => untilOver(client, session.id)));
  expect(done.map((session) => session.status)).toEqual(["completed", "completed"]);
  expect(await world.forge.pullRequests("acme", name)).toHaveLength(2);
});

test("a repository that is not there fails with a clear reason", async () => {
  const session = await client.session.create({ prompt: "write x: y", repositories: [`${world.forge.url}/acme/none`] });
  const done = await untilOver(client, session.id);
  expect(done.status).toBe("failed");
  expect(done.failure?.code).toBe("repository_not_found");
  expect(done.failure?.reason).toContain("acme/none");
});

test("a rejected push fails with the server's words and keeps the diff", async () => {
  const { name, url } = await repository();
  await world.forge.failNext({ kind: "rejectPush", owner: "acme", name, message: "branches named so are not welcome" });
  const session = await client.session.create({ prompt: "write kept.txt: still here", repositories: [url] });
  const done = await untilOver(client, session.id);
  expect(done).toMatchObject({ status: "failed", failure: { code: "push_rejected" } });
  expect(done.failure?.reason).toContain("branches named so are not welcome");
  expect((await client.session.diff(session.id)).repositories[0]?.patch).toContain("+still here");
});

test("a prompt of Unicode and one of 100,000 characters arrive whole", async () => {
  const { name, url } = await repository();
  const prompt = "write ünï-🎭.txt: Grüße, 世界 🎭";
  const unicode = await client.session.create({ prompt, agent, repositories: [url] });
  const long = await client.session.create({ prompt: `say ok\n${"é".repeat(99_993)}`, repositories: [url] });
  const done = await untilOver(client, unicode.id);
  expect(done.status).toBe("completed");
  expect(await showFile(url, done.branchName, "ünï-🎭.txt")).toBe("Grüße, 世界 🎭");
  expect((await untilOver(client, long.id)).status).toBe("completed");
  expect(await world.forge.pullRequests("acme", name)).toHaveLength(1);
});

test("an automation triggered by id and by macro starts sessions that are linked both ways", async () => {
  const { name, url } = await repository();
  const automation = await client.automation.create({
    name: "Answer an issue",
    macro: `answer-${count}`,
    instructions: "write {{ event.file }}: {{ event.issue.title }}",
    repositories: [url],
  });
  const byId = await client.automation.trigger(automation.id, {
    file: "1.txt",
    issue: { title: "{{ event.secret }}" },
  });
  const byMacro = await client.automation.trigger(automation.macro, { file: "2.txt", issue: { title: "two" } });
  for (const job of [byId, byMacro]) {
    expect(job).toMatchObject({ task: "RunWorkflow", status: "pending", priority: 5 });
    const ran = await waitFor(async () => {
      const now = await client.job.get(job.id);
      return now.sessionId === null ? null : now;
    }, "the job ran");
    expect(ran.status).toBe("completed");
    const session = await untilOver(client, ran.sessionId ?? "");
    expect(session).toMatchObject({ status: "completed", jobId: job.id, automationId: automation.id });
  }
  expect(await world.forge.pullRequests("acme", name)).toHaveLength(2);
});

test("no credential reaches an event, an answer or the process list", async () => {
  const { url } = await repository();
  const prompt = "shell env; sleep 1; cat .git/config";
  const session = await client.session.create({ prompt, agent, repositories: [url] });
  const shown = new Set<string>();
  const watching = setInterval(() => {
    for (const line of commandLines()) shown.add(line);
  }, 25);
  const done = await untilOver(client, session.id);
  clearInterval(watching);
  const seen = [...shown].join("\n");
  expect(seen).toContain("opencode");
  const stored = JSON.stringify([done, await eventsOf(session.id), await client.session.diff(session.id)]);
  for (const secret of [world.forge.token, Buffer.from(`x-access-token:${world.forge.token}`).toString("base64")]) {
    expect(stored).not.toContain(secret);
    expect(seen).not.toContain(secret);
  }
  expect(stored).not.toContain(world.variables["OFFSTAGE_MODEL_API_KEY"]);
  expect(seen).not.toContain(world.variables["OFFSTAGE_MODEL_API_KEY"]);
});
