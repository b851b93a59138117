import type { FastifyRequest } from "fastify";
import type { Database } from "../../database/database.ts";
import { ForbiddenError, InvalidInputError } from "../../domain/errors/errors.ts";
import { pageSchema, pageQuerySchema } from "../../domain/fields/list.ts";
import { accountSchema, createAccountSchema, updateAccountSchema } from "../../domain/people/account.ts";
import { hasScope } from "../../domain/people/key.ts";
import { connectionStateOf, type ConnectionCheck } from "../../domain/repositories/connection.ts";
import {
  createAccount,
  deleteAccount,
  getAccount,
  listAccounts,
  updateAccount,
  type AccountOwner,
} from "../../store/secrets/accounts.ts";
import { openAccount, saveAccountHealth } from "../../store/secrets/opened-accounts.ts";
import { principalOfRequest, requirePerson } from "../http/auth.ts";
import type { AccountPlace, ApiOptions, App } from "../http/context.ts";
import { idOfCreated } from "../http/idempotency.ts";
import { answers, idOf, idParameters } from "../http/shapes.ts";

const tags = ["Accounts"];

/**
 * Adds the operations on people's own accounts at forges, with which pull requests are opened that they ask for. A
 * token can be set, but not read, and only its person sees that there is one.
 */
export function addAccountOperations(
  app: App,
  { database, vault, accounts }: Pick<ApiOptions, "database" | "vault" | "accounts">,
): void {
  app.post(
    "/account/create",
    {
      config: { operation: { scope: "write", creates: true, secretBody: true } },
      schema: {
        tags,
        operationId: "createAccount",
        summary: "Connect your own account at a forge: its token is checked first",
        body: createAccountSchema,
        response: answers(accountSchema),
      },
    },
    async (request) => {
      const owner = await ownerOf(database, request);
      const { webUrl, token, username } = request.body;
      const place = await accounts.placeOf(owner.organizationId, webUrl);
      if (typeof place === "string") throw new InvalidInputError(`webUrl: ${place}`);
      requireNoUsername(place, username);
      const found = await checked(accounts, place, { token, username });
      const account = { ...place, ...found, id: idOfCreated(request), token, username: username ?? null };
      return createAccount(database, vault, owner, account);
    },
  );
  app.get(
    "/account/list",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "listAccounts",
        summary: "List your own accounts at forges with their health, without their tokens",
        querystring: pageQuerySchema,
        response: answers(pageSchema("accounts", accountSchema)),
      },
    },
    async (request) => {
      const page = await listAccounts(database, await ownerOf(database, request), request.query);
      return { accounts: page.items, nextCursor: page.nextCursor };
    },
  );
  app.get(
    "/account/:id",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "getAccount",
        summary: "Show an account of yours",
        params: idParameters,
        response: answers(accountSchema),
      },
    },
    async (request) => getAccount(database, await ownerOf(database, request), idOf(request, "account")),
  );
  app.post(
    "/account/:id/update",
    {
      config: { operation: { scope: "write", secretBody: true } },
      schema: {
        tags,
        operationId: "updateAccount",
        summary: "Replace the token of an account of yours, which is checked first",
        params: idParameters,
        body: updateAccountSchema,
        response: answers(accountSchema),
      },
    },
    async (request) => {
      const owner = await ownerOf(database, request);
      const id = idOf(request, "account");
      const { token, username } = request.body;
      const known = await getAccount(database, owner, id);
      requireNoUsername(known, username);
      const found = await checked(accounts, known, { token, username });
      return updateAccount(database, vault, owner, id, { ...found, token, username: username ?? null });
    },
  );
  app.post(
    "/account/:id/check",
    {
      config: { operation: { scope: "write" } },
      schema: {
        tags,
        operationId: "checkAccount",
        summary: "Check an account of yours now: if its token is good, it is tried again where it was refused",
        params: idParameters,
        response: answers(accountSchema),
      },
    },
    async (request) => {
      const owner = await ownerOf(database, request);
      const opened = await openAccount(database, vault, owner, idOf(request, "account"));
      const { token, username } = opened;
      const credential = token instanceof Error ? token : { token, username: username ?? undefined };
      await saveAccountHealth(database, opened, await accounts.check(opened, credential));
      return getAccount(database, owner, opened.id);
    },
  );
  app.post(
    "/account/:id/delete",
    {
      // A person who may only read by now can still remove their own token.
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "deleteAccount",
        summary: "Delete an account of yours with its token",
        params: idParameters,
        response: answers(accountSchema),
      },
    },
    async (request) => {
      const owner = await ownerOf(database, request);
      const principal = principalOfRequest(request);
      if (principal.keyId !== null && !hasScope(principal, "write")) {
        throw new ForbiddenError("this key lacks the scope write: use one that has it, or sign in");
      }
      return deleteAccount(database, owner, idOf(request, "account"));
    },
  );
}

/** @throws ForbiddenError if the caller is no user */
const ownerOf = (database: Database, request: FastifyRequest): Promise<AccountOwner> =>
  requirePerson(database, request, "an account");

/** @throws InvalidInputError if the kind of forge takes a token alone */
function requireNoUsername({ kind }: Pick<AccountPlace, "kind">, username: string | undefined): void {
  if (username === undefined || kind === "bitbucket" || kind === "bitbucketDataCenter") return;
  throw new InvalidInputError(`username: is for Bitbucket only: leave it out for ${kind}`);
}

/**
 * Checks a token before it is saved.
 * @throws InvalidInputError if pull requests can't be opened with it, naming each scope with its reason
 */
async function checked(
  accounts: ApiOptions["accounts"],
  place: AccountPlace,
  credential: { readonly token: string; readonly username: string | undefined },
): Promise<{ readonly name: string; readonly check: ConnectionCheck }> {
  const check = await accounts.check(place, credential);
  const essential = check.problems.filter((problem) => problem.essential);
  const { account: name } = check;
  if (connectionStateOf(check.problems) !== "broken" && name !== null) return { name, check };
  const problems = essential.map(({ missing, why, remedy }) => `missing ${missing}: ${why} ${remedy}`);
  throw new InvalidInputError(`token: ${problems.join(" ").slice(0, 2_000)}`);
}
