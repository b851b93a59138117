import { afterAll, beforeAll, expect, test } from "vitest";
import type { Client } from "../../src/client.ts";
import type { StepName } from "../../src/domain/sessions/step.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import type { Failure } from "../forge/state.ts";
import { commandLines, uniqueMark } from "../sandboxes/sandbox-folders.ts";
import { inOtherClone } from "../other-clone.ts";
import { waitFor } from "../wait-for.ts";
import { createWorld, startInProcess, untilOver, type World } from "../world.ts";
import { letGo, script, untilLetGo } from "./script.ts";

let world: World;
let offstage: Offstage;
let client: Client;

beforeAll(async () => {
  world = await createWorld(script);
  ({ offstage, client } = await startInProcess(world, { OFFSTAGE_DEFAULT_AGENT: "basic:scripted" }));
});

afterAll(async () => {
  await offstage?.stop();
  await world?.close();
});

const mark = uniqueMark();

/** Programs that work on something of this test's own. */
const processes = (): string[] =>
  commandLines().filter(
    (line) => line.includes(world.data) || line.includes(world.forge.url) || line.includes(`sleep ${mark}`),
  );

/** Checkpoints, which have an index of their own, pass it; the commit waits in it until it is let go. */
const slowFilter = `[ -n "$GIT_INDEX_FILE" ] || { sleep ${mark} & ${untilLetGo}; kill $!; }; cat`;

/** Each step, and what makes it last. */
const steps: readonly [StepName, hang: Failure | null, prompt: string][] = [
  ["prepare", { kind: "hang", at: "fetch" }, "write b.txt: b"],
  ["agent", null, `shell sleep ${mark}`],
  ["commit", null, `shell git config filter.slow.clean '${slowFilter}'; echo '* filter=slow' > .gitattributes`],
  ["push", { kind: "hang", at: "push" }, "write b.txt: b"],
  ["pullRequest", { kind: "hang", at: "api" }, "write b.txt: b"],
];

test.each(steps)(
  "a session cancelled in step %s ends without waiting for it and leaves no process",
  async (step, hang, prompt) => {
    const name = `cancel-${step.toLowerCase()}`;
    const { url } = await world.forge.createRepository("acme", name, { "README.md": "# Before\n" });
    if (hang !== null) await world.forge.failNext(hang);
    const { id } = await client.session.create({ prompt, repositories: [url] });
    for await (const event of client.streamEvents(id)) {
      if (event.type === "step.started" && event.data.step === step) break;
    }
    if (hang === null)
      await waitFor(() => processes().some((line) => line.includes(`sleep ${mark}`)), "the step hangs");
    else await waitFor(() => world.forge.pendingFailures() === 0, "the step hangs");
    await client.session.cancel(id);
    expect((await untilOver(client, id)).status).toBe("cancelled");
    // The diff is saved in its own time.
    if (step === "commit") await letGo(world.data, id, name);
    await waitFor(() => processes().length === 0, "everything that worked on it is gone");
    expect(await world.forge.pullRequests("acme", name)).toEqual([]);
  },
);

/** A session, cancelled while its agent works, whose diff is not saved before it is let go, as that of a large repository. */
async function cancelWithSlowDiff(name: string): Promise<string> {
  const { url } = await world.forge.createRepository("acme", name, { "README.md": "# Before\n" });
  const filter = `[ -n "$GIT_INDEX_FILE" ] || ${untilLetGo}; cat`;
  const prepared = `git config filter.slow.clean '${filter}'; echo 'a.txt filter=slow' > .gitattributes`;
  const prompt = `write a.txt: hello, then shell ${prepared}, then shell sleep ${mark}`;
  const { id } = await client.session.create({ prompt, repositories: [url] });
  await waitFor(() => processes().some((line) => line.startsWith(`sleep ${mark}`)), "the agent works");
  await client.session.cancel(id);
  expect((await untilOver(client, id)).status).toBe("cancelled");
  return id;
}

const patchOf = async (id: string): Promise<string> =>
  (await client.session.diff(id)).repositories.map(({ patch }) => patch).join("");

test("a patch that is longer than what is kept is cut, which the API says, and the pull request has all of it", async () => {
  const { url } = await world.forge.createRepository("acme", "long-patch", { "README.md": "# Before\n" });
  const { id } = await client.session.create({ prompt: "shell seq 1 300000 > numbers.txt", repositories: [url] });
  const session = await untilOver(client, id);
  expect(session).toMatchObject({ status: "completed", failure: null });
  const [repository] = (await client.session.diff(id)).repositories;
  expect(repository).toMatchObject({ truncated: true });
  expect(repository?.patch).toContain("+100000\n");
  expect(Buffer.byteLength(repository?.patch ?? "")).toBeLessThanOrEqual(2 * 1024 * 1024);
  await expect(client.session.patch(id)).rejects.toMatchObject({
    status: 409,
    message: expect.stringContaining("is longer than what is kept") as string,
  });
  const whole = await inOtherClone(world, url, `git show origin/${session.branchName}:numbers.txt | tail -n 1`);
  expect(whole).toBe("300000");
});

test("a cancelled session keeps its diff, however long saving it takes, and is cancelled before that", async () => {
  const name = "cancel-slow-diff";
  const id = await cancelWithSlowDiff(name);
  expect(await patchOf(id)).not.toContain("+hello");
  await letGo(world.data, id, name);
  await waitFor(async () => (await patchOf(id)).includes("+hello"), "the diff is saved");
  await waitFor(() => processes().length === 0, "everything that worked on it is gone");
});

test("a follow-up that arrives while a cancelled session's diff is saved goes on from its work", async () => {
  const name = "cancel-slow-diff-follow-up";
  const id = await cancelWithSlowDiff(name);
  await client.session.message(id, { message: "write b.txt: b" });
  await letGo(world.data, id, name);
  expect((await untilOver(client, id)).status).toBe("completed");
  const patch = await patchOf(id);
  for (const line of ["+hello", "+b"]) expect(patch).toContain(line);
});
