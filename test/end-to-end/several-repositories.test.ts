import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Client } from "../../src/client.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { callApi } from "../call.ts";
import { waitFor } from "../wait-for.ts";
import { createWorld, noticesOf, startInProcess, untilOver, type World } from "../world.ts";
import { script } from "./script.ts";

/** Sessions on several repositories, of which some refuse the work. */
let world: World;
let offstage: Offstage;
let client: Client;
let count = 0;

beforeAll(async () => {
  world = await createWorld(script);
  ({ offstage, client } = await startInProcess(world, { OFFSTAGE_DEFAULT_AGENT: "basic:scripted" }));
});

afterAll(async () => {
  await offstage?.stop();
  await world?.close();
});

interface Made {
  readonly name: string;
  readonly url: string;
}

async function repositories(): Promise<readonly [Made, Made, Made]> {
  const make = async (): Promise<Made> => {
    const name = `part-${(count += 1)}`;
    return { name, url: (await world.forge.createRepository("acme", name, { "a.txt": "a\n" })).url };
  };
  return [await make(), await make(), await make()];
}

const inAll = (made: readonly Made[]): string =>
  `shell for d in ${made.map(({ name }) => name).join(" ")}; do echo b > $d/b.txt; done`;
const pulls = ({ name }: Made) => world.forge.pullRequests("acme", name);
const refuse = ({ name }: Made) =>
  world.forge.failNext({ kind: "rejectPush", owner: "acme", name, message: "Nobody pushes here" });
const permit = ({ name }: Made) => rm(join(world.forge.pathOf("acme", name), "hooks/pre-receive"));
const retry = (id: string) => callApi(offstage.url, `/session/${id}/queue`, {});

test("a refused push holds back no other repository, and a retry delivers the rest", async () => {
  const made = await repositories();
  const [one, two, three] = made;
  await refuse(two);
  const { id, ...created } = await client.session.create({
    prompt: inAll(made),
    repositories: made.map(({ url }) => url),
  });
  const failed = await untilOver(client, id);
  expect(failed).toMatchObject({ status: "failed", failure: { code: "push_rejected" }, pullRequestsTogether: false });
  expect(failed.failure?.reason).toMatch(
    /^acme\/part-\d+: The server rejected the push of .*Nobody pushes here.* The work on acme\/part-\d+, acme\/part-\d+ is delivered\.$/u,
  );
  expect(failed.failure?.reason).toContain(`acme/${two.name}: `);
  expect([await pulls(one), await pulls(two), await pulls(three)].map(({ length }) => length)).toEqual([1, 0, 1]);
  expect(await noticesOf(client, id)).toContainEqual(
    expect.stringMatching(`^acme/${two.name} did not take the work, which holds back no other repository: `),
  );
  await permit(two);
  await retry(id);
  expect(await untilOver(client, id)).toMatchObject({ status: "completed", title: created.title, failure: null });
  expect([await pulls(one), await pulls(two), await pulls(three)].map(({ length }) => length)).toEqual([1, 1, 1]);
});

test("a refused pull request holds back no other repository", async () => {
  const made = await repositories();
  const [one, two, three] = made;
  const prompt = inAll(made).replace("shell ", "shell until test -e go; do sleep 0.2; done; ");
  const { id } = await client.session.create({ prompt, repositories: made.map(({ url }) => url) });
  const hasBegun = async (): Promise<boolean> =>
    (await client.session.events(id, { limit: 1_000 })).events.some(({ type }) => type === "agent.tool");
  await waitFor(hasBegun, "the turn begins");
  // From here on: before the turn the forge is asked whether it would take a pull request.
  await world.forge.failNext({ kind: "status", status: 403, name: one.name });
  await writeFile(join(world.data, "sessions", id, "workspace", "go"), "");
  const failed = await untilOver(client, id);
  expect(failed).toMatchObject({ status: "failed", failure: { code: "repository_access_denied" } });
  expect(failed.failure?.reason).toMatch(
    new RegExp(`^acme/${one.name}: .* The work on acme/${two.name}, acme/${three.name} is delivered\\.$`, "u"),
  );
  await retry(id);
  expect((await untilOver(client, id)).pullRequests).toHaveLength(3);
});

const counts = async (made: readonly Made[]): Promise<number[]> =>
  Promise.all(made.map(async (part) => (await pulls(part)).length));
const create = (made: readonly Made[], prompt: string, pullRequestsTogether = false) =>
  client.session.create({ prompt, repositories: made.map(({ url }) => url), pullRequestsTogether });
const tokenIn = ({ name }: Made): string => {
  const token = `ghp_${randomBytes(27).toString("base64").replaceAll(/[+/=]/gu, "x").slice(0, 36)}`;
  return `echo ${token} > ${name}/token.txt`;
};
/** An agent's own merge, of which it leaves a file unresolved. */
const leaveMerge = ({ name }: Made): string =>
  `cd ${name}; git checkout -q -b x; echo x > a.txt; git commit -qam x; git checkout -q -; echo y > a.txt; git commit -qam y; git merge -q x; cd ..`;

test("a secret in the work on one repository holds back no other, and the kept diff does not show it", async () => {
  const made = await repositories();
  const [one, two, three] = made;
  const order = `${inAll(made)}; ${tokenIn(two)}`;
  const { id } = await create(made, order);
  const failed = await untilOver(client, id);
  expect(failed).toMatchObject({ status: "failed", failure: { code: "token_in_work", retryable: true } });
  expect(failed.failure?.reason).toMatch(
    new RegExp(
      `^acme/${two.name}: What looks like a secret stands in token\\.txt .* The work on acme/${one.name}, acme/${three.name} is delivered\\.$`,
      "u",
    ),
  );
  expect(await counts(made)).toEqual([1, 0, 1]);
  expect(await noticesOf(client, id)).toContainEqual(
    expect.stringMatching(`^The work on acme/${two.name} may not be pushed, which holds back no other repository: `),
  );
  expect(JSON.stringify(await client.session.diff(id))).toContain("+[secret]");
  const [, path = "", body = ""] = /POST (\S+) with (\{.*?\})/u.exec(failed.failure?.remedy ?? "") ?? [];
  await callApi(offstage.url, path, JSON.parse(body));
  await retry(id);
  expect(await untilOver(client, id)).toMatchObject({ status: "completed", failure: null });
  expect(await counts(made)).toEqual([1, 1, 1]);
});

test("what holds back one repository is said once, though the agent gets further turns for another", async () => {
  const made = await repositories();
  const [, two, three] = made;
  const { id } = await create(made, `${inAll(made)}; ${tokenIn(two)}; ${leaveMerge(three)}`);
  const failed = await untilOver(client, id);
  expect(failed.failure?.reason).toContain(`acme/${three.name}: The agent left a merge unresolved`);
  const { events } = await client.session.events(id, { limit: 1_000 });
  const rounds = events.filter((event) => event.type === "step.started" && event.data.step === "commit");
  // The positive control: in each of them it was held back.
  expect(rounds.length).toBeGreaterThan(1);
  const notices = await noticesOf(client, id);
  expect(notices.filter((text) => text.startsWith(`The work on acme/${two.name} may not be pushed`))).toHaveLength(1);
});

test("beside a push that is refused, the kept diff does not show a secret either", async () => {
  const made = await repositories();
  const [one, two] = made;
  await refuse(one);
  const order = `${inAll(made)}; ${tokenIn(two)}`;
  const { id } = await create(made, order);
  const failed = await untilOver(client, id);
  expect(failed.failure?.reason).toContain(`acme/${one.name}: The server rejected`);
  expect(failed.failure?.reason).toContain(`acme/${two.name}: What looks like a secret`);
  expect(await counts(made)).toEqual([0, 0, 1]);
  const diff = JSON.stringify(await client.session.diff(id));
  expect(diff).toContain("+[secret]");
  expect(diff).not.toMatch(/ghp_\w{36}/u);
});

test("a merge that the agent leaves unresolved in one repository holds back no other", async () => {
  const made = await repositories();
  const [one, two, three] = made;
  const { id } = await create(made, `${inAll(made)}; ${leaveMerge(two)}`);
  const failed = await untilOver(client, id);
  expect(failed).toMatchObject({ status: "failed", failure: { code: "branch_diverged" } });
  expect(failed.failure?.reason).toMatch(
    new RegExp(
      `^acme/${two.name}: The agent left a merge unresolved in "a.txt".* The work on acme/${one.name}, acme/${three.name} is delivered\\.$`,
      "u",
    ),
  );
  expect(await counts(made)).toEqual([1, 0, 1]);
  await client.session.message(id, {
    message: `shell cd ${two.name}; echo both > a.txt; git add a.txt; git commit -qm Both`,
  });
  expect(await untilOver(client, id)).toMatchObject({ status: "completed", failure: null });
  expect(await counts(made)).toEqual([1, 1, 1]);
});

test("a conflict with others' commits that the agent leaves in one repository holds back no other", async () => {
  const made = await repositories();
  const [one, two] = made;
  const { id } = await create(made, inAll(made));
  const { status, branchName } = await untilOver(client, id);
  expect(status).toBe("completed");
  await refuse(two);
  await client.session.message(id, { message: `shell echo mine > ${two.name}/a.txt` });
  expect(await untilOver(client, id)).toMatchObject({ status: "failed", failure: { code: "push_rejected" } });
  await permit(two);
  await world.forge.commit("acme", two.name, branchName, { "a.txt": "theirs\n" });
  await client.session.message(id, { message: `shell for d in ${one.name} ${two.name}; do echo c > $d/c.txt; done` });
  const failed = await untilOver(client, id);
  expect(failed).toMatchObject({ status: "failed", failure: { code: "branch_diverged" } });
  expect(failed.failure?.reason).toMatch(new RegExp(`^acme/${two.name}: What others committed to .* collides`, "u"));
  const filesOf = ({ name }: Made): string[] =>
    execFileSync("git", ["-C", world.forge.pathOf("acme", name), "ls-tree", "--name-only", branchName], {
      encoding: "utf8",
    })
      .trim()
      .split("\n");
  expect([filesOf(one), filesOf(two)]).toEqual([
    ["a.txt", "b.txt", "c.txt"],
    ["a.txt", "b.txt"],
  ]);
});

test("together, a secret or an unresolved merge in one repository holds back all", async () => {
  const made = await repositories();
  const [, two] = made;
  const withSecret = await create(made, `${inAll(made)}; ${tokenIn(two)}`, true);
  expect(await untilOver(client, withSecret.id)).toMatchObject({ failure: { code: "token_in_work" } });
  const withMerge = await create(made, `${inAll(made)}; ${leaveMerge(two)}`, true);
  expect(await untilOver(client, withMerge.id)).toMatchObject({ failure: { code: "branch_diverged" } });
  const branches = ({ name }: Made): string =>
    execFileSync("git", ["-C", world.forge.pathOf("acme", name), "branch", "--format=%(refname:short)"], {
      encoding: "utf8",
    }).trim();
  expect(made.map(branches)).toEqual(["main", "main", "main"]);
});

test("together, a refused push keeps every pull request from being opened, and the pushed branches stay", async () => {
  const made = await repositories();
  const [one, two, three] = made;
  await refuse(two);
  const { id } = await client.session.create({
    prompt: inAll(made),
    repositories: made.map(({ url }) => url),
    pullRequestsTogether: true,
  });
  const failed = await untilOver(client, id);
  expect(failed).toMatchObject({ status: "failed", failure: { code: "push_rejected" }, pullRequestsTogether: true });
  expect(failed.failure?.reason).toMatch(
    new RegExp(
      `^acme/${two.name}: The server rejected .* No pull request was opened, since this session opens them together or not at all\\. The branch ${failed.branchName} is pushed to acme/${one.name}, and stays\\.$`,
      "u",
    ),
  );
  expect([await pulls(one), await pulls(two), await pulls(three)].flat()).toEqual([]);
  await permit(two);
  await retry(id);
  const done = await untilOver(client, id);
  expect(done).toMatchObject({ status: "completed", failure: null });
  for (const part of made) expect(await pulls(part)).toMatchObject([{ head: done.branchName }]);
});

test("pull requests of one session link to each other, those that were opened before too", async () => {
  const made = await repositories();
  const [one, two, three] = made;
  await refuse(three);
  const { id } = await client.session.create({ prompt: inAll(made), repositories: made.map(({ url }) => url) });
  await untilOver(client, id);
  const bodyOf = async (part: Made): Promise<string> => (await pulls(part))[0]?.body ?? "";
  const linkTo = ({ name, url }: Made): string => `[acme/${name} #1](${url}/pull/1)`;
  await waitFor(async () => (await bodyOf(one)).includes(linkTo(two)), "the first links to the second");
  expect(await bodyOf(two)).toContain(linkTo(one));
  expect(await bodyOf(one)).not.toContain(linkTo(three));
  await permit(three);
  await retry(id);
  await untilOver(client, id);
  const all = `- It goes with ${linkTo(one)}, ${linkTo(two)}.`;
  expect(await bodyOf(three)).toContain(all);
  await waitFor(
    async () => (await bodyOf(one)).includes(`- It goes with ${linkTo(two)}, ${linkTo(three)}.`),
    "the first links to both",
  );
  await waitFor(
    async () => (await bodyOf(two)).includes(`- It goes with ${linkTo(one)}, ${linkTo(three)}.`),
    "the second links to both",
  );
});

test("the sessions of an automation have what it says", async () => {
  const made = await repositories();
  const automation = await client.automation.create({
    name: "Together",
    macro: "together",
    instructions: inAll(made),
    repositories: made.map(({ url }) => url),
    pullRequestsTogether: true,
  });
  expect(automation.pullRequestsTogether).toBe(true);
  await refuse(made[0]);
  const { id } = await client.automation.trigger("together", {});
  const sessionId = await waitFor(async () => (await client.job.get(id)).sessionId, "the job has its session");
  expect(await untilOver(client, sessionId)).toMatchObject({ status: "failed", pullRequestsTogether: true });
  expect(await pulls(made[1])).toEqual([]);
  expect((await client.automation.update("together", { pullRequestsTogether: false })).pullRequestsTogether).toBe(
    false,
  );
});
