import { randomBytes } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "../../src/client.ts";
import type { SessionEvent } from "../../src/domain/sessions/event.ts";
import type { SessionDetail } from "../../src/domain/sessions/session.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { callApi } from "../call.ts";
import { createWorld, startInProcess, untilOver, type World } from "../world.ts";
import { script } from "./script.ts";

let world: World;
let offstage: Offstage;
let client: Client;
let count = 0;

beforeAll(async () => {
  world = await createWorld(script);
  // A setup that fails is not run again, but for what asks for it.
  const overrides = { OFFSTAGE_DEFAULT_AGENT: "basic:scripted", OFFSTAGE_RETRY_HOURS: "0" };
  ({ offstage, client } = await startInProcess(world, overrides));
});

afterAll(async () => {
  await offstage?.stop();
  await world?.close();
});

interface TestRepository {
  readonly id: string;
  readonly name: string;
  readonly url: string;
}

async function repository(files: Record<string, string> = {}, environment: unknown = {}): Promise<TestRepository> {
  const name = `setup-${(count += 1)}`;
  const { url } = await world.forge.createRepository("acme", name, { "README.md": "# Before\n", ...files });
  const { id } = await callApi(offstage.url, "/repository/create", { url });
  await callApi(offstage.url, `/repository/${id}/environment`, environment);
  return { id, name, url };
}

interface Done {
  readonly session: SessionDetail;
  readonly setup: string;
  /** What the agent's commands printed. */
  readonly output: string;
  readonly events: readonly SessionEvent[];
}

async function run(prompt: string, { url }: TestRepository): Promise<Done> {
  const { id } = await client.session.create({ prompt, repositories: [url] });
  const session = await untilOver(client, id);
  return look(session);
}

async function look(session: SessionDetail): Promise<Done> {
  const { events } = await client.session.events(session.id, { limit: 1_000 });
  const setup = events.flatMap((event) => (event.type === "setup.output" ? [event.data.text] : [])).join("");
  const output = events.flatMap((event) =>
    event.type === "agent.tool" && event.data.status !== "in_progress" ? event.data.content : [],
  );
  return {
    session,
    setup,
    events,
    output: output.map((content) => (content.type === "text" ? content.text : "")).join("\n"),
  };
}

describe("a repository's setup script", () => {
  test("runs before the agent, which finds what it made, and none of it is in the pull request", async () => {
    const setupScript = `
      echo making; mkdir -p node_modules/left-pad "a folder"
      echo made > node_modules/left-pad/index.js; echo x > "a folder/[odd] #name"; echo changed >> README.md
      echo kept > ~/tool`;
    const made = await repository({ ".gitignore": "node_modules\n" }, { setupScript, variables: { GREETING: "hi" } });
    const order =
      "shell cat node_modules/left-pad/index.js ~/tool; echo $GREETING; git status --short, then write a.txt: a";
    const { session, setup, output } = await run(order, made);
    expect(session).toMatchObject({ status: "completed" });
    expect(setup).toContain("making");
    expect(output).toContain("made\nkept\nhi\n");
    const { patch } = (await client.session.diff(session.id)).repositories[0] ?? { patch: "" };
    expect(patch).toContain("a.txt");
    expect(patch).not.toMatch(/odd|changed|README/u);
  });

  test("that fails fails the session with its log, and a retry runs it again", async () => {
    const made = await repository({}, { setupScript: "echo first line; echo to stderr >&2; false; echo never" });
    const { session, setup } = await run("say hello", made);
    expect(session).toMatchObject({
      status: "failed",
      failure: { code: "setup_failed", reason: expect.stringContaining("first line\nto stderr") as string },
    });
    expect(setup).toContain("to stderr");
    expect(setup).not.toContain("never");
    await callApi(offstage.url, `/repository/${made.id}/environment`, { setupScript: "echo mended" });
    await client.session.queue(session.id);
    expect((await untilOver(client, session.id)).status).toBe("completed");
  });

  test("is tried without an agent: it runs again although its result is kept, and nothing is asked of a model", async () => {
    const made = await repository({}, { setupScript: "echo trial $GREETING", variables: { GREETING: "hi" } });
    await run("say hello", made);
    const asked = world.model.requests.length;
    const { id } = await client.repository.trySetup(made.id);
    const { session, setup, events } = await look(await untilOver(client, id));
    expect(session).toMatchObject({
      status: "completed",
      setupTrial: true,
      summary: "The setup works.",
      pullRequests: [],
      spentUsd: 0,
    });
    expect(setup).toBe("trial hi\n");
    expect(events.filter(({ type }) => type === "step.started").map(({ data }) => data)).toMatchObject([
      { step: "prepare" },
      { step: "setup" },
    ]);
    expect(world.model.requests.length).toBe(asked);
    await expect(client.session.message(id, { message: "Go on" })).rejects.toMatchObject({ status: 409 });
    await callApi(offstage.url, `/repository/${made.id}/environment`, { setupScript: "echo broken; false" });
    await client.session.queue(id);
    expect(await untilOver(client, id)).toMatchObject({ status: "failed", failure: { code: "setup_failed" } });
  });

  test("that does not exist is reported by its trial", async () => {
    const made = await repository();
    const { id } = await client.repository.trySetup(made.id);
    const session = await untilOver(client, id);
    expect([session.status, session.summary]).toEqual([
      "completed",
      "There is no setup to run: the repository's environment has no script, and its files name none.",
    ]);
  });

  test("that never ends is ended by a cancel", async () => {
    const made = await repository({}, { setupScript: "echo begun; sleep 1000" });
    const { id } = await client.session.create({ prompt: "say x", repositories: [made.url] });
    for await (const event of client.streamEvents(id, {})) {
      if (event.type === "setup.output" && event.data.text.includes("begun")) break;
    }
    await client.session.cancel(id);
    expect((await untilOver(client, id)).status).toBe("cancelled");
  });

  test("runs with the interpreter that its first line names", async () => {
    const made = await repository({}, { setupScript: "#!/usr/bin/env node\nconsole.log('from ' + 'node')" });
    expect((await run("say hello", made)).setup).toContain("from node");
  });

  test("is not run again for a follow-up", async () => {
    const made = await repository({}, { setupScript: "echo ran" });
    const { session } = await run("write a.txt: a", made);
    await client.session.message(session.id, { message: "write b.txt: b" });
    const after = await look(await untilOver(client, session.id));
    expect(after.session.status).toBe("completed");
    expect(after.setup.match(/ran/gu)).toHaveLength(1);
  });
});

describe("the result of a setup", () => {
  const setupScript = `
    date +%s%N > node_modules.stamp; mkdir -p .venv/bin; ln -s /bin/sh .venv/bin/run
    printf '#!%s/.venv/bin/run\\necho from the environment\\n' "$PWD" > .venv/bin/tool; chmod +x .venv/bin/tool
    echo "set up anew"`;

  test("is reused while its inputs are the same, in another session's folders too", async () => {
    const made = await repository({ ".gitignore": ".venv\n", "package-lock.json": "{}\n" }, { setupScript });
    const first = await run("shell cat node_modules.stamp; .venv/bin/tool", made);
    const second = await run("shell cat node_modules.stamp; .venv/bin/tool; git status --short", made);
    expect(first.setup).toContain("set up anew");
    expect(second.setup).toMatch(/^Reused/u);
    expect(first.output).toContain("from the environment");
    expect(second.output).toBe(first.output);
  });

  test.each([
    ["the script changes", { setupScript: `${setupScript}\n# changed` }, {}],
    ["a variable changes", { variables: { A: "2" } }, {}],
    ["a lock file changes", {}, { "deep/down/Cargo.lock": "new\n" }],
  ])("is made anew when %s", async (_, environment, files) => {
    const made = await repository({ "package-lock.json": "{}\n" }, { setupScript, variables: { A: "1" } });
    await run("say first", made);
    await callApi(offstage.url, `/repository/${made.id}/environment`, environment);
    if (Object.keys(files).length > 0) await world.forge.commit("acme", made.name, "main", files);
    const again = await run("say second", made);
    expect(again.session.failure).toBeNull();
    expect(again.setup).toContain("set up anew");
  });

  test("is neither kept nor reused for a branch that was worked on: it could hold an agent's code", async () => {
    const made = await repository({}, { setupScript: "sh ./install.sh; echo set up anew" });
    await world.forge.commit("acme", made.name, "main", { "install.sh": "echo good > tool\n" });
    await world.forge.commit("acme", made.name, "offstage/evil", { "install.sh": "echo evil > tool\n" });
    const onBranch = { repositories: [made.url], branchName: "offstage/evil" };
    const evil = await client.session.create({ prompt: "shell cat tool", ...onBranch });
    expect((await look(await untilOver(client, evil.id))).output).toContain("evil");
    const { setup, output } = await run("shell cat tool", made);
    expect(setup).toContain("set up anew");
    expect(output).toContain("good");
  });
});

describe("secrets", () => {
  const value = "s3cret-for-the-registry/+";

  test("of the setup phase reach the script and not the agent; those of the agent's reach it", async () => {
    const made = await repository({}, { setupScript: 'test -n "$REGISTRY_TOKEN" && echo has the token' });
    await callApi(offstage.url, "/secret/create", { name: "REGISTRY_TOKEN", value, repositoryId: made.id });
    const forAgent = { name: "API_TOKEN", value: `${value}-agent`, phases: ["agent"], repositoryId: made.id };
    await callApi(offstage.url, "/secret/create", forAgent);
    const { setup, output, session } = await run(
      'shell echo "registry=$REGISTRY_TOKEN length=$(echo -n "$API_TOKEN" | wc -c)"; env | grep -c REGISTRY',
      made,
    );
    expect(session.status).toBe("completed");
    expect(setup).toContain("has the token");
    expect(output).toContain(`registry= length=${value.length + 6}`);
  });

  test("of another repository are not there", async () => {
    const owner = await repository();
    await callApi(offstage.url, "/secret/create", {
      name: "THEIRS",
      value: `${value}-theirs`,
      phases: ["setup", "agent"],
      repositoryId: owner.id,
    });
    const made = await repository({}, { setupScript: 'echo "theirs=$THEIRS."' });
    const { setup, output } = await run('shell echo "theirs=$THEIRS."', made);
    expect(setup).toContain("theirs=.");
    expect(output).toContain("theirs=.");
  });

  test("are masked wherever they are printed, in the spellings that programs print", async () => {
    const made = await repository(
      {},
      { setupScript: 'for i in $(seq 200); do printf "%s" "$LEAKY"; done; echo "$LEAKY" | base64 -w 0' },
    );
    const secret = `leaky/${value}+0123456789`;
    const phases = ["setup", "agent"];
    await callApi(offstage.url, "/secret/create", { name: "LEAKY", value: secret, phases, repositoryId: made.id });
    const { session } = await run(
      'shell echo "$LEAKY"; echo "$LEAKY" | base64; echo "token:$LEAKY" | base64 -w 0; echo "$LEAKY" | xxd -p | tr -d "\\n"; node -p "encodeURIComponent(process.env.LEAKY)"; echo "$LEAKY" > leak.txt, then say $LEAKY',
      made,
    );
    const diff = await client.session.diff(session.id);
    const all = JSON.stringify([await look(session), diff]);
    for (const spelt of [
      secret,
      Buffer.from(secret).toString("base64").slice(0, 30),
      Buffer.from(`token:${secret}`).toString("base64").slice(10, 40),
      Buffer.from(secret).toString("hex"),
      encodeURIComponent(secret),
    ]) {
      expect(all).not.toContain(spelt);
    }
    expect(all).toContain("[secret]");
    expect(session).toMatchObject({ status: "failed", failure: { code: "secret_in_work" } });
    expect(session.failure?.reason).toContain("LEAKY");
    expect(await world.forge.pullRequests("acme", made.name)).toEqual([]);
  });

  test("in an earlier commit keep the work from being pushed as well, until that commit is rewritten", async () => {
    const made = await repository();
    const phases = ["agent"];
    await callApi(offstage.url, "/secret/create", {
      name: "COMMITTED",
      value: `${value}-c`,
      phases,
      repositoryId: made.id,
    });
    const commit = "git -c user.name=a -c user.email=a@b commit -qam";
    const { session } = await run(
      `shell echo "$COMMITTED" >> README.md; ${commit} one; git checkout -q HEAD~1 -- README.md; echo x > x; git add x; ${commit} two`,
      made,
    );
    expect(session).toMatchObject({ status: "failed", failure: { code: "secret_in_work" } });
    await client.session.message(session.id, { message: "shell git reset -q --soft HEAD~2; git status --short" });
    expect((await untilOver(client, session.id)).status).toBe("completed");
    expect(await world.forge.pullRequests("acme", made.name)).toHaveLength(1);
  });

  test("of several lines are masked and kept from being pushed as well, line by line", async () => {
    const made = await repository();
    const body = Array.from({ length: 4 }, () => randomBytes(48).toString("base64"));
    const pem = `-----BEGIN PRIVATE KEY-----\n${body.join("\n")}\n-----END PRIVATE KEY-----\n`;
    const secret = { name: "DEPLOY_KEY", value: pem, phases: ["agent"], repositoryId: made.id };
    await callApi(offstage.url, "/secret/create", secret);
    const { session, output } = await run(
      'shell printf "%s" "$DEPLOY_KEY" > id_key; cat id_key; cat -n id_key; grep -n . id_key; git add id_key; git diff --cached; base64 id_key; echo printed',
      made,
    );
    // It ran, and what it printed was seen.
    expect(output).toContain("printed");
    const all = JSON.stringify([await look(session), await client.session.diff(session.id)]);
    for (const line of body) {
      expect(all).not.toContain(line);
      expect(all).not.toContain(Buffer.from(line).toString("base64").slice(8, 40));
    }
    expect(session).toMatchObject({ status: "failed", failure: { code: "secret_in_work" } });
    expect(session.failure?.reason).toContain("the value of DEPLOY_KEY in id_key of commit ");
    expect(await world.forge.pullRequests("acme", made.name)).toEqual([]);
  });

  test("that Offstage does not know are not pushed either if they look like one, until an admin allows them", async () => {
    const made = await repository();
    const token = `ghp_${randomBytes(27).toString("base64").replaceAll(/[+/=]/gu, "x").slice(0, 36)}`;
    const { session } = await run(`write src/config.ts: ${token}`, made);
    expect(session).toMatchObject({ status: "failed", failure: { code: "token_in_work", retryable: true } });
    const { reason = "", remedy = "" } = session.failure ?? {};
    expect(reason).toMatch(/src\/config\.ts of commit [0-9a-f]{10}, line 1 \(rule github, fingerprint [0-9a-f]{24}\)/u);
    expect(await world.forge.pullRequests("acme", made.name)).toEqual([]);
    // Nor does the diff that is kept of the work show it.
    const diff = JSON.stringify(await client.session.diff(session.id));
    expect(diff).toContain("+[secret]");
    expect(reason + remedy + diff).not.toContain(token);
    // The remedy is the one command that it names.
    const [, path = "", body = ""] = /POST (\S+) with (\{.*?\})/u.exec(remedy) ?? [];
    await callApi(offstage.url, path, JSON.parse(body));
    await client.session.queue(session.id);
    expect((await untilOver(client, session.id)).status).toBe("completed");
    expect(await world.forge.pullRequests("acme", made.name)).toHaveLength(1);
  });

  test("lie on the disk of the server in no readable form", async () => {
    const secret = "value-to-look-for-on-disk";
    await callApi(offstage.url, "/secret/create", { name: "ON_DISK", value: secret });
    const made = await repository({}, { setupScript: "echo quiet" });
    await run("say x", made);
    const files = (await readdir(world.data, { recursive: true, withFileTypes: true })).filter((entry) =>
      entry.isFile(),
    );
    const holding: string[] = [];
    for (const { parentPath, name } of files) {
      const content = await readFile(join(parentPath, name)).catch(() => Buffer.alloc(0));
      if (content.includes(secret)) holding.push(name);
    }
    expect(holding).toEqual([]);
  });
});

describe("devcontainer.json", () => {
  const devcontainer = `{
    // With comments, as they are.
    "image": "debian",
    "onCreateCommand": "echo one",
    "postCreateCommand": { "a": "echo two", "b": ["echo", "three's"] },
    "containerEnv": { "WHERE": "\${containerWorkspaceFolder}", "HOSTS": "\${localEnv:HOME}", "PATH": "/evil" },
  }`;

  test("says how to set up if the repository's settings do not", async () => {
    const made = await repository({ ".devcontainer/devcontainer.json": devcontainer });
    const { setup, output } = await run('shell echo "where=$WHERE hosts=$HOSTS"', made);
    expect(setup).toContain("one\ntwo\nthree's\n");
    expect(output).toMatch(new RegExp(`where=/.*/workspace/${made.name} hosts=\\n`, "u"));
  });

  test("is read from the branch that the work goes back to, not from the work branch", async () => {
    const made = await repository({ ".devcontainer.json": '{ "postCreateCommand": "echo good" }' });
    await world.forge.commit("acme", made.name, "evil", {
      ".devcontainer.json": '{ "postCreateCommand": "echo evil" }',
    });
    const { id } = await client.session.create({ prompt: "say x", repositories: [made.url], branchName: "evil" });
    const { setup } = await look(await untilOver(client, id));
    expect(setup).toContain("good\n");
    expect(setup).not.toContain("evil\n");
  });

  test("that can't be read is reported and skipped", async () => {
    const made = await repository({ ".devcontainer.json": "{ broken" });
    const { session, events } = await run("say x", made);
    expect(session.status).toBe("completed");
    const notices = events.flatMap((event) => (event.type === "notice" ? [event.data.text] : []));
    expect(notices.join()).toContain(".devcontainer.json is not used: it is no JSON");
  });
});
