import { afterAll, beforeAll, expect, test } from "vitest";
import type { Client } from "../../src/client.ts";
import type { StepName } from "../../src/domain/sessions/step.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import type { Failure } from "../forge/state.ts";
import { commandLines, uniqueMark } from "../sandboxes/sandbox-folders.ts";
import { waitFor } from "../wait-for.ts";
import { createWorld, startInProcess, untilOver, type World } from "../world.ts";
import { script } from "./script.ts";

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

/** Checkpoints, which have an index of their own, pass it; the commit does not. */
const slowFilter = `[ -n "$GIT_INDEX_FILE" ] || sleep ${mark}; cat`;

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
    await waitFor(() => processes().length === 0, "everything that worked on it is gone");
    expect(await world.forge.pullRequests("acme", name)).toEqual([]);
  },
);
