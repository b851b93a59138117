import { randomBytes } from "node:crypto";
import { chmod, mkdir, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { join } from "node:path";
import { modelProviderIds, type ModelProviders } from "../domain/agents/model.ts";
import type { EgressPolicy } from "../domain/environments/egress.ts";
import { InvalidInputError } from "../domain/errors/errors.ts";
import { bundleWith } from "../outbound/process-wide.ts";
import type { Proxies } from "../outbound/proxies.ts";
import type { publicAddressOf } from "./egress/addresses.ts";
import { createEgressProxy, type RefusedConnection } from "./egress/egress.ts";
import type { RegistryRoute } from "./egress/registry-places.ts";
import { admitAll } from "./models/admission.ts";
import { createModelGateway, type ModelGateway, type ModelGatewayOptions } from "./models/model-gateway.ts";
import { modelBaseUrl, modelPrefix } from "./models/routes.ts";
import { createToolServer, toolPrefix, type CallTool, type ToolDescription } from "./tools.ts";
import type { ModelTraffic } from "./traffic.ts";

/** The only way out of one session's sandbox. */
export interface Gateway {
  /** Path of the unix socket that is mounted into the session's sandbox: a client that can connect is that session. */
  readonly socket: string;
  /** The session's token, which is used for every key, and is valid only at this gateway. */
  readonly token: string;
  /** Model providers as the sandbox sees them: the gateway's address, and the session's token in place of every key. */
  modelsAt(origin: string): ModelProviders;
  /**
   * File of all certificates that tools in the sandbox must trust to reach private registries, which the sandbox must see; null
   * if they need none.
   */
  readonly authoritiesFile: string | null;
  /** A private registry's address at the gateway, for a tool that can't be configured to trust a certificate. */
  registryAt(origin: string, id: string): string;
  traffic(): Promise<ModelTraffic>;
  /** Ends every connection. Open requests to models are still read to their end, to be billed. */
  close(): Promise<void>;
}

/** A gateway on this process's own event loop. */
export interface LocalGateway extends Gateway {
  /**
   * From now on it serves this session; no other session's sandbox has used the gateway. Requests that are under way
   * end as they began.
   * @throws Error if registries are among it, since their certificates had to be there when the sandbox started
   */
  adopt(session: Served): void;
  /** Settles when no request to a model is open or unsettled. */
  idle(): Promise<void>;
}

/** Each connection takes two descriptors. */
const mostConnections = 1_000;
/** Most answers end within this time; an answer that does not is billed at its maximum. */
const lingersMs = 30_000;
/** The kernel cuts longer paths (unix(7)). */
const longestSocketPath = 107;

/** The services of a gateway for its sandbox. */
export type Served = {
  readonly models: ModelProviders;
  readonly egress: EgressPolicy;
  readonly onRefused: (refusal: RefusedConnection) => void;
  /** Private registries, whose credentials it adds. */
  readonly registries?: readonly RegistryRoute[];
  /** Tools of the service that the sandbox may call; none if omitted. */
  readonly tools?: { readonly list: readonly ToolDescription[]; readonly call: CallTool };
  /** Answers requests to models; default: forwards them. */
  readonly answers?: (reading: Pick<ModelGatewayOptions, "models" | "permits" | "token">) => ModelGateway;
} & Partial<Pick<ModelGatewayOptions, "permits" | "admit" | "onRequest" | "recorder" | "lingerMs">>;

/** How a gateway reaches other hosts. */
interface Reach {
  /** Finds a host's public address; default: by the system's resolver. */
  readonly resolve?: typeof publicAddressOf;
  /** The operator's proxies to other hosts; none if omitted. */
  readonly proxies?: Proxies;
}

/**
 * Opens the only way out of a session's sandbox: models by the session's token, other hosts by the list. It reads what
 * the sandbox sends on this process's event loop; `process/process.ts` gives each gateway its own process.
 * @param options.directory folder of its socket; created if missing
 * @throws InvalidInputError if the socket's path is too long
 */
export async function openGateway(
  options: Served &
    Reach & {
      readonly directory: string;
      /** Certificates that the sandbox trusts in addition to the usual ones, each as PEM. */
      readonly authorities?: readonly string[];
    },
): Promise<LocalGateway> {
  const { directory, models } = options;
  const socket = join(directory, `${randomBytes(6).toString("hex")}.sock`);
  if (socket.length > longestSocketPath) {
    throw new InvalidInputError(
      `OFFSTAGE_DATA: the path is too long for a socket in it: ${directory} can have at most 90 characters`,
    );
  }
  const token = `offstage-session-${randomBytes(24).toString("base64url")}`;
  let serving = serve(options, options, token);
  const { authority } = serving.egress.registries;
  const authoritiesFile = authority === null ? null : socket.replace(/\.sock$/u, ".pem");
  const open = new Set<Socket>();
  const server = createServer((request, response) => {
    // An absolute URL is a proxy request; a path is a request to the gateway itself.
    if (request.url?.startsWith("/") !== true) void serving.egress.forward(request, response);
    else if (request.url.startsWith(modelPrefix)) serving.models.serve(request, response);
    else if (request.url.startsWith(registryPrefix)) serving.serveRegistry(request, response);
    else if (request.url.startsWith(toolPrefix)) serving.serveTools(request, response);
    else response.writeHead(404).end();
  });
  server.requestTimeout = 0;
  server.maxConnections = mostConnections;
  server.on("connect", (request, client, head) => void serving.egress.tunnel(request, client, head));
  server.on("connection", (client) => {
    open.add(client);
    client.once("close", () => open.delete(client));
  });
  await mkdir(directory, { recursive: true, mode: 0o700 });
  if (authority !== null && authoritiesFile !== null) {
    await writeFile(authoritiesFile, bundleWith([...(options.authorities ?? []), authority]), { mode: 0o644 });
  }
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(socket, resolve);
  });
  // The sandbox's user must be able to connect; no other user can enter the folder.
  await chmod(socket, 0o666);
  return {
    socket,
    token,
    authoritiesFile,
    registryAt: (origin, id) => registryUrl(origin, token, id),
    modelsAt: (origin) => modelsSeenFrom(origin, models, token),
    traffic: () => Promise.resolve(serving.models.traffic()),
    idle: () => serving.models.idle(),
    adopt(session) {
      const next = serve(session, options, token);
      if (next.egress.registries.authority !== null) throw new Error("a gateway can't get registries later");
      serving = next;
    },
    async close() {
      for (const client of open) client.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
      await rm(socket, { force: true });
      if (authoritiesFile !== null) await rm(authoritiesFile, { force: true });
    },
  };
}

/** The handlers of each kind of request. */
function serve(session: Served, { resolve, proxies }: Reach, token: string) {
  const { models, permits = [], admit = admitAll, onRequest = () => undefined, recorder = null } = session;
  const reading = { models, permits, token };
  const forwarding = { ...reading, admit, onRequest, recorder, lingerMs: session.lingerMs ?? lingersMs };
  const egress = createEgressProxy(session.egress, session.onRefused, resolve, proxies, session.registries);
  const { list: tools = [], call = noTool } = session.tools ?? {};
  return {
    models: session.answers?.(reading) ?? createModelGateway(forwarding),
    egress,
    serveTools: createToolServer({ tools, token, call }),
    /**
     * For tools that can't be configured to trust a certificate. The token is in the address: they can't all send a
     * header.
     */
    serveRegistry(request: IncomingMessage, response: ServerResponse): void {
      const [shown = "", id = "", ...path] = (request.url ?? "").slice(registryPrefix.length).split("/");
      if (shown === token) egress.registries.serve(id, path.join("/"), request, response);
      else response.writeHead(404).end();
    },
  };
}

const noTool: CallTool = () => Promise.resolve({ text: "there is no such tool", isError: true });

/** Paths of registries at the gateway: `<prefix><token>/<id>/<path>`. */
const registryPrefix = "/registries/";

/** A registry's address as a sandbox sees it. @param origin of the gateway, as the sandbox reaches it */
export function registryUrl(origin: string, token: string, id: string): string {
  return `${origin}${registryPrefix}${token}/${id}/`;
}

/** Model providers as a sandbox sees them. @param origin of the gateway, as the sandbox reaches it */
export function modelsSeenFrom(origin: string, models: ModelProviders, token: string): ModelProviders {
  const configured = modelProviderIds.filter((provider) => models[provider] !== undefined);
  return Object.fromEntries(
    configured.map((provider) => [
      provider,
      { ...models[provider], apiKey: token, baseUrl: modelBaseUrl(origin, provider) },
    ]),
  );
}
