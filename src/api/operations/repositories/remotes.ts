import { z } from "zod";
import { NotFoundError, SessionError, UnavailableError } from "../../../domain/errors/errors.ts";
import { isBranchName } from "../../../domain/fields/git-ref.ts";
import { matchPaths } from "../../../domain/repositories/file-match.ts";
import { branchListSchema, fileListSchema } from "../../../domain/repositories/remote.ts";
import { allowedRepositories } from "../../../store/people/organizations.ts";
import { getRepository, type RepositoryRecord } from "../../../store/repositories/repositories.ts";
import { organizationOf } from "../../http/auth.ts";
import type { ApiOptions, App } from "../../http/context.ts";
import { answers, idOf, idParameters } from "../../http/shapes.ts";
import { readAddress, requireAllowed } from "../resolve.ts";

const tags = ["Repositories"];
const q = z.string().max(500).default("").meta({ description: "A part of the name; empty: all." });
const limit = z.coerce.number().int().min(1).max(100).default(20);

/** Adds the operations that ask a repository's remote: for its branches, and for the files of one. */
export function addRemoteOperations(app: App, options: ApiOptions): void {
  const { remotes } = options;
  app.get(
    "/repository/:id/branch/list",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "listBranches",
        summary: "List a repository's branches as its forge has them now: the default one, then by name",
        params: idParameters,
        querystring: z.object({ q, limit }),
        response: answers(branchListSchema),
      },
    },
    async (request) => {
      const organizationId = organizationOf(request);
      const { url } = await readAllowed(options, organizationId, idOf(request, "repository"));
      const { names, defaultBranch } = await asked(() => remotes.branches(url, organizationId));
      const sought = request.query.q.trim().toLowerCase();
      const found = names
        .filter((name) => name.toLowerCase().includes(sought))
        .sort((a, b) => Number(b === defaultBranch) - Number(a === defaultBranch) || (a < b ? -1 : 1))
        .slice(0, request.query.limit);
      return { branches: found.map((name) => ({ name, isDefault: name === defaultBranch })), nextCursor: null };
    },
  );
  app.get(
    "/repository/:id/file/list",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "listFiles",
        summary: "List the files of a repository's branch that somebody may mean, the likeliest first",
        params: idParameters,
        querystring: z.object({
          q,
          limit,
          branch: z.string().refine(isBranchName, "is not a valid git branch name").optional().meta({
            description: "Default: the branch that the repository is configured for, else its default branch.",
          }),
        }),
        response: answers(fileListSchema),
      },
    },
    async (request) => {
      const organizationId = organizationOf(request);
      const { url, branch: configured } = await readAllowed(options, organizationId, idOf(request, "repository"));
      const branch = request.query.branch ?? configured;
      const found = await asked(() => remotes.files(url, organizationId, branch));
      const paths = matchPaths(found.paths, request.query.q, request.query.limit);
      return { branch: found.branch, files: paths.map((path) => ({ path })), nextCursor: null };
    },
  );
}

/** @throws NotFoundError; InvalidInputError if its address is none that the organization may use now */
async function readAllowed(options: ApiOptions, organizationId: string, id: string): Promise<RepositoryRecord> {
  const repository = await getRepository(options.database, organizationId, id);
  const address = readAddress(options, "the repository's address", repository.url);
  requireAllowed(await allowedRepositories(options.database, organizationId), "the repository", address);
  return repository;
}

/** @throws NotFoundError, UnavailableError instead of the SessionError of a remote that does not answer as it should */
async function asked<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof SessionError)) throw error;
    const sentence = `${error.message} ${error.remedy}`.trim();
    if (error.code === "target_branch_not_found" || error.code === "repository_not_found") {
      throw new NotFoundError(sentence, { cause: error });
    }
    throw new UnavailableError(sentence, undefined, { cause: error });
  }
}
