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

/** Path of the distribution's own perl, without third-party modules: git depends on it, so most machines have it. */
export const systemPerl = "/usr/bin/perl";

/**
 * Wraps the request's command in a relay, which forwards connections on loopback to the gateway's socket; unchanged if the request
 * has no gateway. The relay is a program of Node's (`relay.cjs`) or, if `perl` names one that is visible inside, of perl's
 * (`relay.pl`), which needs the sandbox to have its own processes and no other network.
 * @param closed whether the gateway is the only way to the network, so that proxy variables must name it
 */
export function withRelay(request: SandboxRequest, closed: boolean, perl: string | null = null): Relayed {
  const { command, gateway, environment } = request;
  if (gateway === undefined) return { command, arguments: request.arguments, environment };
  const relay =
    perl !== null && closed
      ? [perl, "-e", programText(import.meta.url, "relay.pl"), "--", gateway]
      : [process.execPath, "-e", programText(import.meta.url, "relay.cjs"), "--", gateway, closed ? "closed" : "open"];
  const [program = "", ...parameters] = relay;
  return { command: program, arguments: [...parameters, command, ...request.arguments], environment };
}
