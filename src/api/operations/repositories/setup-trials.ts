import { z } from "zod";
import { isBranchName } from "../../../domain/fields/git-ref.ts";
import { NotFoundError } from "../../../domain/errors/errors.ts";
import { newSession } from "../../../domain/sessions/new-session.ts";
import { sessionSchema } from "../../../domain/sessions/session.ts";
import { findRepositories } from "../../../store/repositories/repositories.ts";
import { principalOfRequest } from "../../http/auth.ts";
import type { ApiOptions, App } from "../../http/context.ts";
import { requestOrigin } from "../../http/origin.ts";
import { answers, idOf, idParameters } from "../../http/shapes.ts";
import { resolveRepositories } from "../resolve.ts";

/** Adds the operation that tries a repository's setup: a session without an agent, whose events show the script's output. */
export function addSetupTrialOperation(app: App, options: ApiOptions): void {
  app.post(
    "/repository/:id/try-setup",
    {
      config: { operation: { scope: "write", creates: true, queues: true } },
      schema: {
        tags: ["Repositories"],
        operationId: "trySetup",
        summary: "Run a repository's setup in a sandbox, as a session without an agent that costs nothing",
        params: idParameters,
        body: z.object({
          branch: z
            .string()
            .refine(isBranchName, "is not a valid git branch name (see git-check-ref-format)")
            .optional()
            .meta({ description: "Whose files it works on; omitted: the branch that a session would begin with." }),
        }),
        response: answers(sessionSchema),
      },
    },
    async (request) => {
      const { organizationId, keyId, userId } = principalOfRequest(request);
      const id = idOf(request, "repository");
      const [found] = await findRepositories(options.database, organizationId, [id]);
      if (found === undefined) throw new NotFoundError(`repository ${id} was not found`);
      const repositories = await resolveRepositories(options, organizationId, { codeRepoIds: [id] });
      const session = newSession({
        ...requestOrigin(request),
        prompt: `Try the setup of ${found.name}`,
        targetBranch: request.body.branch,
        repositories,
        setupTrial: true,
        createdBy: keyId,
        requestedBy: userId,
        sandboxed: options.sandboxed,
      });
      const created = await options.inserts.createSession(organizationId, session);
      return { ...created, htmlUrl: `${options.publicUrl()}/sessions/${created.id}` };
    },
  );
}
