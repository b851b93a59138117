import type { Readable, Writable } from "node:stream";
import { programText } from "../../programs/program-text.ts";
import { forbiddenAddresses, type NetworkProbe } from "./network.ts";

/** Kernel files of the container, read inside if they can't be read from outside. */
const kernelFiles = [
  "/proc/self/status",
  "/proc/self/mountinfo",
  "/proc/self/net/dev",
  "/sys/fs/cgroup/memory.max",
  "/sys/fs/cgroup/pids.max",
  "/sys/fs/cgroup/cpu.max",
  "/sys/fs/cgroup/memory/memory.limit_in_bytes",
  "/sys/fs/cgroup/pids/pids.max",
  "/sys/fs/cgroup/cpu/cpu.cfs_quota_us",
  "/sys/fs/cgroup/cpu/cpu.cfs_period_us",
] as const;
/** A file that `handshake.sh` can print. */
export type KernelFile = (typeof kernelFiles)[number];

/**
 * `handshake.sh` runs before a container's command, and executes it when the server says so.
 * @returns entry point and parameters of a container that waits so
 */
export function handshakeCommand(command: readonly string[]): {
  readonly Entrypoint: string[];
  readonly Cmd: string[];
} {
  const [program, ...networkTests] = [
    programText(import.meta.url, "handshake.sh"),
    programText(import.meta.url, "try-network.sh"),
    programText(import.meta.url, "try-network.cjs"),
  ] as const;
  return { Entrypoint: ["sh", "-c", program, "sh", ...networkTests], Cmd: [...command] };
}

/** A container that waits before its command. */
export interface Handshake {
  /** Settles when everything that runs before `handshake.sh` has ended: from then on the kernel's limits do not change. */
  ready(): Promise<void>;
  readKernelFiles(): Promise<Partial<Record<KernelFile, string>>>;
  /** Tries to connect to addresses that must be unreachable. @returns the output, for `requireNoNetwork` */
  probeNetwork(by: NetworkProbe): Promise<string[]>;
  proceed(): void;
}

/**
 * @param input stdin of the container
 * @param output stdout of the container: bytes after the answers of `handshake.sh` stay in it
 */
export function createHandshake(input: Writable, output: Readable): Handshake {
  /** @returns the lines before the line that ends the answer */
  async function answerTo(word: "tell" | `try-${NetworkProbe}`, words: readonly string[]): Promise<string[]> {
    input.write(`${word} ${words.join(" ")}\n`);
    const lines: string[] = [];
    for (let length = 0; length < answerLimit;) {
      const line = await readLine(output);
      if (line === ".") return lines;
      lines.push(line);
      length += line.length + 1;
    }
    throw new Error(tooMuch);
  }

  return {
    async ready() {
      const line = await readLine(output);
      if (line !== "ready")
        throw new Error(`the container's shell printed ${JSON.stringify(line.slice(0, 200))} before the command ran`);
    },
    async readKernelFiles() {
      const files: Partial<Record<KernelFile, string>> = {};
      let file: KernelFile | null = null;
      for (const line of await answerTo("tell", kernelFiles)) {
        if (line.startsWith("=")) file = line.slice(1) as KernelFile;
        else if (file !== null) files[file] = `${files[file] ?? ""}${line.slice(1)}\n`;
      }
      return files;
    },
    probeNetwork: (by) => answerTo(`try-${by}`, forbiddenAddresses),
    proceed: () => void input.write("go\n"),
  };
}

/** Maximum characters of one line of `handshake.sh`, and of one answer. */
const lineLimit = 65_536;
const answerLimit = 1_048_576;
const tooMuch = "the container's shell printed too much before the command ran";

/**
 * Reads up to the next line break; later bytes stay in the stream.
 * @returns the line without its break
 * @throws Error if the stream ends before
 */
async function readLine(stream: Readable): Promise<string> {
  let read = Buffer.alloc(0);
  for (;;) {
    const chunk = stream.read() as Buffer | null;
    if (chunk === null) {
      await moreOf(stream);
      continue;
    }
    read = Buffer.concat([read, chunk]);
    const end = read.indexOf(10);
    if (end === -1 && read.length < lineLimit) continue;
    if (end === -1) throw new Error(tooMuch);
    if (end + 1 < read.length) stream.unshift(read.subarray(end + 1));
    return read.toString("utf8", 0, end);
  }
}

function moreOf(stream: Readable): Promise<void> {
  return new Promise((resolve, reject) => {
    const gone = (): void => settle(new Error("the container's shell ended before the command ran"));
    const readable = (): void => settle(null);
    function settle(error: Error | null): void {
      stream.off("readable", readable).off("end", gone).off("close", gone);
      if (error === null) resolve();
      else reject(error);
    }
    if (stream.readableEnded || stream.destroyed) gone();
    else stream.on("readable", readable).on("end", gone).on("close", gone);
  });
}
