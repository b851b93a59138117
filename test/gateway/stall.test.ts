import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { gatewayPids } from "./gateway-pids.ts";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Gateway } from "../../src/gateway/gateway.ts";
import { admitAll } from "../../src/gateway/models/admission.ts";
import { createGatewayProcesses } from "../../src/gateway/process/process.ts";

/**
 * Hostile bodies, requests and connections of four agents at once, each a process of its own: the event loop that serves
 * everybody else does little for them, and holds little. Measured as the processor time of this thread, which others on the
 * machine don't change.
 */
let directory: string;
let upstream: Server;
let baseUrl: string;
const processes = createGatewayProcesses();
const gateways: Gateway[] = [];
let received = 0;
let refused = 0;
const lost: Error[] = [];
const services = {
  admit: admitAll,
  onRequests: () => undefined,
  onLost: (error: Error) => void lost.push(error),
  onUnrecorded: () => undefined,
};

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "offstage-stall-"));
  upstream = createServer((request, response) => {
    request.on("data", (chunk: Buffer) => (received += chunk.length));
    request.on("end", () => response.end("{}"));
  });
  await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
  baseUrl = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
  for (let count = 0; count < 4; count += 1) gateways.push(await open());
});

function open(): Promise<Gateway> {
  const models = { anthropic: { apiKey: "k", baseUrl } };
  const egress = { open: false, rules: [] };
  const task = {
    directory,
    models,
    egress,
    permits: [],
    registries: [],
    authorities: [],
    labels: { prices: {}, models: [] },
    recording: null,
  };
  return processes.open(task, { ...services, onRefused: () => (refused += 1) });
}

afterAll(async () => {
  for (const gateway of gateways) await gateway.close();
  upstream?.closeAllConnections();
  upstream?.close();
  await rm(directory, { recursive: true, force: true });
});

const flood = async (gateway: Gateway, kind: string, megabytes: number, times: number): Promise<number[]> => {
  const token = gateway.modelsAt("http://x").anthropic?.apiKey ?? "";
  const program = join(import.meta.dirname, "flood.ts");
  const { stdout } = await promisify(execFile)(process.execPath, [
    program,
    gateway.socket,
    token,
    kind,
    String(megabytes),
    String(times),
  ]);
  return JSON.parse(stdout) as number[];
};

/** @returns how many requests, chunks or connections were sent */
const floodRequests = async (gateway: Gateway, kind: string): Promise<number> => {
  const program = join(import.meta.dirname, "flood-requests.ts");
  const token = gateway.modelsAt("http://x").anthropic?.apiKey ?? "";
  const { stdout } = await promisify(execFile)(process.execPath, [program, gateway.socket, token, kind]);
  return Number(stdout);
};

/** The longest that this thread computed without a turn for others, in ms, and the most it held, in bytes. */
async function watch(work: () => Promise<unknown>): Promise<{ longestMs: number; bytes: number }> {
  const memory = (): number => {
    const { heapUsed, external, arrayBuffers } = process.memoryUsage();
    return heapUsed + Math.max(external, arrayBuffers);
  };
  const before = memory();
  let [longest, bytes, isOver] = [0, 0, false];
  let last = process.threadCpuUsage();
  const tick = (): void => {
    const { user, system } = process.threadCpuUsage();
    longest = Math.max(longest, user + system - last.user - last.system);
    last = { user, system };
    bytes = Math.max(bytes, memory() - before);
    if (!isOver) setTimeout(tick, 1);
  };
  tick();
  await work();
  isOver = true;
  tick();
  return { longestMs: longest / 1_000, bytes };
}

const megabyte = 1024 * 1024;

it("is noticed by this measure, if it parses such a body itself", async () => {
  const body = `{"a":[${"[],".repeat(4 * megabyte)}0]}`;
  const { longestMs } = await watch(async () => {
    await Promise.resolve();
    JSON.parse(body);
  });
  expect(longestMs).toBeGreaterThan(200);
});

it.each([
  ["deep", 400],
  ["deepInside", 400],
  ["wide", 200],
  ["wideMessages", 413],
  ["objects", 200],
  ["keys", 200],
  ["numbers", 200],
  ["escapes", 403],
  ["unicode", 403],
  ["name", 400],
  ["key", 403],
])("does not wait for the %s bodies of four agents at once", async (kind, status) => {
  const statuses: number[] = [];
  const { longestMs, bytes } = await watch(async () => {
    const got = await Promise.all(gateways.map((gateway) => flood(gateway, kind, 8, 2)));
    statuses.push(...got.flat());
  });
  expect(statuses).toEqual(Array.from({ length: 8 }, () => status));
  expect(longestMs).toBeLessThan(100);
  // The model's server is in this process, too: what is forwarded passes through it.
  expect(bytes).toBeLessThan(4 * 8 * 8 * megabyte);
});

it.each([
  ["requests", "pipelined"],
  ["requests for hosts", "hosts"],
  ["requests of models", "models"],
  ["headers", "headers"],
  ["chunks of one byte", "chunks"],
  ["tunnels", "tunnels"],
  ["connections that end at once", "connections"],
])("does not wait for a flood of %s of four agents at once", async (_, kind) => {
  const sent: number[] = [];
  const before = refused;
  const flooded = await Promise.all(gateways.map(() => open()));
  const { longestMs, bytes } = await watch(async () => {
    sent.push(...(await Promise.all(flooded.map((gateway) => floodRequests(gateway, kind)))));
  });
  expect(Math.min(...sent)).toBeGreaterThan(500);
  expect(longestMs).toBeLessThan(100);
  expect(bytes).toBeLessThan(8 * megabyte);
  // A host is reported once, however often it is requested.
  expect(refused - before).toBeLessThanOrEqual(flooded.length);
  // A gateway that took more memory than it has ended by that, alone, and said so.
  for (const error of lost) expect(error.message).toContain("heap");
  await Promise.all(flooded.map((gateway) => gateway.close()));
});

it("keeps one session's bodies to what a session may hold", async () => {
  const before = gatewayPids();
  const gateway = await open();
  gateways.push(gateway);
  received = 0;
  const pid = gatewayPids().find((one) => !before.includes(one)) ?? 0;
  const resident = (): number =>
    Number(/^VmRSS:\s+(\d+)/mu.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;
  let most = 0;
  const looking = setInterval(() => (most = Math.max(most, resident())), 10);
  await flood(gateway, "wide", 31, 12);
  clearInterval(looking);
  expect(received).toBeGreaterThan(31 * megabyte);
  // All of its process: two bodies may be under way, and four times them is the bound.
  expect(most).toBeLessThan(4 * 64 * megabyte + 128 * megabyte);
});
