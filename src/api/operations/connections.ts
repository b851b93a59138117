import { InvalidInputError } from "../../domain/errors/errors.ts";
import { pageSchema, pageQuerySchema } from "../../domain/fields/list.ts";
import {
  connectionSchema,
  connectionStateOf,
  connectionWithSecretSchema,
  createConnectionSchema,
  deletedConnectionSchema,
  noWorkItems,
  rotateWebhookSecretSchema,
  updateConnectionSchema,
  usualAddresses,
  type ConnectionCheck,
  type ConnectionCredential,
  type ConnectionProblem,
} from "../../domain/repositories/connection.ts";
import type { ForgeKind } from "../../domain/repositories/repository.ts";
import { countRepositoriesAt } from "../../store/repositories/repositories.ts";
import {
  createConnection,
  deleteConnection,
  getConnection,
  listConnections,
  rotateConnectionSecret,
  updateConnection,
  type ConnectionRecord,
} from "../../store/secrets/forge-connections.ts";
import { openConnection, saveConnectionHealth } from "../../store/secrets/opened-connections.ts";
import { allowedRepositories } from "../../store/people/organizations.ts";
import { organizationOf } from "../http/auth.ts";
import type { ApiOptions, App } from "../http/context.ts";
import { databaseOfSecret, idOfCreated } from "../http/idempotency.ts";
import { answers, idOf, idParameters } from "../http/shapes.ts";

const tags = ["Connections"];
const admin = { operation: { scope: "admin" } } as const;
const adminWithSecret = { operation: { scope: "admin", secretBody: true } } as const;
const makesSecret = { ...adminWithSecret.operation, creates: true, secretAnswer: true } as const;

/** Adds the operations on connections of forges. Their credentials can be set, but not read. */
export function addConnectionOperations(app: App, options: ApiOptions): void {
  const { database, vault, connections } = options;
  const show = <Shown extends ConnectionRecord>(record: Shown) => ({
    ...record,
    hookUrl: hookUrlOf(options, record.id),
  });
  app.post(
    "/connection/create",
    {
      config: { operation: makesSecret },
      schema: {
        tags,
        operationId: "createConnection",
        summary:
          "Connect a forge: its credential is checked first; the webhook's secret is shown only in this response",
        body: createConnectionSchema,
        response: answers(connectionWithSecretSchema),
      },
    },
    async (request) => {
      const { credential, ...body } = request.body;
      const addresses = addressesOf(body);
      const check = await checked(options, organizationOf(request), addresses, credential);
      const { name = defaultName(addresses.webUrl), mention, allowedBots, workItemRepositories } = body;
      const set = { mention, allowedBots, workItemRepositories, hookSecret: body.webhookSecret };
      const connection = { ...addresses, ...set, id: idOfCreated(request), name };
      const organizationId = organizationOf(request);
      const held = databaseOfSecret(database, request);
      const made = await createConnection(held, vault, organizationId, { ...connection, credential, check });
      await connections.changed(organizationId);
      return show(made);
    },
  );
  app.get(
    "/connection/list",
    {
      config: admin,
      schema: {
        tags,
        operationId: "listConnections",
        summary: "List connections with their health, without credentials",
        querystring: pageQuerySchema,
        response: answers(pageSchema("connections", connectionSchema)),
      },
    },
    async (request) => {
      const page = await listConnections(database, organizationOf(request), request.query);
      return { connections: page.items.map(show), nextCursor: page.nextCursor };
    },
  );
  app.get(
    "/connection/:id",
    {
      config: admin,
      schema: {
        tags,
        operationId: "getConnection",
        summary: "Show a connection",
        params: idParameters,
        response: answers(connectionSchema),
      },
    },
    async (request) => show(await getConnection(database.pool, organizationOf(request), idOf(request, "connection"))),
  );
  app.post(
    "/connection/:id/update",
    {
      config: adminWithSecret,
      schema: {
        tags,
        operationId: "updateConnection",
        summary: "Rename a connection, say who calls Offstage there, or replace its credential, which is checked first",
        params: idParameters,
        body: updateConnectionSchema,
        response: answers(connectionSchema),
      },
    },
    async (request) => {
      const organizationId = organizationOf(request);
      const id = idOf(request, "connection");
      const { credential: given, ...changes } = request.body;
      const known = await getConnection(database.pool, organizationId, id);
      if (given?.type === "app" && known.kind !== "github")
        throw new InvalidInputError("credential: app is for github only");
      if (changes.workItemRepositories != null && known.kind !== "azure")
        throw new InvalidInputError(`workItemRepositories: ${noWorkItems}`);
      const credential = given && { given, check: await checked(options, organizationId, known, given) };
      const updated = await updateConnection(database, vault, organizationId, id, { ...changes, credential });
      await connections.changed(organizationId);
      return show(updated);
    },
  );
  app.post(
    "/connection/:id/check",
    {
      config: admin,
      schema: {
        tags,
        operationId: "checkConnection",
        summary: "Check a connection's credential now",
        params: idParameters,
        response: answers(connectionSchema),
      },
    },
    async (request) => {
      const organizationId = organizationOf(request);
      const id = idOf(request, "connection");
      const opened = await openConnection(database, vault, organizationId, id);
      await saveConnectionHealth(database, opened, await connections.check(opened, opened.credential));
      return show(await getConnection(database.pool, organizationId, id));
    },
  );
  app.post(
    "/connection/:id/rotate-secret",
    {
      config: { operation: { ...makesSecret, optionalBody: true } },
      schema: {
        tags,
        operationId: "rotateConnectionSecret",
        summary:
          "Replace the webhook's secret, by one of the forge's or a new one, shown only in this response; the one before is accepted for another day",
        params: idParameters,
        body: rotateWebhookSecretSchema,
        response: answers(connectionWithSecretSchema),
      },
    },
    async (request) => {
      const id = idOf(request, "connection");
      const { webhookSecret } = request.body;
      const held = databaseOfSecret(database, request);
      return show(
        await rotateConnectionSecret(held, vault, { organizationId: organizationOf(request), id }, webhookSecret),
      );
    },
  );
  app.post(
    "/connection/:id/delete",
    {
      config: admin,
      schema: {
        tags,
        operationId: "deleteConnection",
        summary:
          "Delete a connection with its credential: repositories at its address are used with the operator's configuration, if there is one",
        params: idParameters,
        response: answers(deletedConnectionSchema),
      },
    },
    async (request) => {
      const organizationId = organizationOf(request);
      const deleted = await deleteConnection(database, organizationId, idOf(request, "connection"));
      await connections.changed(organizationId);
      return { ...show(deleted), repositories: await countRepositoriesAt(database, organizationId, deleted.webUrl) };
    },
  );
}

/** The address to which the forge of a connection delivers its events. */
export function hookUrlOf({ publicUrl }: Pick<ApiOptions, "publicUrl">, id: string): string {
  return `${publicUrl()}/hook/forge/${id}`;
}

interface Addresses {
  readonly kind: ForgeKind;
  readonly webUrl: string;
  readonly apiUrl: string | null;
}

/** The addresses of a new connection, with the usual ones of its kind for those that were not sent. */
export function addressesOf(given: {
  readonly kind: ForgeKind;
  readonly webUrl?: string | undefined;
  readonly apiUrl?: string | undefined;
}): Addresses {
  const { kind } = given;
  const usual = usualAddresses[kind];
  const webUrl = given.webUrl ?? usual.webUrl ?? "";
  return {
    kind,
    // One owner must not have two connections that differ in capitals, which forges ignore.
    webUrl: kind === "git" ? webUrl : webUrl.toLowerCase(),
    apiUrl: given.apiUrl ?? usual.apiUrl(new URL(webUrl).origin),
  };
}

/** The host, and the owner if the address has one. */
export function defaultName(webUrl: string): string {
  const { host, pathname } = new URL(webUrl);
  return `${host}${pathname.replace(/\/$/u, "")}`.slice(0, 200);
}

/**
 * Checks a credential before it is saved.
 * @throws InvalidInputError if it lacks what sessions need, naming each scope with its reason, or is the operator's, which the organization
 * may not use
 */
async function checked(
  { connections, database }: Pick<ApiOptions, "connections" | "database">,
  organizationId: string,
  addresses: Addresses,
  credential: ConnectionCredential,
): Promise<ConnectionCheck> {
  if (credential.type === "configured" && !(await allowedRepositories(database, organizationId)).usesServerForges)
    throw new InvalidInputError(
      "credential: this organization does not use the server's access to forges: send a token or an app of its own, or ask an admin of the server",
    );
  const check = await connections.check(addresses, credential);
  if (connectionStateOf(check.problems) !== "broken") return check;
  const inWords = ({ missing, why, remedy }: ConnectionProblem): string => `missing ${missing}: ${why} ${remedy}`;
  const problems = check.problems.filter(({ essential }) => essential).map(inWords);
  throw new InvalidInputError(`credential: ${problems.join(" ").slice(0, 2_000)}`);
}
