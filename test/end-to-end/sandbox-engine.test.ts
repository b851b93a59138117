import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "../../src/client.ts";
import type { SessionDetail } from "../../src/domain/sessions/session.ts";
import type { Offstage } from "../../src/server/offstage.ts";
import { callApi } from "../call.ts";
import { startEngine } from "../sandboxes/docker.ts";
import { waitFor } from "../wait-for.ts";
import { createWorld, startInProcess, untilOver, type World } from "../world.ts";
import { script } from "./script.ts";

// The engine of the sandboxes goes away and comes back, as when it is updated: sessions wait for it, without a retry by
// hand.

const engine = await startEngine();
const power = typeof engine === "string" ? null : engine.power;
const reason = typeof engine === "string" ? engine : power === null ? "it is not the suite's own" : "";

afterAll(async () => {
  if (typeof engine !== "string") await engine.close();
});

describe.skipIf(reason !== "")(
  `a container engine that restarts${reason === "" ? "" : ` (not tried: ${reason})`}`,
  () => {
    let world: World;
    let offstage: Offstage;
    let client: Client;

    beforeAll(async () => {
      world = await createWorld(script);
      const { socket = "", image = "" } = typeof engine === "string" ? {} : engine;
      ({ offstage, client } = await startInProcess(world, {
        OFFSTAGE_SANDBOX: "container",
        OFFSTAGE_CONTAINER_SOCKET: socket,
        OFFSTAGE_CONTAINER_IMAGE: image,
        OFFSTAGE_DEFAULT_AGENT: "basic:scripted",
      }));
    });

    afterAll(async () => {
      await offstage?.stop();
      await world?.close();
    });

    /** For which codes the session went back to the queue. */
    async function retriesOf(id: string): Promise<Set<string>> {
      const { events } = await client.session.events(id, { limit: 1_000 });
      return new Set(
        events.flatMap(({ type, data }) =>
          type === "session.status" && data.retry !== undefined ? [data.retry.code] : [],
        ),
      );
    }

    /** The session once it is queued for a retry by a sandbox that is away, or has failed. */
    const untilWithout = (id: string): Promise<SessionDetail> =>
      waitFor(async () => {
        const session = await client.session.get(id);
        return session.retry?.code === "sandbox_unavailable" || session.failure !== null ? session : null;
      }, "the session waits for its sandbox");

    async function until(id: string, what: (events: string) => boolean): Promise<void> {
      await waitFor(
        async () => what(JSON.stringify((await client.session.events(id, { limit: 1_000 })).events)),
        "the session got there",
      );
    }

    const away = { failure: null, retry: { code: "sandbox_unavailable" } };

    test.each<[string, NodeJS.Signals]>([
      ["in order", "SIGTERM"],
      ["at once", "SIGKILL"],
    ])("in the middle of a turn, %s", async (name, signal) => {
      const { url } = await world.forge.createRepository("acme", name.replaceAll(" ", "-"), {
        "README.md": "# Before\n",
      });
      const prompt =
        "write made.txt: before it, then shell test -e ../again || { touch ../again; sleep 600; }, then write more.txt: after it";
      const { id } = await client.session.create({ prompt, repositories: [url] });
      await until(id, (events) => events.includes("sleep 600"));
      await power?.off(signal);
      await power?.on();
      expect(await untilOver(client, id)).toMatchObject({ status: "completed", failure: null });
      // If the engine is back before its loss is noticed, the turn is resumed without a retry.
      expect([...(await retriesOf(id))].filter((code) => code !== "sandbox_unavailable")).toEqual([]);
      const { patch } = (await client.session.diff(id)).repositories[0] ?? { patch: "" };
      expect(patch).toMatch(/made\.txt[^]*more\.txt/u);
    });

    test("before a turn, although it was well when the server started", async () => {
      await power?.off("SIGTERM");
      const { id } = await client.session.create({ prompt: "say done" });
      expect(await untilWithout(id)).toMatchObject(away);
      await power?.on();
      expect(await untilOver(client, id)).toMatchObject({ status: "completed", failure: null });
    });

    test.each<[string, NodeJS.Signals]>([
      ["in order", "SIGTERM"],
      ["at once", "SIGKILL"],
    ])("in the middle of a setup, %s", async (name, signal) => {
      const { url } = await world.forge.createRepository("acme", `setup-${name.replaceAll(" ", "-")}`, {
        "README.md": "# Before\n",
      });
      const { id: repositoryId } = await callApi(offstage.url, "/repository/create", { url });
      const setTo = (setupScript: string) =>
        callApi(offstage.url, `/repository/${repositoryId}/environment`, { setupScript });
      await setTo("echo it began; sleep 600");
      const { id } = await client.session.create({ prompt: "write a.txt: a", repositories: [url] });
      await until(id, (events) => events.includes("it began"));
      await setTo("echo it began");
      await power?.off(signal);
      await power?.on();
      expect(await untilOver(client, id)).toMatchObject({ status: "completed", failure: null });
      expect(await retriesOf(id)).toEqual(new Set(["sandbox_unavailable"]));
    });
  },
);
