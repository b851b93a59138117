import { z } from "zod";
import { Readable } from "node:stream";
import { ConflictError } from "../../domain/errors/errors.ts";
import { pageQuerySchema, pageSchema } from "../../domain/fields/list.ts";
import {
  changeOrganizationSchema,
  createdOrganizationSchema,
  createOrganizationSchema,
  eraseOrganizationSchema,
  erasureSchema,
  listedOrganizationSchema,
  organizationSchema,
  updateOrganizationSchema,
} from "../../domain/people/organization.ts";
import { beginErasure } from "../../store/organization-data/erase.ts";
import { exportOrganization } from "../../store/organization-data/export.ts";
import { changeOrganization, createOrganization, listOrganizations } from "../../store/people/all-organizations.ts";
import { getOrganization, updateOrganization } from "../../store/people/organizations.ts";
import { organizationOf, requireServerAdmin } from "../http/auth.ts";
import type { ApiOptions, App } from "../http/context.ts";
import { errorSchema } from "../http/errors.ts";
import { databaseOfSecret, idOfCreated } from "../http/idempotency.ts";
import { shownInvitation } from "../http/shown-invitation.ts";
import { answers, idOf, idParameters } from "../http/shapes.ts";
import { checkAgent } from "./resolve.ts";

const tags = ["Organization"];

/** Adds the operations on the organization's settings: models, hosts, budgets. Only an admin may change them. */
export function addOrganizationOperations(
  app: App,
  options: Pick<ApiOptions, "database" | "agents" | "publicUrl" | "vault" | "sendsMail" | "connections">,
): void {
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
  addAllOrganizations(app, options);
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

/** Adds the operations on all organizations, for those who look after the server. They show and change nothing that is in one. */
function addAllOrganizations(
  app: App,
  {
    database,
    publicUrl,
    vault,
    sendsMail,
    connections,
  }: Pick<ApiOptions, "database" | "publicUrl" | "vault" | "sendsMail" | "connections">,
): void {
  app.get(
    "/organization/list",
    {
      config: { operation: { scope: "admin" } },
      schema: {
        tags,
        operationId: "listOrganizations",
        summary: "List all organizations of the server, for its own admins",
        querystring: pageQuerySchema,
        response: answers(pageSchema("organizations", listedOrganizationSchema)),
      },
    },
    async (request) => {
      await requireServerAdmin(database, request);
      const page = await listOrganizations(database, request.query);
      return { organizations: page.items, nextCursor: page.nextCursor };
    },
  );
  app.post(
    "/organization/create",
    {
      config: { operation: { scope: "admin", creates: true, secretAnswer: true } },
      schema: {
        tags,
        operationId: "createOrganization",
        summary: "Create an organization, with a first admin who is invited, or an admin key; for admins of the server",
        body: createOrganizationSchema,
        response: answers(createdOrganizationSchema),
      },
    },
    async (request) => {
      await requireServerAdmin(database, request);
      const mailing = sendsMail ? { vault, language: request.body.admin?.language ?? "en" } : null;
      const { organization, invitation, adminKey } = await createOrganization(
        databaseOfSecret(database, request),
        { ...request.body, id: idOfCreated(request) },
        mailing,
      );
      return { organization, invitation: invitation && shownInvitation(publicUrl(), invitation), adminKey };
    },
  );
  app.post(
    "/organization/:id/update",
    {
      config: { operation: { scope: "admin" } },
      schema: {
        tags,
        operationId: "updateOtherOrganization",
        summary: "Say whether an organization uses the server's own access to forges; for admins of the server",
        params: idParameters,
        body: changeOrganizationSchema,
        response: answers(listedOrganizationSchema),
      },
    },
    async (request) => {
      await requireServerAdmin(database, request);
      const id = idOf(request, "organization");
      const changed = await changeOrganization(database, id, request.body);
      await connections.changed(id);
      return changed;
    },
  );
  app.post(
    "/organization/:id/erase",
    {
      config: { operation: { scope: "admin" } },
      schema: {
        tags,
        operationId: "eraseOtherOrganization",
        summary:
          "Erase another organization with all that there is of it, which can't be undone; for admins of the server",
        params: idParameters,
        body: eraseOrganizationSchema,
        response: answers(erasureSchema),
      },
    },
    async (request) => {
      await requireServerAdmin(database, request);
      const id = idOf(request, "organization");
      if (id === organizationOf(request))
        throw new ConflictError("this is your own organization: erase it by POST /organization/erase");
      return beginErasure(database, id, request.body.name);
    },
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
