import { z } from "zod";
import { InvalidInputError } from "../../../domain/errors/errors.ts";
import { isBranchName } from "../../../domain/fields/git-ref.ts";
import { optionalText, text } from "../../../domain/fields/text.ts";
import {
  bestFirst,
  mostOffered,
  offeredBranchesSchema,
  offeredFilesSchema,
  offeredRepositoriesSchema,
} from "../../../domain/repositories/choice.ts";
import {
  isAddressProblem,
  parseRepositoryUrl,
  type RepositoryAddress,
} from "../../../domain/repositories/repository.ts";
import { repositoryRefusal } from "../../../domain/repositories/repository-pattern.ts";
import { allowedRepositories } from "../../../store/people/organizations.ts";
import { organizationOf } from "../../http/auth.ts";
import type { ApiOptions, App } from "../../http/context.ts";
import { answers } from "../../http/shapes.ts";
import { readAddress, requireAllowed } from "../resolve.ts";

const tags = ["Repositories"];
const query = optionalText(200).default("").meta({ description: "What the names have; omitted: anything." });
const url = text(2_000).meta({ description: "The repository's address." });
// A caller that may start a session may list what it could work on.
const config = { operation: { scope: "write" } } as const;

/** Adds the operations that offer what the forges have, while people choose: repositories, branches, files. */
export function addChoiceOperations(app: App, options: ApiOptions): void {
  const { choices, database } = options;
  app.get(
    "/repository/search",
    {
      config,
      schema: {
        tags,
        operationId: "searchRepositories",
        summary: "Search the repositories that the organization's forges show, connected or not",
        querystring: z.object({ q: query }),
        response: answers(offeredRepositoriesSchema),
      },
    },
    async (request) => {
      const organizationId = organizationOf(request);
      const { q } = request.query;
      const mayUse = await allowedRepositories(database, organizationId);
      const found = await choices.repositories(organizationId, q.trim());
      const allowed = found.repositories.filter((repository) => {
        const address = parseRepositoryUrl(repository.url);
        return !isAddressProblem(address) && repositoryRefusal(mayUse, address) === null;
      });
      const repositories = bestFirst(allowed, ({ name }) => name, q.trim()).slice(0, mostOffered);
      return { ...found, repositories, complete: found.complete && allowed.length <= mostOffered };
    },
  );
  app.get(
    "/repository/branches",
    {
      config,
      schema: {
        tags,
        operationId: "searchBranches",
        summary: "Search the branches of a repository, connected or not",
        querystring: z.object({ url, q: query }),
        response: answers(offeredBranchesSchema),
      },
    },
    async (request) => {
      const organizationId = organizationOf(request);
      const address = await addressOf(options, organizationId, request.query.url);
      return choices.branches(organizationId, address, request.query.q.trim());
    },
  );
  app.get(
    "/repository/files",
    {
      config,
      schema: {
        tags,
        operationId: "searchFiles",
        summary: "Search the files of a repository at a branch, connected or not",
        querystring: z.object({
          url,
          branch: text(250).refine(isBranchName, "is not a valid git branch name (see git-check-ref-format)"),
          q: query,
        }),
        response: answers(offeredFilesSchema),
      },
    },
    async (request) => {
      const organizationId = organizationOf(request);
      const { branch, q } = request.query;
      const address = await addressOf(options, organizationId, request.query.url);
      return choices.files(organizationId, address, { branch, query: q.trim().replace(/^\.?\/+/u, "") });
    },
  );
}

/** @throws InvalidInputError if it is no address of a repository that the organization allows, or one of this machine */
async function addressOf(options: ApiOptions, organizationId: string, given: string): Promise<RepositoryAddress> {
  const address = readAddress(options, "url", given);
  requireAllowed(await allowedRepositories(options.database, organizationId), "url", address);
  if (address.local) throw new InvalidInputError("url is a local path, which no forge shows");
  return address;
}
