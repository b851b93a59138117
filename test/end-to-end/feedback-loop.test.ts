import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "../../src/client.ts";
import { createForges } from "../../src/forges/forges.ts";
import { createLogger } from "../../src/observability.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { pollPullRequests } from "../../src/worker/background/pull-request-polling.ts";
import { guidOf } from "../forge/azure-places.ts";
import { asAzure } from "../forge/azure-url.ts";
import { connectForge, type ConnectedForge } from "../forge/connect.ts";
import { tokenUser } from "../forge/state.ts";
import type { Script } from "../model/server.ts";
import { waitFor } from "../wait-for.ts";
import { adminKey, createWorld, startInProcess, untilOver, type World } from "../world.ts";
import { script as ordered } from "./script.ts";

/** How an agent resolves a conflict in `a.txt`: both sides' lines, without the markers. */
const resolve = "sed -i '/^[<=>]\\{7\\}/d' a.txt && git add a.txt && git commit -q --no-edit";

const script: Script = (message, conversation) => {
  if (message.includes("wait for ever")) return [{ hang: true }];
  const rest = typeof ordered === "function" ? ordered(message, conversation) : ordered;
  if (message.includes("First of all")) return [{ shell: resolve }, ...rest];
  // As an agent does that reads the log.
  if (message.includes("expected five"))
    return [{ write: { path: "a.txt", content: "five\n" } }, { say: "I mended it." }];
  return rest;
};

/** What the repository's CI does. */
const ci = 'found=$(cat a.txt); test "$found" = five || { echo "expected five, but a.txt has $found"; exit 1; }';

/** OpenCode takes its time to start: once is enough, since it hears nothing of the forge's dialect. */
const dialects = [
  { kind: "github", agent: "opencode:scripted", commitPage: "NAME/commit/" },
  { kind: "gitea", agent: "basic:scripted", commitPage: "NAME/commit/" },
  { kind: "gitlab", agent: "basic:scripted", commitPage: "NAME/-/commit/" },
  { kind: "bitbucket", agent: "basic:scripted", commitPage: "NAME/commits/" },
  { kind: "bitbucketDataCenter", agent: "basic:scripted", commitPage: "repos/NAME/commits/" },
  { kind: "azure", agent: "basic:scripted", commitPage: "_git/NAME/commit/" },
] as const;
/** Forges that deliver comments on lines. */
const tellsLines = (kind: (typeof dialects)[number]["kind"]): boolean => kind !== "gitea";

describe.each(dialects)("on $kind, with $agent", ({ kind, agent, commitPage }) => {
  let world: World;
  let offstage: Offstage;
  let client: Client;
  let forge: ConnectedForge;
  let count = 0;

  beforeAll(async () => {
    world = await createWorld(script);
    ({ offstage, client } = await startInProcess(world, {
      OFFSTAGE_DEFAULT_AGENT: agent,
      OFFSTAGE_FORGES: "[]",
      OFFSTAGE_FORGE_HOSTS: "127.0.0.1",
      OFFSTAGE_CHECK_SECONDS: "1",
    }));
    forge = await connectForge(world.forge, { kind, url: offstage.url, key: adminKey });
  });
  afterAll(async () => {
    await offstage?.stop();
    await world?.close();
  });

  /** A session with its open pull request. @param checks the repository's CI, if it has one */
  async function begin(checks?: string) {
    const name = `loop-${(count += 1)}`;
    const made = await world.forge.createRepository("acme", name, { "a.txt": "1\n" });
    const url = kind === "azure" ? asAzure(made.url) : made.url;
    world.forge.describe("acme", name, { people: { ann: "write" }, tellsRights: true });
    const runs = checks === undefined ? [] : world.forge.runCi("acme", name, checks);
    const { id } = await client.session.create({ prompt: "write a.txt: four", repositories: [url] });
    const { pullRequests, branchName } = await untilOver(client, id);
    expect(pullRequests).toHaveLength(1);
    return {
      id,
      url,
      name,
      runs,
      branch: branchName,
      place: world.forge.place("acme", name),
      number: pullRequests[0]?.number ?? 0,
    };
  }

  /** Asks git in the forge's own repository: asynchronously, since the forge answers from this very process. */
  async function inRepository(name: string, ...parameters: string[]): Promise<string> {
    const { stdout } = await promisify(execFile)("git", ["-C", world.forge.pathOf("acme", name), ...parameters]);
    return stdout.trim();
  }
  const tipOf = (name: string, branch: string) => inRepository(name, "rev-parse", branch);
  const content = (name: string, branch: string) => inRepository(name, "show", `${branch}:a.txt`);
  /** Who worked in each turn. */
  async function turnsOf(id: string): Promise<string[]> {
    const { events } = await client.session.events(id, { limit: 1_000 });
    return events.flatMap((event) =>
      event.type === "agent.started" ? [`${event.data.provider}:${event.data.model}`] : [],
    );
  }
  /** Waits until all that was delivered is decided, and the sessions rest. */
  async function untilAllDecided(id: string): Promise<void> {
    await waitFor(async () => {
      const { rowCount } = await offstage.database.pool.query("select 1 from arrival where outcome is null");
      return rowCount === 0;
    }, "all deliveries are decided");
    await untilOver(client, id);
  }

  const lines = { path: "a.txt", line: 1, hunk: "@@ -1 +1 @@\n-1\n+four" };
  /** Whether a comment has its acknowledgement: a reaction or, if the forge has none, a comment in the thread. */
  function isSeen(
    name: string,
    number: number,
    said: { readonly id: number; readonly thread: string | null },
  ): boolean {
    const { comments, reactions } = world.forge.feedback("acme", name);
    const isOnLines = said.thread !== null && tellsLines(kind);
    switch (kind) {
      case "github":
        return reactions.has(`${isOnLines ? "pulls" : "issues"}/comments/${said.id} eyes`);
      case "gitea":
        return reactions.has(`issues/comments/${said.id} eyes`);
      case "gitlab":
        return reactions.has(`merge_requests/${number}/notes/${said.id} eyes`);
      case "bitbucket":
        return comments.some(({ body, thread }) => body.startsWith("Seen.") && thread === String(said.id));
      case "bitbucketDataCenter":
        return reactions.has(`pull-requests/${number}/comments/${said.id} eyes`);
      case "azure":
        return reactions.has(`threads/${said.thread}/comments/1 like`);
    }
  }

  test("a comment becomes a commit on the same pull request, is seen before its turn begins, and has one answer", async () => {
    const { id, url, name, branch, place, number } = await begin();
    // The repository's only place is taken: the turn can't begin.
    const repository = (await client.repository.list({})).codeRepositories.find((each) => each.url === url);
    const limited = await fetch(`${offstage.url}/repository/${repository?.id}/limits`, {
      method: "POST",
      headers: { Authorization: `Bearer ${adminKey}`, "Content-Type": "application/json" },
      body: JSON.stringify({ maxRunningSessions: 1 }),
    });
    expect(limited.status).toBe(200);
    const other = await client.session.create({ prompt: "wait for ever", repositories: [url] });
    await waitFor(async () => (await client.session.get(other.id)).status === "running", "the other session runs");
    const said = forge.say(place, number, {
      by: "ann",
      body: "@offstage\nwrite a.txt: fourteen",
      ...(tellsLines(kind) && { lines }),
    });
    await waitFor(() => Promise.resolve(isSeen(name, number, said)), "it is seen");
    // What is said on lines waits a few seconds for what else its author says there.
    await waitFor(async () => (await client.session.get(id)).status === "queued", "its turn waits");
    expect(await turnsOf(id)).toEqual([agent]);
    await client.session.cancel(other.id);
    const { comments } = world.forge.feedback("acme", name);
    const answer = await waitFor(() => {
      const found = comments.find((each) => each.body.includes("Done in"));
      return Promise.resolve(found);
    }, "the thread is answered");
    const tip = await tipOf(name, branch);
    expect(answer.body).toContain(`[\`${tip.slice(0, 10)}\`](${world.forge.url}/`);
    expect(answer.body).toContain(`/${commitPage.replace("NAME", name)}${tip})`);
    expect(answer.thread).toBe(said.thread);
    expect(await content(name, branch)).toBe("fourteen");
    expect(await world.forge.pullRequests("acme", name)).toHaveLength(1);
    // Its own comment and push were delivered too, twice each: nothing comes of them.
    await untilAllDecided(id);
    expect(await turnsOf(id)).toEqual([agent, agent]);
    expect(comments).toHaveLength(kind === "bitbucket" ? 3 : 2);
    const textOf = async (): Promise<string> => (await world.forge.pullRequests("acme", name))[0]?.body ?? "";
    const ownLines = `- 1 follow-up so far; its last commit here is \`${tip.slice(0, 10)}\`.\n- It waits for comments, reviews and checks.\n`;
    await waitFor(async () => (await textOf()).includes(ownLines), "the text has the follow-up");
    // Each edit was delivered, twice: nothing comes of it either.
    const { rows: events } = await offstage.database.pool.query<{ count: number }>(
      "select count(*)::integer as count from arrival where payload ->> 'name' = 'pullRequest.updated'",
    );
    expect(events).toEqual([{ count: 0 }]);
    expect((await client.session.get(id)).status).toBe("completed");
    const after = await offstage.database.pool.query("select 1 from message where session_id = $1", [id]);
    expect(after.rows).toHaveLength(2);
  });

  // Its deliveries name accounts that were picked in the editor only by an id.
  test.runIf(kind === "azure")(
    "a comment in which the connection's account was picked in the editor is heard",
    async () => {
      const { id, name, branch, place, number } = await begin();
      const [connection] = (await client.connection.list({})).connections;
      const called = (mention: string | null) => client.connection.update(connection?.id ?? "", { mention });
      await called(tokenUser);
      forge.say(place, number, { by: "ann", body: `@<${guidOf("person somebody")}>\nwrite a.txt: other` });
      forge.say(place, number, { by: "ann", body: `@<${guidOf(`person ${tokenUser}`)}>\nwrite a.txt: picked` });
      await waitFor(async () => (await content(name, branch)) === "picked", "the turn did as asked");
      await untilAllDecided(id);
      expect(await turnsOf(id)).toEqual([agent, agent]);
      expect(world.model.requests.at(-1)?.conversation.message).toContain(`@${tokenUser}`);
      await called(null);
    },
  );

  test("a review that asks for changes is one turn with all that it says, and each thread has one answer", async () => {
    const { id, name, branch, place, number } = await begin();
    const isAlone = kind === "gitea";
    const words = isAlone ? "write a.txt: better" : "";
    const review = { by: "ann", body: words, id: 9 };
    // GitHub says of which review a comment is, Gitea delivers none; elsewhere a review is a vote without words.
    const said = isAlone
      ? []
      : [forge.say(place, number, { by: "ann", body: "write a.txt: better", lines, reviewId: review.id })];
    const thanks = "Thanks for the work so far.";
    const isVote = !isAlone && kind !== "github";
    if (isVote) said.push(forge.say(place, number, { by: "ann", body: thanks }));
    forge.review(place, number, review);
    // If comments replace reactions, one is enough for all.
    await waitFor(
      () => Promise.resolve(said.length === 0 || said.some((each) => isSeen(name, number, each))),
      "it is seen",
    );
    await waitFor(async () => (await content(name, branch)) === "better", "the turn did as asked");
    const { comments } = world.forge.feedback("acme", name);
    const answered = () => comments.filter(({ body }) => body.includes("Done in")).map(({ thread }) => String(thread));
    const threads = isAlone ? ["null"] : said.map(({ thread }) => String(thread));
    await waitFor(() => Promise.resolve(answered().length >= threads.length), "each thread is answered");
    await untilAllDecided(id);
    expect(new Set(answered())).toEqual(new Set(threads));
    expect(answered()).toHaveLength(threads.length);
    expect(await turnsOf(id)).toEqual([agent, agent]);
    // The turn's own prompt: the first one, which the conversation may hold too, speaks of the same file.
    const asked = world.model.requests.at(-1)?.conversation.message ?? "";
    expect(asked).toContain("asks for changes");
    expect(asked.includes(thanks)).toBe(isVote);
    expect(/a\.txt[^]*four/u.test(asked)).toBe(!isAlone);
  });

  // Data Center delivers no builds.
  test.skipIf(kind === "bitbucketDataCenter")(
    "a red check comes back with its log's end, and turns green",
    async () => {
      const { id, name, branch, runs } = await begin(ci);
      await waitFor(() => Promise.resolve(runs.length === 2), "the commit that mends it is checked");
      await untilAllDecided(id);
      expect(runs.map(({ conclusion }) => conclusion)).toEqual(["failure", "success"]);
      expect(runs[1]?.sha).toBe(await tipOf(name, branch));
      expect(await content(name, branch)).toBe("five");
      expect(await turnsOf(id)).toEqual([agent, agent]);
      // What it pushed speaks for itself.
      expect(world.forge.feedback("acme", name).comments).toEqual([]);
      expect(await world.forge.pullRequests("acme", name)).toHaveLength(1);
    },
  );

  test("a pull request that collides with its target is mended and merged, and then left alone", async () => {
    const { id, name, branch, place, number } = await begin();
    const before = await tipOf(name, branch);
    await world.forge.commit("acme", name, "main", { "a.txt": "theirs\n" });
    expect(() => world.forge.merge("acme", name, number)).toThrow("merge-tree");
    const poll = {
      database: offstage.database,
      logger: createLogger("silent"),
      forgeOf: createForges([forge.settings]).forgeOf,
      minutes: 0,
    };
    await waitFor(async () => {
      await pollPullRequests(poll, new AbortController().signal);
      return (await tipOf(name, branch)) !== before;
    }, "the target is merged");
    const mended = await untilOver(client, id);
    expect([mended.status, mended.failure]).toEqual(["completed", null]);
    expect(await turnsOf(id)).toEqual([agent, agent]);

    world.forge.merge("acme", name, number);
    expect((await content(name, "main")).split("\n").toSorted()).toEqual(["four", "theirs"]);
    await waitFor(async () => (await client.session.get(id)).pullRequests[0]?.state === "merged", "it is heard of");
    forge.say(place, number, { by: "ann", body: "@offstage\nwrite a.txt: more" });
    const { comments } = world.forge.feedback("acme", name);
    await waitFor(() => Promise.resolve(comments.some(({ body }) => body.includes("is merged"))), "it is said");
    await untilAllDecided(id);
    expect(await turnsOf(id)).toHaveLength(2);
  });
});
