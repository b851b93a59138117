import { once } from "node:events";
import { createServer } from "node:net";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, describe, expect, it } from "vitest";
import { createContainerSandbox } from "../../src/sandboxes/container/container.ts";
import { gatewayOrigin } from "../../src/sandboxes/process/relay.ts";
import type { ResourceLimits } from "../../src/sandboxes/sandbox.ts";
import type { SessionRepository } from "../../src/worker/clones/clone.ts";
import { pinnedImage, setupKey } from "../../src/worker/steps/set-up.ts";
import { script } from "../end-to-end/script.ts";
import { hangTimeoutMs } from "../hang-timeout.ts";
import { createWorld, startInProcess, untilOver } from "../world.ts";
import { askEngineFor, containersOf, startEngine } from "./docker.ts";
import { firstLine, useSandboxFolders } from "./sandbox-folders.ts";
import { describeSandbox } from "./shared-suite.ts";

const engine = await startEngine();
const reason = typeof engine === "string" ? engine : "";
const settings = {
  socket: typeof engine === "string" ? "" : engine.socket,
  image: typeof engine === "string" ? "" : engine.image,
  runtime: null,
};

/** Who makes and removes them. */
const options = {
  serverId: () => Promise.resolve("test-server"),
  makersFolder: await mkdtemp(join(tmpdir(), "offstage-makers-")),
};

afterAll(async () => {
  if (typeof engine !== "string") await engine.close();
  await rm(options.makersFolder, { recursive: true, force: true });
});

describe.skipIf(reason !== "")(`a container${reason === "" ? "" : ` (not tried: ${reason})`}`, () => {
  const sandbox = createContainerSandbox(settings, options);
  const place = useSandboxFolders(sandbox);
  const containers = async (): Promise<number> => (await containersOf(settings.socket)).length;

  describeSandbox(sandbox, ["HOME", "HOSTNAME", "TERM", "container"]);

  it("is known by its image's content: a setup's result is not reused once the name is another image's", async () => {
    const tag = (image: string): Promise<unknown> =>
      askEngineFor(settings.socket, "POST", `/images/${image}/tag`, { repo: "offstage-moved", tag: "latest" });
    const services = { sandbox, sandboxImage: "offstage-moved" };
    const repository = { id: "one", directory: "." } as SessionRepository;
    const commit = { sha: "a".repeat(40), branch: "main", isDefault: true };
    const keyNow = async (): Promise<string> => {
      const image = await pinnedImage(services, null);
      return setupKey({ secrets: [] }, services, { repository }, { commit, script: "true", variables: {}, image });
    };
    await tag(settings.image);
    const before = await keyNow();
    expect(await keyNow()).toBe(before);
    await tag(`${settings.image}-other`);
    expect(await keyNow()).not.toBe(before);
    // What runs is what the key is of, whatever becomes of the name meanwhile.
    const image = await pinnedImage(services, null);
    await tag(settings.image);
    expect(await place.run("echo $IMAGE", { image: image ?? "none" })).toContain("other");
    expect(await place.run("echo is: $IMAGE", { image: "offstage-moved" })).toBe("is:");
    expect(await keyNow()).toBe(before);
  });

  it("has no network, no capability, no way to another right, and a root that it can't write to", async () => {
    const said = await place.run(
      `ls /sys/class/net; grep -E 'Cap(Prm|Eff|Bnd)|NoNewPrivs|Seccomp:' /proc/self/status; id -u; (echo x > /usr/x) 2>&1; (echo x > /etc/x) 2>&1; true`,
    );
    expect(said.split("\n")[0]).toBe("lo");
    expect(said.match(/Cap\w+:\s+0{16}/gu)).toHaveLength(3);
    expect(said).toMatch(/NoNewPrivs:\s+1/u);
    expect(said).toMatch(/Seccomp:\s+2/u);
    expect(said).toMatch(/^2100\d{6}$/mu);
    expect(said.match(/Read-only file system|Permission denied/gu)).toHaveLength(2);
  });

  it.skipIf(process.arch !== "x64").each([
    ["keys of the kernel", "250, 0, -3, 0"],
    ["io_uring", "425, 8, 0"],
    ["programs in the kernel", "321, 0, 0, 0"],
    ["new namespaces by unshare", "272, 0x10000000"],
    ["new namespaces by clone", "56, 0x10000011, 0, 0, 0, 0"],
    ["clone3", "435, 0, 0"],
    ["virtual machine sockets", "41, 40, 1, 0"],
    ["sockets to the kernel's crypto", "41, 38, 5, 0"],
    ["typing into a terminal", "16, 0, 0x5412, 0"],
    ["typing into a terminal, with bits that the kernel does not look at", "16, 0, 0x100005412, 0"],
  ])("refuses %s by the same filter as bubblewrap", async (_, call) => {
    const said = await place.run(`perl -e '$! = 0; my $r = syscall(${call}); print lc("$r $!")'`);
    expect(said).toMatch(/^-1 (?:operation not permitted|function not implemented|address family not supported)/u);
  });

  it("sees nothing of the machine but its image and what is bound", async () => {
    expect(await place.run(`ls ${process.cwd()}/src 2>&1 || true`)).toMatch(/No such file/u);
    expect(await place.run("ls /dev | grep -E '^(sd|vd|nvme|kvm|mem)' || echo none")).toBe("none");
    expect(await place.run(`ls -d /proc/${process.pid} 2>&1 || true`)).toMatch(/No such file/u);
  });

  it("reaches the gateway's socket and nothing else", async () => {
    const socket = join(place.data, "gateway.sock");
    const server = createServer((client) =>
      client.end("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"),
    );
    server.listen(socket);
    await once(server, "listening");
    await place.run("true");
    await chmod(socket, 0o666);
    const said = await place.run(
      `node -e 'fetch(process.env.AT).then((r) => r.text()).then(console.log); require("net").connect(80, "1.1.1.1").on("error", (e) => console.log(e.code))'`,
      { gateway: socket, environment: { AT: gatewayOrigin } },
    );
    server.close();
    expect(said).toContain("hello");
    expect(said).toContain("ENETUNREACH");
  });

  const roomy: ResourceLimits = { memoryBytes: 512 * 1024 ** 2, processes: 100, diskBytes: 2 ** 30, cpus: 1 };
  it.each([
    ["memory", `node -e 'const all = []; for (;;) all.push(Buffer.alloc(1e7, 1))'`, "memory"],
    [
      "memory, in a process of many",
      `(node -e 'const all = []; for (;;) all.push(Buffer.alloc(1e7, 1))'); sleep 1; echo survived`,
      "memory",
    ],
    ["processes", "perl -e 'fork while 1'", "processes"],
    ["disk", "i=0; while :; do i=$((i+1)); head -c 4000000 /dev/zero > many$i; done", "disk"],
  ])("ends what takes too much %s, and says so", async (_, command, exceeded) => {
    const child = sandbox.start(
      place.request(command, {
        limits: { ...roomy, diskBytes: 64 * 1024 ** 2 },
        signal: AbortSignal.timeout(hangTimeoutMs),
      }),
    );
    child.stdin.end();
    await Promise.all([text(child.stdout), text(child.stderr), child.exited]);
    expect(child.exceeded()).toBe(exceeded);
    const cleaner = sandbox.start(place.request("rm -f many*"));
    cleaner.stdin.end();
    await cleaner.exited;
  });

  it("reports memory that ran out although the agent went on and was ended by us", async () => {
    const hog = `node -e 'const all = []; for (;;) all.push(Buffer.alloc(1e7, 1))'; echo after; cat`;
    const child = sandbox.start(place.request(hog, { limits: roomy, signal: AbortSignal.timeout(hangTimeoutMs) }));
    await firstLine(child.stdout);
    child.kill();
    await child.exited;
    expect(child.exceeded()).toBe("memory");
  });

  it("does not take a program that crashed, or was ended by another, for one that used too much", async () => {
    // Behind the relay, as harnesses are.
    const gateway = join(place.data, "crash.sock");
    const server = createServer().listen(gateway);
    await once(server, "listening");
    for (const [end, expected] of [
      ["SEGV", 139],
      ["KILL", 137],
    ] as const) {
      const child = sandbox.start(place.request(`kill -${end} $$`, { limits: roomy, gateway }));
      child.stdin.end();
      await Promise.all([text(child.stdout), text(child.stderr)]);
      const { code } = await child.exited;
      expect([code, child.exceeded()]).toEqual([expected, null]);
    }
    server.close();
  });

  it("leaves no container behind, whatever its end", async () => {
    await place.run("true");
    const child = sandbox.start(place.request("echo up; sleep 1000"));
    await firstLine(child.stdout);
    child.kill();
    await child.exited;
    const failing = sandbox.start({ ...place.request("true"), workingDirectory: "relative" });
    failing.stdin.end();
    expect((await failing.exited).code).toBe(127);
    expect(await text(failing.stderr)).not.toBe("");
    expect(await containers()).toBe(0);
  });

  it.each([
    ["the engine is not there", { socket: "/nowhere.sock" }, /OFFSTAGE_CONTAINER_SOCKET/u],
    ["the image is not there", { image: "no-such-image" }, /docker pull no-such-image/u],
    ["the runtime is not there", { runtime: "no-such-runtime" }, /no-such-runtime|choose a runtime/u],
  ])("says what to do where %s", async (_, wrong, remedy) => {
    expect(await createContainerSandbox({ ...settings, ...wrong }, options).check()).toMatch(remedy);
  });

  it("takes the image that a repository's devcontainer file names, if the operator allows it and it is on this machine", async () => {
    const world = await createWorld(script);
    const { offstage, client } = await startInProcess(world, {
      OFFSTAGE_SANDBOX: "container",
      OFFSTAGE_CONTAINER_SOCKET: settings.socket,
      OFFSTAGE_CONTAINER_IMAGE: settings.image,
      OFFSTAGE_DEVCONTAINER_IMAGES: `${settings.image}-other, example.com/not/*`,
      OFFSTAGE_DEFAULT_AGENT: "basic:scripted",
    });
    const outputOf = async (image: string): Promise<string> => {
      const devcontainer = JSON.stringify({ image, postCreateCommand: 'echo "set up in $IMAGE."' });
      const name = image.replaceAll(/\W/gu, "-");
      const { url } = await world.forge.createRepository("acme", name, { ".devcontainer.json": devcontainer });
      const { id } = await client.session.create({ prompt: 'shell echo "worked in $IMAGE."', repositories: [url] });
      expect(await untilOver(client, id)).toMatchObject({ status: "completed" });
      return JSON.stringify(await client.session.events(id, { limit: 1_000 }));
    };
    try {
      const named = await outputOf(`${settings.image}-other`);
      expect(named).toContain("set up in other.");
      expect(named).toContain("worked in other.");
      expect(await outputOf("example.com/not/there")).toContain("(docker pull example.com/not/there)");
      // On this machine under this name too, and not allowed.
      const refused = await outputOf(`${settings.image}-other:latest`);
      expect(refused).toContain("OFFSTAGE_DEVCONTAINER_IMAGES does not allow it");
      expect(refused).toContain("set up in .");
      expect(refused).toContain("worked in .");
    } finally {
      await offstage.stop();
      await world.close();
    }
  });

  it.each(["basic:scripted", "opencode:scripted"])(
    "carries a whole session of %s to its pull request",
    async (agent) => {
      const world = await createWorld(script);
      const { offstage, client } = await startInProcess(world, {
        OFFSTAGE_SANDBOX: "container",
        OFFSTAGE_CONTAINER_SOCKET: settings.socket,
        OFFSTAGE_CONTAINER_IMAGE: settings.image,
        OFFSTAGE_DEFAULT_AGENT: agent,
      });
      try {
        const { url } = await world.forge.createRepository("acme", "contained", { "README.md": "# Before\n" });
        const session = await client.session.create({
          prompt: "write a.txt: alpha, then shell ls /sys/class/net > net.txt",
          repositories: [url],
        });
        expect(await untilOver(client, session.id)).toMatchObject({
          status: "completed",
          failure: null,
          sandboxed: true,
        });
        expect(await world.forge.pullRequests("acme", "contained")).toHaveLength(1);
        const { patch } = (await client.session.diff(session.id)).repositories[0] ?? { patch: "" };
        expect(patch).toContain("+alpha");
        expect(patch).toContain("+lo");
      } finally {
        await offstage.stop();
        await world.close();
      }
      expect(await containers()).toBe(0);
    },
  );
});
