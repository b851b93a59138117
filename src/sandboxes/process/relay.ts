import { programText } from "../../programs/program-text.ts";
import type { SandboxRequest } from "../sandbox.ts";

/** Placeholder in a sandbox's environment and arguments for the relay's address: its port is known only inside. */
export const gatewayOrigin = "http://127.0.0.1:{gatewayPort}";

/** A command with its arguments and environment. */
export interface Relayed {
  readonly command: string;
  readonly arguments: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

/**
 * Wraps the request's command in a relay (`relay.cjs`), which forwards connections on loopback to the gateway's socket; unchanged if the request has no gateway.
 * @param closed whether the gateway is the only way to the network, so that proxy variables must name it
 */
export function withRelay(request: SandboxRequest, closed: boolean): Relayed {
  const { command, gateway, environment } = request;
  if (gateway === undefined) return { command, arguments: request.arguments, environment };
  return {
    command: process.execPath,
    arguments: [
      "-e",
      programText(import.meta.url, "relay.cjs"),
      "--",
      gateway,
      closed ? "closed" : "open",
      command,
      ...request.arguments,
    ],
    environment,
  };
}
