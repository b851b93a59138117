import { z } from "zod";
import { Readable } from "node:stream";
import {
  eraseOrganizationSchema,
  erasureSchema,
  organizationSchema,
  updateOrganizationSchema,
} from "../../domain/people/organization.ts";
import { beginErasure } from "../../store/organization-data/erase.ts";
import { exportOrganization } from "../../store/organization-data/export.ts";
import { getOrganization, updateOrganization } from "../../store/people/organizations.ts";
import { organizationOf } from "../http/auth.ts";
import type { ApiOptions, App } from "../http/context.ts";
import { errorSchema } from "../http/errors.ts";
import { answers } from "../http/shapes.ts";
import { checkAgent } from "./resolve.ts";

const tags = ["Organization"];

/** Adds the operations on the organization's settings: models, hosts, budgets. Only an admin may change them. */
export function addOrganizationOperations(app: App, options: Pick<ApiOptions, "database" | "agents">): void {
  const { database } = options;
  app.get(
    "/organization",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "getOrganization",
        summary: "Show the organization, its settings and this month's costs",
        response: answers(organizationSchema),
      },
    },
    (request) => getOrganization(database, organizationOf(request)),
  );
  app.post(
    "/organization/update",
    {
      config: { operation: { scope: "admin" } },
      schema: {
        tags,
        operationId: "updateOrganization",
        summary: "Change the organization's settings",
        body: updateOrganizationSchema,
        response: answers(organizationSchema),
      },
    },
    async (request) => {
      await checkAgent(options, request.body.defaultAgent, "defaultAgent");
      return updateOrganization(database, organizationOf(request), request.body);
    },
  );
  addExport(app, options);
  app.post(
    "/organization/erase",
    {
      config: { operation: { scope: "admin" } },
      schema: {
        tags,
        operationId: "eraseOrganization",
        summary: "Erase the organization with all that there is of it, which can't be undone",
        body: eraseOrganizationSchema,
        response: answers(erasureSchema),
      },
    },
    (request) => beginErasure(database, organizationOf(request), request.body.name),
  );
}

function addExport(
  app: App,
  { database, recordingsDirectory = null }: Pick<ApiOptions, "database" | "recordingsDirectory">,
): void {
  const open = new Set<Readable>();
  // A client that reads slowly must not keep the server from stopping: it gets an archive without its end.
  app.addHook("preClose", (done) => {
    for (const archive of open) archive.destroy();
    done();
  });
  app.get(
    "/organization/export",
    {
      // Exports are in the audit log.
      config: { operation: { scope: "admin", changes: true } },
      schema: {
        tags,
        operationId: "exportOrganization",
        summary: "All data of the organization as one tar archive, without any secret",
        response: {
          200: { content: { "application/x-tar": { schema: z.string().meta({ format: "binary" }) } } },
          "4xx": errorSchema,
          "5xx": errorSchema,
        },
      },
    },
    async (request, reply) => {
      const organizationId = organizationOf(request);
      // A disconnect must not leave a connection behind that waits for the next request.
      void reply.header("Content-Type", "application/x-tar").header("Connection", "close");
      void reply.header("Content-Disposition", 'attachment; filename="organization.tar"');
      const archive = Readable.from(exportOrganization({ database, organizationId, recordingsDirectory }));
      open.add(archive);
      archive.once("close", () => open.delete(archive));
      return reply.send(archive as never);
    },
  );
}
