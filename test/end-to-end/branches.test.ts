import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "../../src/client.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import type { Script } from "../model/server.ts";
import { inOtherClone } from "../other-clone.ts";
import { waitFor } from "../wait-for.ts";
import { createWorld, noticesOf, startInProcess, untilOver, type World } from "../world.ts";
import { letGo, script as ordered, untilLetGo } from "./script.ts";

/** Branches that others move: before a follow-up, during a turn, by force, and away. */
let world: World;
let offstage: Offstage;
let client: Client;
let count = 0;

/** How an agent resolves a conflict in `a.txt`: both sides' lines, without the markers. */
const resolve = "sed -i '/^[<=>]\\{7\\}/d' a.txt && git add a.txt && git commit -q --no-edit";
/** The agent's prompts, in order. */
const prompts: string[] = [];
/** The agent's actions if its prompt has a conflict. */
let onConflict = resolve;
/** Whether the model does not answer prompts with a conflict. */
let isModelAway = false;

const script: Script = (message, conversation) => {
  if (conversation.step === 0) prompts.push(message);
  const isConflict = message.includes("First of all");
  const rest = typeof ordered === "function" ? ordered(message, conversation) : ordered;
  if (isConflict && isModelAway) return [{ fail: { status: 503, message: "overloaded for a while" } }];
  return isConflict ? [{ shell: onConflict }, ...rest] : rest;
};

beforeAll(async () => {
  world = await createWorld(script);
  ({ offstage, client } = await startInProcess(world, { OFFSTAGE_DEFAULT_AGENT: "basic:scripted" }));
});

afterAll(async () => {
  await offstage?.stop();
  await world?.close();
});

interface Begun {
  readonly id: string;
  readonly name: string;
  readonly url: string;
  /** Commands in another person's clone, in which the work branch is checked out. */
  readonly others: (commands: string) => Promise<string>;
  readonly lines: (path: string) => Promise<string[]>;
}

const pushed = (message: string): string => `git add -A && git commit -qm '${message}' && git push -q origin HEAD:work`;

/** A session that has opened its pull request from the branch `work`, in which it changed the last line of `a.txt`. */
async function begin(): Promise<Begun> {
  const name = `moving-${(count += 1)}`;
  const { url } = await world.forge.createRepository("acme", name, { "a.txt": "1\n2\n3\n4\n5\n" });
  const prompt = "shell sed -i 's/5/five/' a.txt";
  const { id } = await client.session.create({ prompt, repositories: [url], branchName: "work" });
  expect(await untilOver(client, id)).toMatchObject({ status: "completed", failure: null });
  const others = (commands: string): Promise<string> => inOtherClone(world, url, `git checkout -q work && ${commands}`);
  const lines = async (path: string): Promise<string[]> => (await others(`cat '${path}'`)).split("\n");
  return { id, name, url, others, lines };
}

/** @param meanwhile what is done elsewhere while the agent's command runs, which waits for it */
async function say({ id, name }: Begun, order: string, status = "completed", meanwhile?: () => Promise<unknown>) {
  prompts.length = 0;
  const message = meanwhile === undefined ? order : order.replace("shell ", `shell ${untilLetGo}; rm .git/go; `);
  await client.session.message(id, { message });
  if (meanwhile !== undefined) {
    await waitFor(() => Promise.resolve(prompts.length > 0), "the agent works");
    await meanwhile();
    await letGo(world.data, id, name);
  }
  const session = await untilOver(client, id);
  expect([session.status, session.failure]).toEqual([status, status === "completed" ? null : session.failure]);
  return session;
}

const notices = ({ id }: Begun): Promise<string[]> => noticesOf(client, id);
const turns = (): number => prompts.length;

describe("before a follow-up", () => {
  test("the agent sees others' commits to the branch, and its work comes on top", async () => {
    const session = await begin();
    await session.others(`sed -i 's/1/one/' a.txt && ${pushed("A reviewer commits")}`);
    await say(session, "shell head -1 a.txt > seen.txt");
    expect(prompts[0]).toContain("Others committed to work");
    expect(await session.lines("seen.txt")).toEqual(["one"]);
    expect(await session.others("git log --format=%s -1 HEAD^")).toBe("A reviewer commits");
    expect(await session.others("git log --merges --oneline")).toBe("");
    expect(await world.forge.pullRequests("acme", session.name)).toHaveLength(1);
    // Their commit is not the session's.
    const { events } = await client.session.events(session.id, { limit: 1_000 });
    const subjects = events.flatMap((event) => (event.type === "workspace.commit" ? [event.data.subject] : []));
    expect(subjects).not.toContain("A reviewer commits");
  });

  test("the target branch that was merged into it does not count as the session's change", async () => {
    const session = await begin();
    await inOtherClone(world, session.url, "echo t > target.txt && git add -A && git commit -qm T && git push -q");
    await session.others("git merge -q --no-edit origin/main && git push -q");
    await say(session, "shell cat target.txt > seen.txt");
    expect(await session.lines("seen.txt")).toEqual(["t"]);
    const [repository] = (await client.session.diff(session.id)).repositories;
    expect(repository?.patch).toContain("+five");
    expect(repository?.patch).not.toContain("target.txt");
  });

  test("a follow-up that changes nothing pushes nothing over others' commits", async () => {
    const session = await begin();
    await session.others(`echo c > c.txt && ${pushed("C")}`);
    const before = await session.others("git rev-parse HEAD");
    await say(session, "say hello");
    expect(await session.others("git rev-parse HEAD")).toBe(before);
    await say(session, "write d.txt: d");
    expect(await session.others("git rev-parse HEAD^")).toBe(before);
  });

  test("work that was not pushed yet is merged with others' commits", async () => {
    const session = await begin();
    await world.forge.failNext({ kind: "rejectPush", owner: "acme", name: session.name, message: "not today" });
    await say(session, "write mine.txt: mine", "failed");
    await rm(join(world.forge.pathOf("acme", session.name), "hooks/pre-receive"));
    await session.others(`echo c > c.txt && ${pushed("C")}`);
    await say(session, "shell ls > seen.txt");
    expect(await session.lines("seen.txt")).toEqual(["a.txt", "c.txt", "mine.txt", "seen.txt"]);
    expect(await session.others("git log --merges --format=%s")).toContain("Merge what others committed to work");
  });

  test("a conflict is the agent's first task, in the same turn", async () => {
    const session = await begin();
    await world.forge.failNext({ kind: "rejectPush", owner: "acme", name: session.name, message: "not today" });
    await say(session, "shell sed -i 's/1/eins/' a.txt", "failed");
    await rm(join(world.forge.pathOf("acme", session.name), "hooks/pre-receive"));
    await session.others(`sed -i 's/1/one/' a.txt && ${pushed("Theirs")}`);
    await say(session, "write done.txt: done");
    expect(turns()).toBe(1);
    expect(prompts[0]).toMatch(/First of all, resolve a conflict.*"a\.txt".*go on with this task:\s+write done\.txt/su);
    expect(await session.lines("a.txt")).toEqual(["eins", "one", "2", "3", "4", "five"]);
    expect(await session.lines("done.txt")).toEqual(["done"]);
    expect(await notices(session)).toContainEqual(expect.stringMatching(/collides with the session's work in a\.txt/u));
  });

  test("a branch that a reviewer rewrote is the base, and what was taken out does not come back", async () => {
    const session = await begin();
    await say(session, "write dropped.txt: d");
    await session.others("git reset -q --hard HEAD^ && git commit -q --amend -m Reworded && git push -q --force");
    await say(session, "shell ls > seen.txt");
    expect(await session.lines("seen.txt")).toEqual(["a.txt", "seen.txt"]);
    expect(await session.others("git log --format=%s -1 HEAD^")).toBe("Reworded");
  });
});

const theirs = (session: Begun): Promise<string> => session.others(`sed -i 's/1/one/' a.txt && ${pushed("Theirs")}`);

describe("while the agent works", () => {
  test("others' pushes are merged without another turn", async () => {
    const session = await begin();
    await say(session, "shell echo mine > mine.txt", "completed", () => theirs(session));
    expect(turns()).toBe(1);
    expect((await session.lines("a.txt"))[0]).toBe("one");
    expect(await session.lines("mine.txt")).toEqual(["mine"]);
    // The next turn begins with it.
    await say(session, "shell head -1 a.txt > seen.txt");
    expect(await session.lines("seen.txt")).toEqual(["one"]);
    expect(await world.forge.pullRequests("acme", session.name)).toHaveLength(1);
  });

  test("what a reviewer takes out by force does not come back, nor in the turn after", async () => {
    const session = await begin();
    await say(session, "write dropped.txt: d");
    const reset = "git reset -q --hard HEAD^ && git commit -q --amend -m Reworded && git push -q --force";
    await say(session, "shell echo fresh > fresh.txt", "completed", () => session.others(reset));
    expect(await session.others("ls")).toBe("a.txt\nfresh.txt");
    const said = await notices(session);
    expect(said).toContainEqual(expect.stringMatching(/was rewritten meanwhile.* only the work since then on top/u));
    expect((await client.session.diff(session.id)).repositories[0]?.patch).toContain("dropped.txt");
    await say(session, "shell ls > seen.txt");
    expect((await client.session.diff(session.id)).repositories[0]?.patch).not.toContain("dropped.txt");
    expect(await session.lines("seen.txt")).toEqual(["a.txt", "fresh.txt", "seen.txt"]);
    expect(await session.others("git log --format=%s -1 HEAD^^")).toBe("Reworded");
  });

  test("what collides with it is resolved in one more turn, then pushed", async () => {
    const session = await begin();
    await say(session, "shell sed -i 's/1/eins/' a.txt", "completed", () => theirs(session));
    expect(turns()).toBe(2);
    expect(await session.lines("a.txt")).toEqual(["eins", "one", "2", "3", "4", "five"]);
    expect(await session.others("git log --merges --oneline")).not.toBe("");
  });

  test("markers that the agent leaves are never pushed, and its prompt says so once more before the session fails", async () => {
    const session = await begin();
    const before = "echo nothing";
    onConflict = before;
    try {
      const order = "shell sed -i 's/1/eins/' a.txt";
      const { failure } = await say(session, order, "failed", () => theirs(session));
      expect(turns()).toBe(3);
      expect(failure).toMatchObject({ code: "branch_diverged", retryable: false });
      expect(failure?.reason).toContain("a.txt");
      expect(await session.others("git log --format=%s -1")).toBe("Theirs");
    } finally {
      onConflict = resolve;
    }
    // A person tells the agent how, and it goes on from there.
    await say(session, "shell sed -i '/^[<=>]\\{7\\}/d' a.txt");
    expect(await session.lines("a.txt")).toEqual(["eins", "one", "2", "3", "4", "five"]);
  });

  test("an agent that throws the merge away gets it again, and no work is lost", async () => {
    const session = await begin();
    onConflict = "git merge --abort";
    try {
      await say(session, "shell sed -i 's/1/eins/' a.txt", "failed", () => theirs(session));
      expect(await session.others("git log --format=%s -1")).toBe("Theirs");
    } finally {
      onConflict = resolve;
    }
    await say(session, "write done.txt: done");
    expect(await session.lines("a.txt")).toEqual(["eins", "one", "2", "3", "4", "five"]);
  });
});

describe("the repository's attributes decide how work is joined with others' commits:", () => {
  /** A session on files of which one is merged line by line from both sides, and one never. */
  async function beginAttributed(): Promise<Begun> {
    const name = `moving-${(count += 1)}`;
    const lines = Array.from({ length: 20 }, (_, index) => `line ${index + 1}\n`).join("");
    const { url } = await world.forge.createRepository("acme", name, {
      ".gitattributes": "docs/news merge=union\n",
      "docs/.gitattributes": "lock -merge\n",
      "docs/news": "1\n",
      "docs/lock": lines,
    });
    const { id } = await client.session.create({ prompt: "write b: b", repositories: [url], branchName: "work" });
    expect(await untilOver(client, id)).toMatchObject({ status: "completed", failure: null });
    const others = (commands: string): Promise<string> =>
      inOtherClone(world, url, `git checkout -q work && ${commands}`);
    return { id, name, url, others, lines: async (path) => (await others(`cat '${path}'`)).split("\n") };
  }

  test("lines at one place are kept from both sides, without another turn", async () => {
    const session = await beginAttributed();
    await say(session, "shell echo mine >> docs/news", "completed", () =>
      session.others(`echo theirs >> docs/news && ${pushed("News")}`),
    );
    expect((await session.lines("docs/news")).toSorted()).toEqual(["1", "mine", "theirs"]);
    expect(turns()).toBe(1);
  });

  test("a file that is never to be merged is the agent's to resolve, also where its changes are apart", async () => {
    const session = await beginAttributed();
    onConflict = "git checkout -q --theirs docs/lock && git add docs/lock && git commit -q --no-edit";
    try {
      await say(session, "shell sed -i 's/line 2$/mine/' docs/lock", "completed", () =>
        session.others(`sed -i 's/line 19/theirs/' docs/lock && ${pushed("Lock")}`),
      );
    } finally {
      onConflict = resolve;
    }
    expect(turns()).toBe(2);
    const lock = await session.lines("docs/lock");
    expect([lock.includes("mine"), lock.includes("theirs")]).toEqual([false, true]);
  });
});

describe("a conflict that has no markers", () => {
  const others = `printf 'theirs\\0' > b.bin && ${pushed("Their binary")}`;
  const order = "shell printf 'mine\\0' > b.bin";

  test("is in the prompt again after a passing failure, and neither side is dropped", async () => {
    const session = await begin();
    onConflict = "git show MERGE_HEAD:b.bin > theirs.bin && git add -A && git commit -q --no-edit";
    isModelAway = true;
    try {
      const said = say(session, order, "completed", () => session.others(others));
      await waitFor(async () => (await client.session.get(session.id)).retry, "the session was queued for a retry");
      isModelAway = false;
      await said;
    } finally {
      onConflict = resolve;
      isModelAway = false;
    }
    expect(await session.others("cat b.bin theirs.bin | tr '\\0' ' '")).toBe("mine theirs");
    expect(await session.others("git log -1 --format=%s HEAD^2")).toBe("Their binary");
    expect(await notices(session)).toContainEqual(expect.stringContaining("the next turn goes on with it"));
  });

  test("is never pushed as it was left: the agent gets it again, and the session fails in the end", async () => {
    const session = await begin();
    onConflict = "echo nothing";
    try {
      const { failure } = await say(session, order, "failed", () => session.others(others));
      expect(failure).toMatchObject({ code: "branch_diverged", retryable: false });
      expect(failure?.reason).toContain("b.bin");
      expect(await session.others("git log --format=%s -1")).toBe("Their binary");
      // A person tells the agent how, in the merge that is still under way.
      onConflict = "git checkout --theirs b.bin && git add b.bin && git commit -q --no-edit";
      await say(session, "write done.txt: done");
    } finally {
      onConflict = resolve;
    }
    expect(turns()).toBe(1);
    expect(await session.others("cat b.bin | tr '\\0' ' '")).toBe("theirs");
    expect(await session.lines("done.txt")).toEqual(["done"]);
    expect(await session.others("git log --merges --oneline")).not.toBe("");
  });
});

describe("resolving conflicts with the target branch", () => {
  const ask = async (session: Begun) => {
    prompts.length = 0;
    await client.session.resolveConflicts(session.id);
    return untilOver(client, session.id);
  };

  test("the agent gets the merge under way, and the branch is pushed with it", async () => {
    const session = await begin();
    await inOtherClone(world, session.url, "sed -i 's/5/fuenf/' a.txt && git commit -qam T && git push -q");
    expect(await ask(session)).toMatchObject({ status: "completed", failure: null });
    expect(prompts[0]).toMatch(
      /First of all, resolve a conflict\. The target branch main has.*"a\.txt".*Bring the branch up/su,
    );
    expect(await session.lines("a.txt")).toEqual(["1", "2", "3", "4", "five", "fuenf"]);
    expect(await session.others("git merge-base --is-ancestor origin/main HEAD && echo merged")).toBe("merged");
    expect((await client.session.diff(session.id)).repositories[0]?.patch).toContain("+five");
    expect((await client.session.diff(session.id)).repositories[0]?.patch).not.toContain("+fuenf");
  });

  test("without a conflict the target is merged too, and others' commits on the work branch with it", async () => {
    const session = await begin();
    await inOtherClone(world, session.url, "echo t > target.txt && git add -A && git commit -qm T && git push -q");
    await session.others(`echo c > c.txt && ${pushed("C")}`);
    expect(await ask(session)).toMatchObject({ status: "completed", failure: null });
    expect(await session.others("ls")).toBe("a.txt\nc.txt\ntarget.txt");
    expect(await world.forge.pullRequests("acme", session.name)).toHaveLength(1);
  });

  test("a session without an open pull request has nothing to resolve", async () => {
    const { id } = await client.session.create({ prompt: "say hello" });
    await untilOver(client, id);
    await expect(client.session.resolveConflicts(id)).rejects.toMatchObject({ status: 409 });
  });
});

test("a branch that was deleted after its merge is not made again, until there is something new", async () => {
  const session = await begin();
  world.forge.endPullRequest("acme", session.name, 1, "merged");
  await inOtherClone(world, session.url, "git push -q origin origin/work:main && git push -q origin --delete work");
  await say(session, "say hello");
  expect(await inOtherClone(world, session.url, "git ls-remote origin refs/heads/work")).toBe("");
  await say(session, "write more.txt: more");
  expect(await session.lines("more.txt")).toEqual(["more"]);
  expect(await world.forge.pullRequests("acme", session.name)).toHaveLength(2);
});

describe("a target that is another one between two turns", () => {
  const targetOf = async ({ id }: Begun): Promise<string[]> =>
    (await client.session.get(id)).pullRequests.map(({ number, target }) => `${number} ${target}`);

  test("since the default branch was renamed: the pull request is for its new name, and conflicts with it are resolved", async () => {
    const session = await begin();
    await world.forge.renameBranch("acme", session.name, "main", "trunk");
    await say(session, "write d.txt: d");
    expect(await world.forge.pullRequests("acme", session.name)).toMatchObject([{ number: 1, base: "trunk" }]);
    expect(await targetOf(session)).toEqual(["1 trunk"]);
    await inOtherClone(
      world,
      session.url,
      "sed -i s/5/cinq/ a.txt && git commit -qam T && git push -q origin HEAD:trunk",
    );
    prompts.length = 0;
    await client.session.resolveConflicts(session.id);
    expect(await untilOver(client, session.id)).toMatchObject({ status: "completed", failure: null });
    expect(await session.lines("a.txt")).toEqual(["1", "2", "3", "4", "five", "cinq"]);
  });

  test("since a reviewer chose it", async () => {
    const session = await begin();
    await world.forge.commit("acme", session.name, "release", { "r.txt": "r\n" });
    world.forge.retarget("acme", session.name, 1, "release");
    await say(session, "write d.txt: d");
    expect(await world.forge.pullRequests("acme", session.name)).toMatchObject([{ number: 1, base: "release" }]);
    expect(await targetOf(session)).toEqual(["1 release"]);
  });

  test("since the default branch was renamed before there was a pull request", async () => {
    const name = `moving-${(count += 1)}`;
    const { url } = await world.forge.createRepository("acme", name, { "a.txt": "1\n" });
    const { id } = await client.session.create({ prompt: "say hello", repositories: [url] });
    expect(await untilOver(client, id)).toMatchObject({ status: "completed" });
    await world.forge.renameBranch("acme", name, "main", "trunk");
    await client.session.message(id, { message: "write d.txt: d" });
    expect(await untilOver(client, id)).toMatchObject({ status: "completed", failure: null });
    expect(await world.forge.pullRequests("acme", name)).toMatchObject([{ number: 1, base: "trunk" }]);
    expect((await noticesOf(client, id)).join("\n")).toContain(
      `for the branch trunk from here on, in the place of main`,
    );
  });
});
