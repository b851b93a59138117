import type { FastifyRequest } from "fastify";
import { ConflictError, InvalidInputError, NotFoundError, UnavailableError } from "../../../domain/errors/errors.ts";
import {
  listFilesQuerySchema,
  readFileQuerySchema,
  workspaceFileSchema,
  workspaceFolderSchema,
  type FileAnswer,
  type FileProblem,
  type FileQuestion,
} from "../../../domain/sessions/workspace-file.ts";
import { requireSession } from "../../../store/sessions/sessions.ts";
import { organizationOf } from "../../http/auth.ts";
import type { ApiOptions, App } from "../../http/context.ts";
import { answers, idOf, idParameters } from "../../http/shapes.ts";
import type { FileQuestions } from "./file-questions.ts";

const tags = ["Sessions"];
// Not shared: whoever has a link to a session sees what it changed, not all that its repositories have.
const config = { operation: { scope: "read" } } as const;

/** Adds the operations that show the files of a session's workspace, which workers look at. */
export function addFileOperations(
  app: App,
  { database }: Pick<ApiOptions, "database">,
  questions: FileQuestions,
): void {
  app.get(
    "/session/:id/file/list",
    {
      config,
      schema: {
        tags,
        operationId: "listFiles",
        summary: "List a folder of a session's workspace, as it was when its work was last taken out of the sandbox",
        params: idParameters,
        querystring: listFilesQuerySchema,
        response: answers(workspaceFolderSchema),
      },
    },
    async (request) => {
      const { path, limit, cursor = null } = request.query;
      const answer = await ask(request, { kind: "list", path, limit, cursor });
      if (!("folder" in answer)) throw new UnavailableError("the worker gave another answer");
      return answer.folder;
    },
  );
  app.get(
    "/session/:id/file/read",
    {
      config,
      schema: {
        tags,
        operationId: "readFile",
        summary: "Read a file of a session's workspace, as it was when its work was last taken out of the sandbox",
        params: idParameters,
        querystring: readFileQuerySchema,
        response: answers(workspaceFileSchema),
      },
    },
    async (request) => {
      const { path, offset, limit } = request.query;
      const answer = await ask(request, { kind: "read", path, offset, limit });
      if (!("file" in answer)) throw new UnavailableError("the worker gave another answer");
      return answer.file;
    },
  );

  /** @throws NotFoundError, ConflictError, InvalidInputError, UnavailableError if there is nothing to show */
  async function ask(
    request: FastifyRequest & { readonly params: { readonly id: string } },
    question: FileQuestion,
  ): Promise<Exclude<FileAnswer, { problem: unknown }>> {
    const session = await requireSession(database, organizationOf(request), idOf(request, "session"));
    if (question.kind === "read" && question.path === "") throw new InvalidInputError("path must name a file");
    const answer = await questions.ask(session, question);
    if (!("problem" in answer)) return answer;
    throw errorOf(answer.problem, question.path);
  }
}

function errorOf(problem: FileProblem, path: string): Error {
  const shown = path === "" ? "the workspace" : path.slice(0, 300);
  switch (problem) {
    case "missing":
      return new NotFoundError(`the session's workspace has no ${shown}`);
    case "no folder":
      return new InvalidInputError(`path: ${shown} is no folder: read it as a file`);
    case "no file":
      return new InvalidInputError(`path: ${shown} is no file that can be read: list it as a folder`);
    case "bad cursor":
      return new InvalidInputError("cursor: must be the nextCursor of the previous page");
    case "not read":
      return new ConflictError(`${shown} can't be shown: it could not be searched for secrets in time`);
    case "not kept":
      return new ConflictError(
        "no worker that is running has files of this session: it has not begun to work, or they are no longer kept; what was pushed is in its branch",
      );
    case "empty submodule":
      return new ConflictError(
        `nothing of the submodule at ${shown} is kept: it could not be fetched, or the session records another commit of it than was`,
      );
    case "failed":
      return new UnavailableError(
        "the session's files could not be looked at: try again, or look into the worker's log",
      );
  }
}
