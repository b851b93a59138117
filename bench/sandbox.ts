import { execFile } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, request as httpRequest, type RequestOptions } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { openGateway } from "../src/gateway/gateway.ts";
import { createBubblewrap } from "../src/sandboxes/bubblewrap.ts";
import { quantile, table } from "./measure.ts";

/**
 * What the sealed room costs: starting a command in it beside starting it bare, and a request of a model through the
 * gateway beside asking directly, whole and by the chunk. The ways are interleaved.
 *
 *   npm run bench:sandbox
 */
const starts = 100;
const requests = 500;
const chunks = 200;

type Work = () => Promise<number | undefined>;

/** Each way so many times in turn; a way may tell its own measure in ms, else it is timed. */
async function compare(ways: Readonly<Record<string, Work>>, rounds: number): Promise<string[][]> {
  const took: Record<string, number[]> = {};
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, work] of Object.entries(ways)) {
      const startedAt = performance.now();
      const own = await work();
      (took[name] ??= []).push(own ?? performance.now() - startedAt);
    }
  }
  return Object.entries(took).map(([name, all]) => {
    const sorted = all.toSorted((a, b) => a - b);
    return [name, ...[0.5, 0.99].map((share) => quantile(sorted, share).toFixed(2))];
  });
}

function ask(options: RequestOptions): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ ...options, method: "POST" }, (answer) => {
      const firstAt = performance.now();
      answer.resume();
      // Time per chunk of a stream.
      answer.once("end", () => resolve((performance.now() - firstAt) / chunks));
    });
    sent.once("error", reject);
    sent.end('{"model":"m"}');
  });
}

const mebibyte = 1024 * 1024;

/** Proportional set size of everything that one start made, the command's own included. */
function memoryOf(mark: string): number {
  const all = readdirSync("/proc").filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, "utf8").includes(mark);
    } catch {
      return false;
    }
  });
  const sizes = all.map((pid) => {
    const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
    return Number(/^Pss:\s+(\d+) kB$/mu.exec(rollup)?.[1] ?? 0) * 1024;
  });
  return sizes.reduce((sum, size) => sum + size, 0) / mebibyte;
}

/** What a session holds beside its harness: `cat` stands for that. */
async function memoryOfSessions(place: { workspace: string; home: string; gateway: string }): Promise<string[][]> {
  const measure = async (relayed: boolean): Promise<string> => {
    const mark = `bench-${randomUUID()}`;
    const { gateway: socket, ...folders } = place;
    const child = sandbox.start({
      ...folders,
      command: "sh",
      arguments: ["-c", "echo up; cat"],
      environment: { BENCH_MARK: mark },
      readOnly: [],
      signal: AbortSignal.timeout(10_000),
      ...(relayed && { gateway: socket }),
    });
    await once(child.stdout, "data");
    const used = memoryOf(mark).toFixed(1);
    child.kill();
    await child.exited;
    return used;
  };
  const many = 100;
  globalThis.gc?.();
  const before = process.memoryUsage().rss;
  const opened = await Promise.all(
    Array.from({ length: many }, () =>
      openGateway({
        directory: join(folder, "run"),
        models: {},
        egress: { open: false, rules: [] },
        onRefused: () => undefined,
      }),
    ),
  );
  const each = (process.memoryUsage().rss - before) / many / mebibyte;
  for (const one of opened) await one.close();
  return [
    ["in the sandbox, with its command", await measure(false)],
    ["the same behind the relay", await measure(true)],
    ["a gateway, in the server", each.toFixed(2)],
  ];
}

const folder = await mkdtemp(join(tmpdir(), "offstage-bench-"));
const model = createServer((request, response) => {
  request.resume();
  if (request.url?.includes("completions") !== true) {
    response.end('{"usage":{"input_tokens":1,"output_tokens":1}}');
    return;
  }
  let left = chunks;
  const next = (): void => {
    left -= 1;
    if (left < 0) response.end();
    else response.write(`data: {"choices":[{"delta":{"content":"word ${left}"}}]}\n\n`, () => setImmediate(next));
  };
  next();
});
await new Promise<void>((resolve) => model.listen(0, "127.0.0.1", resolve));
const { port } = model.address() as AddressInfo;
const gateway = await openGateway({
  directory: join(folder, "run"),
  models: { openai: { apiKey: "k", baseUrl: `http://127.0.0.1:${port}/v1` } },
  egress: { open: false, rules: [] },
  onRefused: () => undefined,
});
const authorization = `Bearer ${gateway.modelsAt("").openai?.apiKey ?? ""}`;
const sandbox = createBubblewrap();
try {
  const [workspace, home] = [join(folder, "workspace"), join(folder, "home")];
  await sandbox.makeWritable(workspace);
  await sandbox.makeWritable(home);
  const start =
    (relayed: boolean): Work =>
    async () => {
      const child = sandbox.start({
        command: "true",
        arguments: [],
        environment: {},
        workspace,
        home,
        readOnly: [],
        signal: AbortSignal.timeout(10_000),
        limits: { memoryBytes: 2 ** 31, processes: 1_000, diskBytes: 2 ** 34, cpus: 2 },
        ...(relayed && { gateway: gateway.socket }),
      });
      child.stdin.end();
      child.stdout.resume();
      child.stderr.resume();
      const { code } = await child.exited;
      if (code !== 0) throw new Error(`the command ended with ${code}`);
      return undefined;
    };
  const bare: Work = async () => void (await promisify(execFile)("true"));
  const started = await compare(
    { "true, bare": bare, "in the sandbox": start(false), "behind the relay too": start(true) },
    starts,
  );
  const direct = { host: "127.0.0.1", port };
  const through = { socketPath: gateway.socket, headers: { authorization } };
  const whole = async (options: RequestOptions): Promise<undefined> => void (await ask(options));
  const asked = await compare(
    {
      "a request, directly": () => whole({ ...direct, path: "/v1/responses" }),
      "through the gateway": () => whole({ ...through, path: "/model/openai/v1/responses" }),
    },
    requests,
  );
  const streamed = await compare(
    {
      "a streamed chunk, directly": () => ask({ ...direct, path: "/v1/chat/completions" }),
      "through the gateway": () => ask({ ...through, path: "/model/openai/v1/chat/completions" }),
    },
    50,
  );
  const held = await memoryOfSessions({ workspace, home, gateway: gateway.socket });
  process.stdout.write(`${table(["", "MiB"], held)}\n`);
  for (const rows of [started, asked, streamed]) process.stdout.write(`${table(["", "p50 ms", "p99 ms"], rows)}\n`);
} finally {
  await gateway.close();
  model.close();
  await rm(folder, { recursive: true, force: true });
}
