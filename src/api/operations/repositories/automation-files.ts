import { z } from "zod";
import {
  automationFileSchema,
  automationFilesSchema,
  setAutomationFilesSchema,
} from "../../../domain/automations/automation-file.ts";
import { getAutomationFiles, setAutomationFiles } from "../../../store/automations/file-sync.ts";
import { organizationOf } from "../../http/auth.ts";
import type { ApiOptions, App } from "../../http/context.ts";
import { answers, idOf, idParameters } from "../../http/shapes.ts";

const tags = ["Repositories"];

/** Adds the operations on automations that are files of a repository, and the schema of such a file. */
export function addAutomationFileOperations(app: App, { database }: Pick<ApiOptions, "database">): void {
  const schema = z.toJSONSchema(automationFileSchema, { io: "input" });
  app.get("/schemas/automation.json", { schema: { hide: true } }, () => Promise.resolve(schema));
  app.get(
    "/repository/:id/automation-files",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "getAutomationFiles",
        summary: "Show whether a repository's automations are read from its files, and what came of each",
        params: idParameters,
        response: answers(automationFilesSchema),
      },
    },
    async (request) => getAutomationFiles(database, organizationOf(request), idOf(request, "repository")),
  );
  app.post(
    "/repository/:id/automation-files",
    {
      config: { operation: { scope: "admin" } },
      schema: {
        tags,
        operationId: "setAutomationFiles",
        summary: "Read a repository's automations from its files, or no longer, which deletes them",
        params: idParameters,
        body: setAutomationFilesSchema,
        response: answers(automationFilesSchema),
      },
    },
    async (request) =>
      setAutomationFiles(database, organizationOf(request), idOf(request, "repository"), request.body.enabled),
  );
}
