import { randomBytes } from "node:crypto";
import { chmod, mkdir, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { Socket } from "node:net";
import { join } from "node:path";
import type { EgressPolicy } from "../domain/egress.ts";
import { InvalidInputError } from "../domain/errors.ts";
import { modelProviderIds, type ModelProviders } from "../domain/model.ts";
import type { publicAddressOf } from "./egress/addresses.ts";
import { createEgressProxy, type Refusal } from "./egress/egress.ts";
import { admitAll } from "./models/admission.ts";
import { createModelGateway, type ModelGateway, type ModelGatewayOptions } from "./models/model-gateway.ts";
import { modelBaseUrl, modelPrefix } from "./models/routes.ts";
import type { ModelTraffic } from "./traffic.ts";

export interface Gateway {
  /** The unix socket that goes into one session's sandbox: who can reach it is that session. */
  readonly socket: string;
  /** The models as the sandbox sees them: the gateway's address, and the session's token in place of every key. */
  modelsAt(origin: string): ModelProviders;
  traffic(): Promise<ModelTraffic>;
  /** Ends every connection. What models were asked is still heard to its end, to be counted. */
  close(): Promise<void>;
}

/** A gateway on this process's own event loop. */
export interface LocalGateway extends Gateway {
  readonly token: string;
  /** Settles once nothing is asked of a model any more. */
  idle(): Promise<void>;
}

/** Each costs two descriptors. */
const mostConnections = 1_000;
/** Most answers are over by then; what is not counts as the longest that it can be. */
const lingersMs = 30_000;
/** Longer paths are cut by the kernel (unix(7)). */
const longestSocketPath = 107;

/**
 * Opens the one way out of a session's sandbox: models by the session's token, everything else by the list. What a sandbox
 * sends is read on this process's event loop; `process/process.ts` gives each gateway a process of its own.
 * @param options.directory where its socket lies; made where it is not there
 * @throws InvalidInputError where that path is too long for a socket
 */
export async function openGateway(
  options: {
    readonly directory: string;
    readonly models: ModelProviders;
    readonly egress: EgressPolicy;
    readonly onRefused: (refusal: Refusal) => void;
    /** Finds the public address of a host; by the system's resolver if it is not given. */
    readonly resolve?: typeof publicAddressOf;
    /** Answers requests of models; asks them if it is not given. */
    readonly answers?: (reading: Pick<ModelGatewayOptions, "models" | "permits">) => ModelGateway;
  } & Partial<Pick<ModelGatewayOptions, "permits" | "admit" | "onRequest" | "recorder" | "lingerMs">>,
): Promise<LocalGateway> {
  const { directory, models } = options;
  const socket = join(directory, `${randomBytes(6).toString("hex")}.sock`);
  if (socket.length > longestSocketPath) {
    throw new InvalidInputError(
      `OFFSTAGE_DATA: the path is too long for a socket in it: ${directory} can have at most 90 characters`,
    );
  }
  const token = `offstage-session-${randomBytes(24).toString("base64url")}`;
  const {
    permits = [],
    admit = admitAll,
    onRequest = () => undefined,
    recorder = null,
    lingerMs = lingersMs,
  } = options;
  const reading = { models, permits };
  const gateway =
    options.answers?.(reading) ?? createModelGateway({ ...reading, token, admit, onRequest, recorder, lingerMs });
  const egress = createEgressProxy(options.egress, options.onRefused, options.resolve);
  const open = new Set<Socket>();
  const server = createServer((request, response) => {
    // An address of its own means a proxy's request; a path alone is meant for us.
    if (request.url?.startsWith("/") !== true) void egress.forward(request, response);
    else if (request.url.startsWith(modelPrefix)) gateway.serve(request, response);
    else response.writeHead(404).end();
  });
  server.requestTimeout = 0;
  server.maxConnections = mostConnections;
  server.on("connect", (request, client, head) => void egress.tunnel(request, client, head));
  server.on("connection", (client) => {
    open.add(client);
    client.once("close", () => open.delete(client));
  });
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(socket, resolve);
  });
  // The sandbox's own user connects to it, into whose sandbox it is bound; all others can't enter the folder.
  await chmod(socket, 0o666);
  return {
    socket,
    token,
    modelsAt: (origin) => modelsSeenFrom(origin, models, token),
    traffic: () => Promise.resolve(gateway.traffic()),
    idle: gateway.idle,
    async close() {
      for (const client of open) client.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
      await rm(socket, { force: true });
    },
  };
}

/** The models as a sandbox sees them. @param origin of the gateway, as the sandbox reaches it */
export function modelsSeenFrom(origin: string, models: ModelProviders, token: string): ModelProviders {
  const configured = modelProviderIds.filter((provider) => models[provider] !== undefined);
  return Object.fromEntries(
    configured.map((provider) => [
      provider,
      { ...models[provider], apiKey: token, baseUrl: modelBaseUrl(origin, provider) },
    ]),
  );
}
