import { ForbiddenError } from "../../../domain/errors/errors.ts";
import { pageSchema, pageQuerySchema } from "../../../domain/fields/list.ts";
import { hasScope } from "../../../domain/people/key.ts";
import {
  createRepositorySchema,
  repositorySchema,
  updateRepositorySchema,
  type Repository,
} from "../../../domain/repositories/repository.ts";
import { allowedRepositories } from "../../../store/people/organizations.ts";
import {
  createRepository,
  deleteRepository,
  getRepository,
  listRepositories,
  updateRepository,
  type RepositoryRecord,
} from "../../../store/repositories/repositories.ts";
import { organizationOf, principalOfRequest } from "../../http/auth.ts";
import type { ApiOptions, App } from "../../http/context.ts";
import { answers, idOf, idParameters } from "../../http/shapes.ts";
import { readAddress, requireAllowed } from "../resolve.ts";

const tags = ["Repositories"];

/** Adds the operations on repositories: connect, list, show, change, disconnect. */
export function addRepositoryOperations(
  app: App,
  options: Pick<ApiOptions, "integrationOf" | "repositoryKeyOf" | "database" | "allowLocalRepositories">,
): void {
  const { database } = options;
  const show = async (record: RepositoryRecord): Promise<Repository> => {
    const integration = await options.integrationOf(record.url, record.organizationId);
    return integration === undefined ? record : { ...record, integration };
  };
  app.post(
    "/repository/create",
    {
      config: { operation: { scope: "write", creates: true } },
      schema: {
        tags,
        operationId: "createRepository",
        summary: "Connect a repository",
        body: createRepositorySchema,
        response: answers(repositorySchema),
      },
    },
    async (request) => {
      const { url, name, branch = null, description = null } = request.body;
      if (branch !== null) requireAdmin(request);
      const address = readAddress(options, "url", url);
      requireAllowed(await allowedRepositories(database, organizationOf(request)), "url", address);
      const key = await options.repositoryKeyOf(address, organizationOf(request));
      const input = { url: address.cloneUrl, key, name: name ?? address.name, branch, description };
      return show(await createRepository(database, organizationOf(request), input));
    },
  );
  app.get(
    "/repository/list",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "listRepositories",
        summary: "List repositories",
        querystring: pageQuerySchema,
        response: answers(pageSchema("codeRepositories", repositorySchema)),
      },
    },
    async (request) => {
      const page = await listRepositories(database, organizationOf(request), request.query);
      return { codeRepositories: await Promise.all(page.items.map(show)), nextCursor: page.nextCursor };
    },
  );
  app.get(
    "/repository/:id",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "getRepository",
        summary: "Show a repository",
        params: idParameters,
        response: answers(repositorySchema),
      },
    },
    async (request) => show(await getRepository(database, organizationOf(request), idOf(request, "repository"))),
  );
  app.post(
    "/repository/:id/update",
    {
      config: { operation: { scope: "write" } },
      schema: {
        tags,
        operationId: "updateRepository",
        summary: "Change a repository",
        params: idParameters,
        body: updateRepositorySchema,
        response: answers(repositorySchema),
      },
    },
    async (request) => {
      const id = idOf(request, "repository");
      if (request.body.branch !== undefined) requireAdmin(request);
      return show(await updateRepository(database, organizationOf(request), id, request.body));
    },
  );
  app.post(
    "/repository/:id/delete",
    {
      // It also deletes the repository's secrets, which an admin set.
      config: { operation: { scope: "admin" } },
      schema: {
        tags,
        operationId: "deleteRepository",
        summary:
          "Disconnect a repository: its secrets and the automations of its files are deleted, its other settings are there when it is connected again",
        params: idParameters,
        response: answers(repositorySchema),
      },
    },
    async (request) => show(await deleteRepository(database, organizationOf(request), idOf(request, "repository"))),
  );
}

/**
 * Setup secrets are available to code of the configured branch, so only an admin may choose the branch.
 * @throws ForbiddenError
 */
function requireAdmin(request: Parameters<typeof principalOfRequest>[0]): void {
  if (hasScope(principalOfRequest(request), "admin")) return;
  throw new ForbiddenError(
    "branch: only an admin may choose it, because setup secrets go to that branch; leave it out",
  );
}
