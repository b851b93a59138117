import { join } from "node:path";
import { createApp } from "../api/app.ts";
import { replaceFile } from "../atomic-file.ts";
import type { Config } from "../config/config.ts";
import { hasFreeSpace, spaceOf } from "../database/free-space.ts";
import { listWorkers } from "../store/queue/worker-nodes.ts";
import { createMask } from "../domain/masking/mask.ts";
import { createPrincipalFinder } from "../store/people/principals.ts";
import { createBatchedInserts } from "../store/sessions/batched-inserts.ts";
import { fleetAgents, fleetDefaultAgent, listAgents } from "./agent-list.ts";
import { createForgeChoices } from "./browse-forges.ts";
import { addressFile } from "./data-folder.ts";
import { clientDocumentReader } from "./client-documents.ts";
import type { Dependencies } from "./dependencies.ts";
import { forgeAccounts } from "./forge-accounts.ts";
import { forgeConnections, settleKeys } from "./forge-connections.ts";
import { listenError } from "./listen-error.ts";
import { serverSecrets } from "./server-secrets.ts";
import { pushKeysOf } from "./push-keys.ts";
import type { Shutdown } from "./shutdown.ts";
import { chooseDefaultAgent } from "./agent-registry.ts";
import { createSignInMethods } from "./sign-in-methods.ts";
import { recordingsDirectory } from "./open-stores.ts";
import { version } from "./version.ts";
import { readWorkerId } from "./worker-id.ts";

/**
 * Starts the API and the web app.
 * @param options.alone this process also runs the sessions, so that no other worker's agents matter
 * @returns the server's address for users
 */
export async function startApiNode(
  dependencies: Dependencies,
  shutdown: Shutdown,
  options: { readonly alone: boolean },
): Promise<string> {
  const { config, logger, metrics, traces, database, vault, sandbox, providers, forges, templates } = dependencies;
  // If the system chooses the port, the address is known only once the server listens.
  let listening = config.publicUrl ?? "";
  const own = () => chooseDefaultAgent(config, providers);
  const defaultAgent = options.alone ? own : () => fleetDefaultAgent(config, database);
  const mask = createMask(serverSecrets(config));
  const pushKeys = pushKeysOf(dependencies);
  const connections = forgeConnections(dependencies);
  const settled = await settleKeys(dependencies);
  if (settled > 0) logger.info({ repositories: settled }, "merged repositories whose addresses name the same one");
  const app = await createApp({
    database,
    inserts: createBatchedInserts(database),
    findPrincipal: createPrincipalFinder(database),
    vault,
    logger,
    metrics,
    metricsToken: config.metricsToken,
    traces,
    publicUrl: () => listening,
    sandboxed: sandbox.isolates,
    allowLocalRepositories: config.allowLocalRepositories,
    rateLimitPerMinute: config.rateLimitPerMinute,
    deliveriesPerMinute: config.deliveriesPerMinute,
    mention: config.conversations.mention,
    maxRunningPerOrganization: config.maxRunningPerOrganization,
    queueLimit: config.queueLimit,
    // An external database is on another disk, and reports itself if that is full.
    hasRoom: () =>
      config.databaseUrl === null ? hasFreeSpace(config.data, config.minimumFreeBytes) : Promise.resolve(true),
    hosts: config.hosts,
    trustedProxies: config.trustedProxies,
    readClientDocument: clientDocumentReader(config),
    signInMethods: await createSignInMethods(config),
    signInPolicy: config.signInPolicy,
    signInDays: config.signInDays,
    defaultAgent,
    agents: async () => {
      const known = await listAgents(providers, own);
      return options.alone ? known : fleetAgents(known, await listWorkers(database), await defaultAgent());
    },
    maskOf: async (organizationId) => mask.with((await forges.of(organizationId)).secrets()),
    integrationOf: async (url, organizationId) => (await forges.of(organizationId)).integrationOf(url),
    repositoryKeyOf: async (address, organizationId) => (await forges.of(organizationId)).keyOf(address),
    connections,
    choices: createForgeChoices({ forges }),
    pushPublicKey: async () => (await pushKeys()).publicKey,
    sendsMail: config.mail !== null,
    accounts: forgeAccounts(dependencies),
    templates,
    webDirectory: join(import.meta.dirname, import.meta.filename.endsWith(".ts") ? "../../dist/web" : "../web"),
    ready: dependencies.ready,
    version,
    workerId: options.alone ? await readWorkerId(config.data) : null,
    diskSpace: async () => ({ ...(await spaceOf(config.data)), neededBytes: config.minimumFreeBytes }),
    recordingsDirectory: recordingsDirectory(config),
  });
  shutdown.add(() => app.close());
  const url = await listen(app, config);
  listening = config.publicUrl ?? url;
  await replaceFile(addressFile(config), `${listening}\n`, { mode: 0o600 });
  return listening;
}

async function listen(app: Awaited<ReturnType<typeof createApp>>, config: Config): Promise<string> {
  try {
    await app.listen({ host: config.host, port: config.port });
  } catch (error) {
    throw listenError(error, config, "OFFSTAGE_PORT");
  }
  const address = app.server.address();
  const port = typeof address === "object" && address !== null ? address.port : config.port;
  // A wildcard address can't be opened in a browser.
  const host = config.host === "0.0.0.0" || config.host === "::" ? "127.0.0.1" : config.host;
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
