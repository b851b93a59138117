import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer as createHttpServer, type Server as HttpServer } from "node:http";
import { createServer, type AddressInfo, type Server } from "node:net";
import { spawn, type ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { uniqueMark } from "../sandboxes/sandbox-folders.ts";

/** Things of the machine that no session may touch, each of which shows when one did. */
export interface Canaries {
  /** Stands in every planted file, and in what planted services answer. */
  readonly value: string;
  /** A folder of the machine: `home` as of a person who works there, `etc`, `run`. */
  readonly folder: string;
  /** A process of the machine, to be ended. */
  readonly bait: ChildProcess;
  /** Serves HTTP on loopback. */
  readonly httpPort: number;
  /** Takes datagrams on loopback. */
  readonly udpPort: number;
  /** Takes connections on loopback and keeps the first bytes, such as a ClientHello. */
  readonly tcpPort: number;
  /** Name of an abstract unix socket, without the zero byte before it. */
  readonly abstractName: string;
  /** Requests' paths and bodies, datagrams, and first bytes of connections, as they came. */
  readonly seen: readonly string[];
  close(): Promise<void>;
}

export async function plantCanaries(): Promise<Canaries> {
  const value = `canary-${randomBytes(12).toString("hex")}`;
  const folder = await mkdtemp(join(tmpdir(), "offstage-outside-"));
  const files = [
    "home/.ssh/id_ed25519",
    "home/.ssh/authorized_keys",
    "home/.aws/credentials",
    "home/.bashrc",
    "home/.config/systemd/user/own.service",
    "etc/cron.d/own",
    "etc/own.conf",
  ];
  for (const file of files) {
    await mkdir(join(folder, file, ".."), { recursive: true });
    await writeFile(join(folder, file), `${value}\n`, { mode: 0o644 });
  }
  await mkdir(join(folder, "run"));
  const seen: string[] = [];
  const http = createHttpServer((request, response) => {
    let body = "";
    request.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
    request.on("end", () => {
      seen.push(`${request.method} ${request.headers.host} ${request.url} ${body}`);
      response.end(value);
    });
  });
  const udp = createSocket("udp4");
  udp.on("message", (message) => seen.push(`udp ${message.toString("latin1")}`));
  const tcp = createServer((client) => {
    client.on("error", () => undefined);
    client.once("data", (bytes) => {
      seen.push(`tcp ${bytes.toString("latin1")}`);
      client.end();
    });
  });
  const answers = (): Server =>
    createServer((client) => {
      client.on("error", () => undefined);
      client.end(`${value}\n`);
    });
  const abstractName = `offstage-${randomBytes(8).toString("hex")}`;
  const [engine, program] = [answers(), answers()];
  await Promise.all([
    listen(http, () => http.listen(0, "127.0.0.1")),
    listen(tcp, () => tcp.listen(0, "127.0.0.1")),
    listen(engine, () => engine.listen(join(folder, "run/engine.sock"))),
    listen(program, () => program.listen(`\0${abstractName}`)),
    listen(udp, () => udp.bind(0, "127.0.0.1")),
  ]);
  const bait = spawn("sleep", [uniqueMark()], { stdio: "ignore" });
  return {
    value,
    folder,
    bait,
    httpPort: (http.address() as AddressInfo).port,
    udpPort: udp.address().port,
    tcpPort: (tcp.address() as AddressInfo).port,
    abstractName,
    seen,
    async close() {
      bait.kill("SIGKILL");
      http.closeAllConnections();
      for (const server of [http, tcp, engine, program]) server.close();
      udp.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function listen(server: HttpServer | Server | UdpSocket, start: () => void): Promise<void> {
  const listening = once(server, "listening");
  start();
  await listening;
}
