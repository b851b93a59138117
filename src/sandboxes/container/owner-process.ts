import { randomBytes } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { connect, createServer, type Server } from "node:net";
import { join } from "node:path";
import { InvalidInputError } from "../../domain/errors/errors.ts";
import { knownProcess } from "../process/process-table.ts";

/** The server's processes of one data folder, as containers name the process that created them. */
export interface OwnerProcess {
  /**
   * Name of this process.
   * @throws the system's error if the folder can't be written to; InvalidInputError if its path is too long
   */
  name(): Promise<string>;
  /** Whether a process still runs. @param name as `name()` of this or another process returned it */
  isAlive(name: string): Promise<boolean>;
  /** Removes leftovers of ended processes from the folder. */
  tidy(): Promise<void>;
}

/** Longer paths are cut by the kernel (unix(7)). */
const longestSocketPath = 107;
const ending = ".sock";

/**
 * Each process listens on a socket in the folder: the kernel accepts connections only while the process lives, whatever
 * process namespace, host name or container the asking process is in. If process ids mean the same for both, those
 * count too.
 * @param folder for the sockets, in the server's data folder; created if missing
 */
export function createOwnerProcess(folder: string): OwnerProcess {
  const token = randomBytes(4).toString("hex");
  const thisProcess = processOf();
  const socketOf = (name: string): string => join(folder, `${/[\da-f]+$/u.exec(name)?.[0] ?? unknown}${ending}`);
  const ownName = `${thisProcess} ${token}`;
  let server: Server | null = null;
  let listening: Promise<void> = Promise.resolve();

  /** Listens, and listens again if the folder was emptied. */
  async function listen(): Promise<void> {
    const path = socketOf(ownName);
    if (server !== null && (await answers(path))) return;
    if (path.length + 1 > longestSocketPath) {
      throw new InvalidInputError(
        `OFFSTAGE_DATA: the path is too long for a socket in it: ${folder} can have at most ${longestSocketPath - token.length - ending.length - 2} characters`,
      );
    }
    await mkdir(folder, { recursive: true, mode: 0o700 });
    server?.close();
    server = createServer((one) => one.destroy());
    server.unref();
    // Under a temporary name until it listens: a socket that does not listen counts as left by an ended process.
    await new Promise<void>((resolve, reject) => {
      server?.once("error", reject).listen(`${path}~`, resolve);
    });
    await rename(`${path}~`, path);
  }

  async function isAlive(name: string): Promise<boolean> {
    if (name === ownName) return true;
    const [boot, namespace, pid, start] = name.split(" ");
    const [ownBoot, ownNamespace] = thisProcess.split(" ");
    if (boot === ownBoot && namespace === ownNamespace && boot !== unknown)
      return knownProcess(Number(pid))?.startedAt === start;
    return answers(socketOf(name));
  }

  async function tidy(): Promise<void> {
    const files = await readdir(folder).catch(() => []);
    for (const path of files.filter((file) => file.endsWith(ending)).map((file) => join(folder, file))) {
      if (!(await answers(path))) await rm(path, { force: true });
    }
  }

  return {
    async name() {
      listening = listening.then(listen, listen);
      await listening;
      return ownName;
    },
    isAlive,
    tidy,
  };
}

/** Whether a process listens there. If this process may not connect, it counts as listening. */
function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const settle = (does: boolean): void => {
      socket.destroy();
      resolve(does);
    };
    socket.once("connect", () => settle(true));
    socket.once("error", ({ code }: NodeJS.ErrnoException) => settle(code !== "ENOENT" && code !== "ECONNREFUSED"));
  });
}

const unknown = "-";

/** Boot id, process id namespace, process id, and start time of this process. */
function processOf(): string {
  const start = knownProcess(process.pid)?.startedAt;
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    return `${boot} ${readlinkSync("/proc/self/ns/pid")} ${process.pid} ${start ?? unknown}`;
  } catch {
    // Not Linux: process ids can't be verified.
    return `${unknown} ${unknown} ${process.pid} ${unknown}`;
  }
}
