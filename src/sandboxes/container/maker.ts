import { randomBytes } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { connect, createServer, type Server } from "node:net";
import { join } from "node:path";
import { InvalidInputError } from "../../domain/errors.ts";

/** The process of the server that makes containers, and others of the same data folder, by which containers say whose they are. */
export interface Maker {
  /** Of this process. @throws the system's error if the folder can't be written to; InvalidInputError if its path is too long */
  name(): Promise<string>;
  /** @param name as an earlier `name()` of this or another process gave it @returns whether that process still runs */
  isAlive(name: string): Promise<boolean>;
  /** Removes what processes that are gone left in the folder. */
  tidy(): Promise<void>;
}

/** Longer paths are cut by the kernel (unix(7)). */
const longestSocketPath = 107;
const ending = ".sock";

/**
 * Each process has a socket in the folder, on which it only listens: the kernel lets others connect as long as it lives, from
 * whatever process namespace, host name or container they look. Where the numbers of its processes mean the same here, those
 * are believed too.
 * @param folder for the sockets, of the server's data folder; made if it is not there
 */
export function createMaker(folder: string): Maker {
  const token = randomBytes(4).toString("hex");
  const thisProcess = processOf();
  const socketOf = (name: string): string => join(folder, `${/[\da-f]+$/u.exec(name)?.[0] ?? unknown}${ending}`);
  const ownName = `${thisProcess} ${token}`;
  let server: Server | null = null;
  let listening: Promise<void> = Promise.resolve();

  /** Listens, also again after somebody emptied the folder. */
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
    // Under another name until it listens: one that does not listen counts as left by a process that is gone.
    await new Promise<void>((resolve, reject) => {
      server?.once("error", reject).listen(`${path}~`, resolve);
    });
    await rename(`${path}~`, path);
  }

  async function isAlive(name: string): Promise<boolean> {
    if (name === ownName) return true;
    const [boot, namespace, pid, start] = name.split(" ");
    const [ownBoot, ownNamespace] = thisProcess.split(" ");
    if (boot === ownBoot && namespace === ownNamespace && boot !== unknown) return startOf(Number(pid)) === start;
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

/** Whether a process listens there. One that may not be asked counts as one that does. */
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

/** The kernel's start, the namespace in which a process's number means something, the number, and when that process began. */
function processOf(): string {
  const start = startOf(process.pid);
  try {
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    return `${boot} ${readlinkSync("/proc/self/ns/pid")} ${process.pid} ${start ?? unknown}`;
  } catch {
    // No Linux: of other processes nothing is known by their numbers then.
    return `${unknown} ${unknown} ${process.pid} ${unknown}`;
  }
}

/** In ticks since the machine started (proc_pid_stat(5)); the name before it may hold anything. Null if there is no such process. */
function startOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19] ?? null;
  } catch {
    return null;
  }
}
