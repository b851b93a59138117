import { execFile, spawn } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { freePorts } from "../fleet.ts";
import { testEnvironment } from "../test-environment.ts";
import { waitFor } from "../wait-for.ts";

/** A private registry of npm: Verdaccio, which shows packages only to requests with a token. */
export interface PrivateNpm {
  /** Its address on this machine. */
  readonly url: string;
  readonly token: string;
  /** Publishes a package of one file, with npm itself. */
  publish(name: string, version: string, content: string): Promise<void>;
  close(): Promise<void>;
}

/** @param publicUrl address that its metadata names */
export async function startVerdaccio(publicUrl: string): Promise<PrivateNpm> {
  const folder = await mkdtemp(join(tmpdir(), "offstage-verdaccio-"));
  const config = join(folder, "config.yaml");
  await writeFile(
    config,
    [
      `storage: ${join(folder, "storage")}`,
      "auth:",
      "  htpasswd:",
      `    file: ${join(folder, "htpasswd")}`,
      "uplinks: {}",
      "packages:",
      '  "**":',
      "    access: $authenticated",
      "    publish: $authenticated",
      "log: { type: stdout, format: json, level: http }",
      "",
    ].join("\n"),
  );
  const [port = 0] = await freePorts(1);
  const url = `http://127.0.0.1:${port}`;
  const program = join(import.meta.dirname, "../../node_modules/verdaccio/bin/verdaccio");
  const child = spawn(process.execPath, [program, "--config", config, "--listen", `127.0.0.1:${port}`], {
    env: { ...testEnvironment(), HOME: folder, VERDACCIO_PUBLIC_URL: publicUrl },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let log = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (log += chunk.toString()));
  await waitFor(async () => {
    if (child.exitCode !== null) throw new Error(`verdaccio ended: ${log.slice(-2_000)}`);
    return fetch(`${url}/-/ping`).then(
      ({ ok }) => ok,
      () => false,
    );
  }, "verdaccio answers");
  const signedUp = await fetch(`${url}/-/user/org.couchdb.user:worker`, {
    method: "PUT",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ name: "worker", password: "a password 1" }),
  });
  const { token } = (await signedUp.json()) as { token: string };
  return {
    url,
    token,
    async publish(name, version, content) {
      const place = await mkdtemp(join(folder, "package-"));
      await mkdir(place, { recursive: true });
      await writeFile(join(place, "package.json"), JSON.stringify({ name, version, main: "index.js" }));
      await writeFile(join(place, "index.js"), content);
      await writeFile(join(place, ".npmrc"), `//127.0.0.1:${port}/:_authToken=${token}\n`);
      const env = { ...testEnvironment(), HOME: folder };
      await promisify(execFile)("npm", ["publish", "--registry", url], { cwd: place, env });
    },
    async close() {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill();
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
