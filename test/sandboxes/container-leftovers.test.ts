import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { createContainerSandbox } from "../../src/sandboxes/container/container.ts";
import type { SandboxedProcess } from "../../src/sandboxes/sandbox.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";
import { waitFor } from "../wait-for.ts";
import { askEngineFor, containersOf, removeContainer, startEngine } from "./docker.ts";
import { startEngineProxy, type EngineProxy } from "./engine-proxy.ts";
import { firstLine, useSandboxFolders } from "./sandbox-folders.ts";

const engine = await startEngine();
const reason = typeof engine === "string" ? engine : "";
const found = typeof engine === "string" ? { socket: "", image: "" } : engine;
const makersFolder = await mkdtemp(join(tmpdir(), "offstage-makers-"));

afterAll(async () => {
  if (typeof engine !== "string") await engine.close();
  await rm(makersFolder, { recursive: true, force: true });
});

/** What a server that was killed, or an engine that failed, leaves behind; on the real engine, behind a proxy. */
describe.skipIf(reason !== "")(`what is left on an engine${reason === "" ? "" : ` (not tried: ${reason})`}`, () => {
  let proxy: EngineProxy;
  const settings = { socket: "", image: found.image, runtime: null };
  const retries = { firstMs: 50, longestMs: 200, most: 100, sweepMs: 3_600_000 };
  const patience = { workMs: 2_000, answerMs: 3_000, endMs: 300 };
  const serverId = () => Promise.resolve("test-server");
  const direct = behind(found.socket);
  const place = useSandboxFolders(direct);
  const others: ChildProcess[] = [];
  const containers = async (): Promise<number> => (await containersOf(found.socket)).length;

  // Each its own: what the sandboxes of others still try to remove is not seen.
  beforeEach(async () => {
    proxy = await startEngineProxy(found.socket);
  });
  afterEach(async () => {
    await proxy.close();
    for (const child of others.splice(0)) child.kill("SIGKILL");
    for (const { Id } of await containersOf(found.socket)) {
      await removeContainer(found.socket, Id).catch(() => undefined);
    }
    await waitFor(async () => (await containers()) === 0, "no container is left");
  });

  function behind(socket: string, options: Partial<Parameters<typeof createContainerSandbox>[1]> = {}) {
    return createContainerSandbox({ ...settings, socket }, { serverId, makersFolder, retries, ...options });
  }

  async function outcome(child: SandboxedProcess) {
    child.stdin.end();
    const [said, complained, { code }] = await Promise.all([text(child.stdout), text(child.stderr), child.exited]);
    return { said, complained, code };
  }

  it("is removed in the background if it could not be at once, and reported", async () => {
    const messages: string[] = [];
    const note = (_: unknown, message: string) => void messages.push(message);
    const logger = { warn: note, info: note, debug: note } as never;
    let refused = 0;
    proxy.meddling.refuse = (call) => (call.startsWith("DELETE ") && (refused += 1) <= 3 ? 500 : null);
    const child = behind(proxy.socket, { logger }).start(place.request("echo up"));
    expect(await outcome(child)).toEqual({ said: "up\n", complained: "", code: 0 });
    await waitFor(async () => (await containers()) === 0, "it is removed in the end");
    await waitFor(() => messages.includes("removed a container after a retry"), "it is reported");
    expect(messages[0]).toBe("could not remove a container; will retry");
    expect(refused).toBe(4);
  });

  it("is removed by the sweep if it could not be for long", async () => {
    const sandbox = behind(proxy.socket, { retries: { ...retries, most: 1, sweepMs: 100 } });
    proxy.meddling.refuse = (call) => (call.startsWith("DELETE ") ? 500 : null);
    const child = sandbox.start(place.request("true"));
    expect((await outcome(child)).code).toBe(0);
    await waitFor(() => proxy.calls.filter((call) => call.startsWith("DELETE ")).length >= 2, "it was tried again");
    await sandbox.sweeper?.start();
    proxy.repair();
    await waitFor(async () => (await containers()) === 0, "the sweep removed it");
    await sandbox.sweeper?.stop();
    await sandbox.sweeper?.stop();
  });

  it("of a server that was killed is removed by its next life, on a host of another name too", async () => {
    await kill(await otherServer({ host: "other-host" }));
    expect(await containers()).toBe(1);
    expect(await nextLife().check()).toBeNull();
    expect(await containers()).toBe(0);
  });

  it("of another server, or of a process of this one that runs, is left alone", async () => {
    const living = await Promise.all([otherServer({ server: "another-server" }), otherServer()]);
    const own = direct.start(place.request("echo up; sleep 1000"));
    await firstLine(own.stdout);
    expect(await nextLife().check()).toBeNull();
    expect(await containers()).toBe(3);
    own.kill();
    await own.exited;
    for (const child of living) await kill(child);
    await direct.sweeper?.start();
    await waitFor(async () => (await containers()) === 1, "what its own process left is gone");
    await direct.sweeper?.stop();
    const left = await containersOf(found.socket);
    expect(left.map(({ Labels }) => Labels["dev.offstage.server"])).toEqual(["another-server"]);
    for (const { Id } of left) await removeContainer(found.socket, Id);
  });

  it("of a process of this server that runs is left alone in whatever container that process is", async () => {
    const before = await readdir(makersFolder);
    const living = await otherServer({ host: "other-host", processes: true, boot: "00000000-other-machine" });
    const socket = (await readdir(makersFolder)).find((file) => !before.includes(file));
    expect(await nextLife().check()).toBeNull();
    expect(await containers()).toBe(1);
    await kill(living);
    await waitFor(async () => {
      await nextLife().check();
      return (await containers()) === 0;
    }, "it is removed once the process is gone");
    expect(socket).toMatch(/\.sock$/u);
    expect(await readdir(makersFolder)).not.toContain(socket);
  });

  it.each([
    ["before it was started", /^POST .*\/start$/u, "created"],
    ["while it waited for its command", /^GET .*\/json$/u, "running"],
  ])("by a server that was killed %s is removed by its next life", async (_, call, state) => {
    proxy.meddling.hold = (asked) => (call.test(asked) ? "before" : null);
    const child = await otherServer({ socket: proxy.socket, waits: false, boot: "00000000-other-machine" });
    await waitFor(
      async () => (await containersOf(found.socket)).some(({ State }) => State === state),
      "a container is there",
    );
    await kill(child);
    proxy.repair();
    expect(await containers()).toBe(1);
    expect(await nextLife().check()).toBeNull();
    expect(await containers()).toBe(0);
  });

  it("is removed if it was renamed or paused", async () => {
    const children = await Promise.all([otherServer(), otherServer()]);
    const [one, other] = await containersOf(found.socket);
    await askEngineFor(found.socket, "POST", `/containers/${one?.Id}/rename`, { name: "somebody-elses" });
    await askEngineFor(found.socket, "POST", `/containers/${other?.Id}/pause`);
    for (const child of children) await kill(child);
    expect(await nextLife().check()).toBeNull();
    expect(await containers()).toBe(0);
  });

  it("is none that was renamed while its command runs, which is removed at its end", async () => {
    const sandbox = behind(found.socket);
    const child = sandbox.start(place.request("echo up; cat"));
    await firstLine(child.stdout);
    const [one] = await containersOf(found.socket);
    await askEngineFor(found.socket, "POST", `/containers/${one?.Id}/rename`, { name: "somebody-elses" });
    expect(await sandbox.check()).toBeNull();
    expect((await containersOf(found.socket)).map(({ State }) => State)).toEqual(["running"]);
    child.stdin.end();
    expect((await child.exited).code).toBe(0);
    expect(await containers()).toBe(0);
  });

  it("by other servers is left alone if the engine shows more than it was asked for", async () => {
    // Both are gone: that they are another's is all that protects its own.
    for (const gone of await Promise.all([otherServer({ server: "another-server" }), otherServer()])) await kill(gone);
    proxy.meddling.redirect = (address) => address.replace(/[?&]filters=[^&]*/u, "");
    const sandbox = behind(proxy.socket);
    expect(await sandbox.check()).toBeNull();
    const left = await containersOf(found.socket);
    expect(left.map(({ Labels }) => Labels["dev.offstage.server"])).toEqual(["another-server"]);
  });

  describe("of a storm", () => {
    const storm = 12;
    const turns = { atOnce: 2, waiting: 4, waitMs: 60_000 };
    /** @returns how many requests of that kind were open at once at most, asked at any time */
    function countOpen(kind: RegExp): () => number {
      let most = 0;
      proxy.meddling.began = (open) => {
        most = Math.max(most, open.filter((call) => kind.test(call)).length);
      };
      return () => most;
    }

    it.each([
      ["is bounded on an engine that hangs", turns, 2, 6],
      ["would be all at once without a bound", { ...turns, atOnce: storm }, storm, 0],
    ])("of starts what is asked of the engine %s, and it goes on afterwards", async (_, given, atOnce, refused) => {
      const most = countOpen(/^POST \/containers\/create$/u);
      proxy.meddling.hold = (call) => (call === "POST /containers/create" ? "before" : null);
      const sandbox = behind(proxy.socket, { patience, turns: given });
      const outcomes = await Promise.all(
        Array.from({ length: storm }, () => outcome(sandbox.start(place.request("echo up")))),
      );
      expect(outcomes.map(({ said, code }) => [said, code])).toEqual(outcomes.map(() => ["", 127]));
      const count = (words: string): number => outcomes.filter(({ complained }) => complained.includes(words)).length;
      expect(most()).toBe(atOnce);
      expect(count("4 others wait already for the container engine to make a container")).toBe(refused);
      expect(count("did not make a container within 2000 ms")).toBe(storm - refused);
      proxy.repair();
      expect(await outcome(sandbox.start(place.request("echo up")))).toMatchObject({ said: "up\n", code: 0 });
    });

    it.each([
      ["is bounded on an engine that hangs", 2, 2],
      ["would be all at once without a bound", 6, 6],
    ])("of ends what is asked of the engine %s, and all are removed afterwards", async (_, atOnce, expected) => {
      // It is the ends that are held: to start them all takes some engines long.
      const long = { ...patience, workMs: 3_600_000, answerMs: 3_600_000 };
      const given = { atOnce, waiting: 100, waitMs: 3_600_000 };
      const sandbox = behind(proxy.socket, { patience: long, turns: given });
      const children = Array.from({ length: 6 }, () => sandbox.start(place.request("echo up; cat")));
      await Promise.all(children.map((child) => firstLine(child.stdout)));
      const most = countOpen(/^DELETE /u);
      proxy.meddling.hold = (call) => (call.startsWith("DELETE ") ? "before" : null);
      for (const child of children) child.stdin.end();
      await waitFor(async () => {
        const states = (await containersOf(found.socket)).map(({ State }) => State);
        return states.every((state) => state === "exited") && most() >= expected;
      }, "all have ended, and as many as may be are being removed");
      expect(await containers()).toBe(6);
      delete proxy.meddling.hold;
      proxy.drop();
      await Promise.all(children.map((child) => child.exited));
      await waitFor(async () => (await containers()) === 0, "all are removed once the engine answers");
      expect(most()).toBe(expected);
    });

    it("ends a start that waits for its turn as soon as it is stopped", async () => {
      proxy.meddling.hold = (call) => (call === "POST /containers/create" ? "before" : null);
      const long = { ...patience, workMs: 3_600_000 };
      const sandbox = behind(proxy.socket, { patience: long, turns: { atOnce: 1, waiting: 4, waitMs: 3_600_000 } });
      const first = sandbox.start(place.request("true"));
      await waitFor(() => proxy.calls.some((call) => call.includes("/create")), "the first has its turn");
      const second = sandbox.start(place.request("true"));
      second.kill();
      expect(await outcome(second)).toEqual({ said: "", complained: "", code: null });
      first.kill();
      expect((await outcome(first)).code).toBeNull();
    });
  });

  async function kill(child: ChildProcess): Promise<void> {
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  }

  /** The server, started again. */
  function nextLife() {
    return behind(found.socket);
  }

  /**
   * Another process that has a container; it is ended after the test.
   * @param options.host name of the machine that it believes to be on
   * @param options.processes whether its processes have numbers of their own, as in a container
   * @param options.boot what it takes for the start of the kernel, as on another machine
   * @param options.waits until its command runs
   */
  async function otherServer(
    options: {
      server?: string;
      host?: string;
      processes?: boolean;
      boot?: string;
      socket?: string;
      waits?: boolean;
    } = {},
  ): Promise<ChildProcess> {
    const { server = "test-server", host, processes = false, boot, socket = found.socket, waits = true } = options;
    const { signal: _, ...request } = place.request("echo up; sleep 1000");
    const source = `
      import { createContainerSandbox } from ${JSON.stringify(join(process.cwd(), "src/sandboxes/container/container.ts"))};
      const sandbox = createContainerSandbox(${JSON.stringify({ ...settings, socket })}, {
        serverId: () => Promise.resolve(${JSON.stringify(server)}),
        makersFolder: ${JSON.stringify(makersFolder)},
      });
      const request = ${JSON.stringify(request)};
      const child = sandbox.start({ ...request, signal: AbortSignal.timeout(${hangTimeoutMs}) });
      child.stdout.pipe(process.stdout);
      child.stderr.pipe(process.stderr);`;
    const bootFile = join(place.data, "boot");
    if (boot !== undefined) await writeFile(bootFile, boot);
    const steps = [
      ...(host === undefined ? [] : [`hostname ${host}`]),
      ...(boot === undefined ? [] : [`mount --bind ${bootFile} /proc/sys/kernel/random/boot_id`]),
      'exec "$0" "$@"',
    ];
    const apart = ["--uts", "--mount", ...(processes ? ["--pid", "--fork", "--mount-proc", "--kill-child"] : [])];
    const child = spawn(
      "unshare",
      [...apart, "sh", "-c", steps.join(" && "), process.execPath, "--input-type=module", "-e", source],
      { stdio: ["ignore", "pipe", "inherit"] },
    );
    others.push(child);
    if (waits) await firstLine(child.stdout);
    return child;
  }
});
