import { execFile } from "node:child_process";
import { connect, createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Gateway } from "../../src/gateway/gateway.ts";
import type { HomeFiles } from "../../src/worker/sandboxed/harness-files.ts";
import { registrySettings } from "../../src/worker/setup/registry-settings.ts";
import { testEnvironment } from "../test-environment.ts";

/** What a sandbox's relay does, without a sandbox: a port on loopback for a gateway's socket, and the environment for tools. */
export async function throughGateway(
  gateway: Gateway,
  registries: Parameters<typeof registrySettings>[0],
  home: string,
): Promise<{
  readonly environment: Record<string, string>;
  readonly files: HomeFiles;
  close(): void;
}> {
  const server = createServer((inner) => {
    const outer = connect(gateway.socket);
    inner.on("error", () => outer.destroy()).pipe(outer);
    outer.on("error", () => inner.destroy()).pipe(inner);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const { environment, files } = registrySettings(registries, gateway, home);
  const filled = Object.entries(environment).map(([name, value]) => [
    name,
    value.replace("http://127.0.0.1:{gatewayPort}", origin),
  ]);
  return {
    environment: {
      ...testEnvironment(),
      HOME: home,
      ...(Object.fromEntries(filled) as Record<string, string>),
      HTTPS_PROXY: origin,
      https_proxy: origin,
      NODE_USE_ENV_PROXY: "1",
    },
    files,
    close: () => server.close(),
  };
}

/** Writes what the worker writes inside a sandbox before each turn. @param environment of the program that writes, as an image sets it */
export async function writeHomeFiles(
  home: string,
  files: HomeFiles,
  environment: NodeJS.ProcessEnv = {},
): Promise<void> {
  const writer = join(import.meta.dirname, "../../src/worker/sandboxed/write-files.cjs");
  const env = { ...testEnvironment(), ...environment };
  const writing = promisify(execFile)(process.execPath, [writer], { cwd: home, env });
  writing.child.stdin?.end(JSON.stringify(files));
  await writing;
}
