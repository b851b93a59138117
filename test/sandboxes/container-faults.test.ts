import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { defaultCallLimits } from "../../src/sandboxes/container/call.ts";
import { createContainerSandbox } from "../../src/sandboxes/container/container.ts";
import type { ResourceLimits, SandboxedProcess, SandboxRequest } from "../../src/sandboxes/sandbox.ts";
import { waitFor } from "../wait-for.ts";
import { askEngineFor, containersOf, startEngine } from "./docker.ts";
import { startEngineProxy, type EngineProxy } from "./engine-proxy.ts";
import { firstLine, running, uniqueMark, useSandboxFolders } from "./sandbox-folders.ts";

const engine = await startEngine();
const reason = typeof engine === "string" ? engine : "";
const found = typeof engine === "string" ? { socket: "", image: "" } : engine;

const makersFolder = await mkdtemp(join(tmpdir(), "offstage-makers-"));

afterAll(async () => {
  if (typeof engine !== "string") await engine.close();
  await rm(makersFolder, { recursive: true, force: true });
});

/** An engine that hangs, lies or refuses: the real one, behind a proxy that does it for chosen requests. */
describe.skipIf(reason !== "")(`a container engine${reason === "" ? "" : ` (not tried: ${reason})`}`, () => {
  let proxy: EngineProxy;
  const settings = { socket: "", image: found.image, runtime: null };
  const impatient = { workMs: 3_000, answerMs: 3_000, endMs: 300 };
  const retries = { firstMs: 50, longestMs: 200, most: 100, sweepMs: 3_600_000 };
  const serverId = () => Promise.resolve("test-server");
  const direct = createContainerSandbox({ ...settings, socket: found.socket }, { serverId, makersFolder });
  const place = useSandboxFolders(direct);
  const containers = async (): Promise<number> => (await containersOf(found.socket)).length;
  const limits: ResourceLimits = { memoryBytes: 512 * 1024 ** 2, processes: 100, diskBytes: 2 ** 30, cpus: 1.5 };

  beforeAll(async () => {
    proxy = await startEngineProxy(found.socket);
  });
  afterEach(async () => {
    proxy.repair();
    await waitFor(async () => (await containers()) === 0, "no container is left");
  });
  afterAll(() => proxy.close());

  /** As the server's own, which tries again sooner. */
  function behindProxy(options: Partial<Parameters<typeof createContainerSandbox>[1]> = {}) {
    return createContainerSandbox(
      { ...settings, socket: proxy.socket },
      { serverId, makersFolder, retries, ...options },
    );
  }

  async function outcome(child: SandboxedProcess) {
    const [said, complained, { code }] = await Promise.all([text(child.stdout), text(child.stderr), child.exited]);
    return { said, complained, code };
  }

  function begin(
    script: string,
    patience = defaultCallLimits,
    overrides: Partial<SandboxRequest> = {},
  ): SandboxedProcess {
    const child = behindProxy({ patience }).start(place.request(script, { limits, ...overrides }));
    child.stdin.end();
    return child;
  }

  describe("that hangs", () => {
    it.each([
      ["is asked what it is", "GET /info", "say what it is"],
      ["makes a container", "POST /containers/create", "make a container"],
      ["gives its input and output", /^POST .*\/attach$/u, "give a container's input and output"],
      ["starts it", /^POST .*\/start$/u, "start a container"],
      ["shows it", /^GET .*\/json$/u, "show a container"],
    ])("when it %s fails the start with words, and what came to be is removed", async (_, call, words) => {
      for (const when of ["before", "after"] as const) {
        proxy.meddling.hold = (asked) => (asked === call || (call instanceof RegExp && call.test(asked)) ? when : null);
        const marker = join(place.workspace, "ran");
        const { said, complained, code } = await outcome(begin("touch ran; echo up", impatient));
        expect([said, code]).toEqual(["", 127]);
        expect(complained).toContain(`did not ${words} within 3000 ms`);
        expect(existsSync(marker)).toBe(false);
        proxy.repair();
        await waitFor(async () => (await containers()) === 0, "what came to be is removed");
      }
    });

    it("does not hold up a run that is stopped while a container is made", async () => {
      proxy.meddling.hold = (call) => (call === "POST /containers/create" ? "before" : null);
      const stop = new AbortController();
      // Patient enough that only the stop can end it.
      const sandbox = behindProxy({ patience: { ...impatient, workMs: 3_600_000 } });
      const child = sandbox.start(place.request("true", { signal: stop.signal }));
      await waitFor(() => proxy.calls.some((call) => call.includes("/containers/create")), "it is being made");
      stop.abort();
      expect(await outcome(child)).toEqual({ said: "", complained: "", code: null });
    });

    it("when it ends or removes one lets the run settle, with every process gone", async () => {
      for (const name of [/^POST .*\/kill$/u, /^DELETE /u, /^(?:DELETE|POST .*\/kill$)/u]) {
        const mark = uniqueMark();
        const child = begin(`echo up; sleep ${mark}`, impatient);
        await firstLine(child.stdout);
        proxy.meddling.hold = (call) => (name.test(call) ? "before" : null);
        child.kill();
        expect((await child.exited).signal).toBe("SIGKILL");
        expect(running(mark)).toEqual([]);
        proxy.repair();
        await waitFor(async () => (await containers()) === 0, "it is removed once the engine answers");
      }
    });

    it("when it tells how a command ended loses nothing of what it said", async () => {
      const child = behindProxy({ patience: impatient }).start(place.request("cat; echo said"));
      child.stdin.write("first\n");
      await once(child.stdout, "readable");
      proxy.meddling.hold = (call) => (/^GET .*\/json$/u.test(call) ? "before" : null);
      child.stdin.end();
      expect(await outcome(child)).toEqual({ said: "first\nsaid\n", complained: "", code: 0 });
    });

    it("when it is to report an end is asked how the command ended", async () => {
      proxy.meddling.hold = (call) => (/^POST .*\/wait$/u.test(call) ? "before" : null);
      expect(await outcome(begin("echo said; exit 7", impatient))).toEqual({ said: "said\n", complained: "", code: 7 });
    });

    it("says so when it is looked at, and is found well once it goes on", async () => {
      const sandbox = behindProxy({ patience: impatient });
      proxy.meddling.hold = () => "before";
      expect(await sandbox.check()).toContain("did not say what it is within");
      proxy.repair();
      expect(await sandbox.check()).toBeNull();
      proxy.meddling.hold = (call) => (call === "GET /containers/json" ? "before" : null);
      const other = behindProxy({ patience: impatient });
      expect(await other.check()).toContain("did not list its containers within");
      proxy.repair();
      expect(await other.check()).toBeNull();
    });
  });

  describe("that goes away", () => {
    it("is found so at each look, although it was well at the first", async () => {
      const sandbox = behindProxy();
      expect(await sandbox.check()).toBeNull();
      expect(await sandbox.check()).toBeNull();
      proxy.meddling.refuse = () => 503;
      expect(await sandbox.check()).toContain("503");
      await expect(sandbox.imageId(found.image)).rejects.toMatchObject({ code: "sandbox_unavailable", passing: true });
      proxy.repair();
      expect(await sandbox.check()).toBeNull();
    });

    it("says of a command that it did not start whether that passes", async () => {
      for (const [status, passes] of [
        [503, true],
        [404, false],
      ] as const) {
        proxy.meddling.refuse = (call) => (call === "POST /containers/create" ? status : null);
        const child = begin("echo up");
        expect((await outcome(child)).code).toBe(127);
        expect(child.fault()).toMatchObject({ passes });
        proxy.repair();
      }
      const child = begin("exit 127");
      expect([(await outcome(child)).code, child.fault()]).toEqual([127, null]);
    });

    it("says of a command that it lost that this passes", async () => {
      const child = begin("echo up; sleep 1000");
      await firstLine(child.stdout);
      proxy.drop();
      const [{ code }] = await Promise.all([child.exited, text(child.stderr)]);
      expect(code).toBe(127);
      expect(child.fault()).toMatchObject({ passes: true });
    });
  });

  describe("that does not follow orders", () => {
    type Host = Record<string, unknown>;
    const asked = (change: Host) => (call: string, body: Host) =>
      call === "POST /containers/create"
        ? { ...body, HostConfig: { ...(body["HostConfig"] as Host), ...change } }
        : body;
    /** Says that all is as it was asked for, whatever it did. */
    const lies = (call: string, body: Host) => {
      if (!/^GET \/containers\/.*\/json$/u.test(call)) return body;
      const { memoryBytes: Memory, processes: PidsLimit, cpus } = limits;
      const wanted = {
        NetworkMode: "none",
        Privileged: false,
        ReadonlyRootfs: true,
        Memory,
        PidsLimit,
        NanoCpus: cpus * 1e9,
      };
      return { ...body, HostConfig: { ...(body["HostConfig"] as Host), ...wanted } };
    };
    /** Nor do the numbers of its processes mean anything here, as on another machine. */
    const liesFromAfar = (call: string, body: Host) => {
      const said = lies(call, body);
      return "State" in said ? { ...said, State: { ...(said["State"] as Host), Pid: 1 } } : said;
    };
    const faults: readonly [what: string, change: Host, own: RegExp, kernel: RegExp][] = [
      [
        "the size of memory",
        { Memory: 2 ** 30, MemorySwap: 2 ** 30 },
        /reports 1073741824 bytes/u,
        /kernel has 1073741824 bytes/u,
      ],
      ["the bound of memory", { Memory: 0, MemorySwap: 0 }, /reports 0 bytes/u, /memory limit/u],
      [
        "the number of processes",
        { PidsLimit: 5_000 },
        /reports 5000 processes/u,
        /kernel has 5000 as its limit of processes/u,
      ],
      ["the bound of processes", { PidsLimit: 0 }, /processes/u, /kernel has nothing as its limit of processes/u],
      ["the number of cores", { NanoCpus: 2e9 }, /reports 2 cores/u, /kernel has 2 as its limit of cores/u],
      ["the bound of cores", { NanoCpus: 0 }, /reports 0 cores/u, /kernel has nothing as its limit of cores/u],
      ["the root", { ReadonlyRootfs: false }, /root file system/u, /kernel shows a writable root file system/u],
      [
        "the set of capabilities",
        { CapDrop: [], CapAdd: ["NET_ADMIN"] },
        /capabilities/u,
        /kernel shows capabilities/u,
      ],
      ["the way to privileges", { SecurityOpt: [] }, /no_new_privs/u, /no_new_privs/u],
      [
        "the filter",
        { SecurityOpt: ["no-new-privileges:true", "seccomp=unconfined"] },
        /does not filter its system calls/u,
        /does not filter its system calls/u,
      ],
      [
        "the network",
        { NetworkMode: "host" },
        /reports the network host/u,
        /kernel shows (?:a network \(|it in the server)/u,
      ],
    ];

    it.each(faults)(
      "is not given the command where %s is not as it was asked for",
      async (what, change, own, kernel) => {
        // Something to be seen in the engine's own network.
        if (what === "the network" && process.env["OFFSTAGE_TEST_ENGINE"] === undefined)
          await inEnginesNetwork("ip link add probe0 type dummy 2> /dev/null || ip tuntap add probe0 mode tun");
        const marker = join(place.workspace, "ran");
        for (const [answer, words] of [
          [undefined, own],
          [lies, kernel],
          [liesFromAfar, kernel],
        ] as const) {
          proxy.repair();
          proxy.meddling.ask = asked(change);
          if (answer !== undefined) proxy.meddling.answer = answer;
          const { said, complained, code } = await outcome(begin("touch ran; echo up"));
          expect([said, code]).toEqual(["", 127]);
          expect(complained).toMatch(words);
          expect(complained).toContain("the container was not started");
        }
        expect(existsSync(marker)).toBe(false);
      },
    );

    it("is believed from afar too if all is as it was asked for", async () => {
      proxy.meddling.answer = liesFromAfar;
      expect(await outcome(begin("cat; echo up"))).toEqual({ said: "up\n", complained: "", code: 0 });
    });

    it("gets its orders by its own check", async () => {
      proxy.meddling.ask = asked({ PidsLimit: 0 });
      expect(await behindProxy().check()).toMatch(/did not set it up as requested.*processes/u);
    });
  });

  describe("that gives a network which it does not show", () => {
    type Host = Record<string, unknown>;
    /** From so many containers on they are in the engine's own network, which the engine denies. */
    function networkFrom(first: number): void {
      let made = 0;
      proxy.meddling.ask = (call, body) => {
        if (call !== "POST /containers/create") return body;
        made += 1;
        return made < first ? body : { ...body, HostConfig: { ...(body["HostConfig"] as Host), NetworkMode: "host" } };
      };
      proxy.meddling.answer = (call, body) =>
        /^GET \/containers\/.*\/json$/u.test(call)
          ? { ...body, HostConfig: { ...(body["HostConfig"] as Host), NetworkMode: "none" } }
          : body;
    }

    // It shows only loopback, and yet there is a route to an answering host.
    it.skipIf(process.env["OFFSTAGE_TEST_ENGINE"] !== undefined).each([
      ["answers", /1\.1\.1\.1 port 443 ended with "connected"/u],
      ["refuses", /1\.1\.1\.1 port 443 ended with "Connection refused"/u],
    ])("is found out at the second container if what is there %s, although the first had none", async (what, words) => {
      await inEnginesNetwork(
        "ip link delete probe0 2> /dev/null; ip link set lo up; ip address replace 1.1.1.1/32 dev lo",
      );
      const listener = what === "answers" ? await listenInEnginesNetwork("1.1.1.1", 443) : null;
      try {
        networkFrom(2);
        const sandbox = behindProxy();
        const marker = join(place.workspace, "ran-in-network");
        const start = (): SandboxedProcess => {
          const child = sandbox.start(place.request(`touch ${marker}; echo up`, { limits }));
          child.stdin.end();
          return child;
        };
        expect(await outcome(start())).toEqual({ said: "up\n", complained: "", code: 0 });
        await rm(marker);
        const second = await outcome(start());
        expect([second.said, second.code]).toEqual(["", 127]);
        expect(second.complained).toMatch(words);
        expect(existsSync(marker)).toBe(false);
      } finally {
        listener?.kill("SIGKILL");
        await inEnginesNetwork("ip address delete 1.1.1.1/32 dev lo; ip link set lo down");
      }
    });
  });

  /** @returns a process that listens there, once it does; it is the caller's to end */
  async function listenInEnginesNetwork(address: string, port: number): Promise<ChildProcess> {
    const source = `require("node:net").createServer((one) => one.destroy()).listen(${port}, "${address}", () => console.log("up"))`;
    const child = spawn("nsenter", ["--net", `--target=${await enginePid()}`, process.execPath, "-e", source], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await firstLine(child.stdout);
    return child;
  }

  async function enginePid(): Promise<string> {
    const { DockerRootDir } = await askEngineFor<{ DockerRootDir: string }>(found.socket, "GET", "/info");
    return (await readFile(join(DockerRootDir, "../pid"), "utf8")).trim();
  }

  /** @param command a line of a shell's, run as root in the network namespace of the suite's own daemon */
  async function inEnginesNetwork(command: string): Promise<void> {
    const arguments_ = ["--net", `--target=${await enginePid()}`, "sh", "-c", command];
    const child = spawn("nsenter", arguments_, { stdio: "inherit" });
    const [code] = (await once(child, "exit")) as [number];
    expect(code).toBe(0);
  }

  it("does not get the environment of a command in an address", async () => {
    const child = begin("echo $TOKEN", defaultCallLimits, { environment: { TOKEN: "token-not-for-addresses" } });
    expect((await outcome(child)).said).toBe("token-not-for-addresses\n");
    expect(proxy.calls.join("\n")).toContain("/containers/create?name=offstage-");
    expect(proxy.calls.join("\n")).not.toContain("token-not-for-addresses");
  });

  it("is read no faster than its command's output is", async () => {
    const size = 64 * 1024 ** 2;
    const child = begin(`head -c ${size} /dev/zero`);
    const before = proxy.passed();
    let read = 0;
    let most = 0;
    for (let step = 0; step < 8; step += 1) {
      // Until nothing moves any more without a reader.
      let last = -1;
      await waitFor(() => {
        const now = proxy.passed();
        const still = now === last && now > before;
        last = now;
        return still;
      }, "everything that can move has moved");
      most = Math.max(most, proxy.passed() - before - read);
      for (
        let chunk = child.stdout.read() as Buffer | null;
        chunk !== null;
        chunk = child.stdout.read() as Buffer | null
      )
        read += chunk.length;
    }
    expect(most).toBeLessThan(4 * 1024 ** 2);
    for await (const chunk of child.stdout) read += (chunk as Buffer).length;
    expect(read).toBe(size);
    expect((await child.exited).code).toBe(0);
  });
});
