import { z } from "zod";
import { pageSchema, pageQuerySchema } from "../../domain/fields/list.ts";
import {
  createdWebhookSchema,
  createWebhookSchema,
  deliveryDetailSchema,
  deliverySchema,
  deliveryStatuses,
  updateWebhookSchema,
  webhookSchema,
} from "../../domain/webhooks/webhook.ts";
import { getDelivery, listDeliveries, resendDelivery } from "../../store/webhooks/deliveries.ts";
import {
  createWebhook,
  deleteWebhook,
  getWebhook,
  listWebhooks,
  rotateWebhookSecret,
  testWebhook,
  updateWebhook,
} from "../../store/webhooks/webhooks.ts";
import { organizationOf } from "../http/auth.ts";
import type { ApiOptions, App } from "../http/context.ts";
import { databaseOfSecret, idOfCreated } from "../http/idempotency.ts";
import { answers, idOf, idParameters } from "../http/shapes.ts";

const tags = ["Webhooks"];
const config = { operation: { scope: "admin" } } as const;
const makesSecret = { operation: { scope: "admin", creates: true, secretAnswer: true } } as const;

/** Adds the operations on webhooks, which follow Standard Webhooks (https://www.standardwebhooks.com). */
export function addWebhookOperations(app: App, { database, vault }: Pick<ApiOptions, "database" | "vault">): void {
  app.post(
    "/webhook/create",
    {
      config: makesSecret,
      schema: {
        tags,
        operationId: "createWebhook",
        summary: "Create a webhook; its secret is shown only in this response",
        body: createWebhookSchema,
        response: answers(createdWebhookSchema),
      },
    },
    async (request) => {
      const organizationId = organizationOf(request);
      const webhook = { ...request.body, id: idOfCreated(request) };
      return createWebhook(databaseOfSecret(database, request), vault, organizationId, webhook);
    },
  );
  app.get(
    "/webhook/list",
    {
      config,
      schema: {
        tags,
        operationId: "listWebhooks",
        summary: "List webhooks",
        querystring: pageQuerySchema,
        response: answers(pageSchema("webhooks", webhookSchema)),
      },
    },
    async (request) => {
      const page = await listWebhooks(database, organizationOf(request), request.query);
      return { webhooks: page.items, nextCursor: page.nextCursor };
    },
  );
  app.get(
    "/webhook/:id",
    {
      config,
      schema: {
        tags,
        operationId: "getWebhook",
        summary: "Show a webhook",
        params: idParameters,
        response: answers(webhookSchema),
      },
    },
    async (request) => getWebhook(database, organizationOf(request), idOf(request, "webhook")),
  );
  app.post(
    "/webhook/:id/update",
    {
      config,
      schema: {
        tags,
        operationId: "updateWebhook",
        summary: "Change, enable or disable a webhook",
        params: idParameters,
        body: updateWebhookSchema,
        response: answers(webhookSchema),
      },
    },
    async (request) => updateWebhook(database, organizationOf(request), idOf(request, "webhook"), request.body),
  );
  app.post(
    "/webhook/:id/rotate",
    {
      config: makesSecret,
      schema: {
        tags,
        operationId: "rotateWebhookSecret",
        summary: "Make a new secret, shown only in this response",
        params: idParameters,
        response: answers(createdWebhookSchema),
      },
    },
    async (request) => {
      const held = databaseOfSecret(database, request);
      return rotateWebhookSecret(held, vault, organizationOf(request), idOf(request, "webhook"));
    },
  );
  app.post(
    "/webhook/:id/delete",
    {
      config,
      schema: {
        tags,
        operationId: "deleteWebhook",
        summary: "Delete a webhook",
        params: idParameters,
        response: answers(webhookSchema),
      },
    },
    async (request) => deleteWebhook(database, organizationOf(request), idOf(request, "webhook")),
  );
  app.post(
    "/webhook/:id/test",
    {
      config: { operation: { scope: "admin", creates: true } },
      schema: {
        tags,
        operationId: "testWebhook",
        summary: "Send a test event",
        params: idParameters,
        response: answers(deliveryDetailSchema),
      },
    },
    async (request) => {
      const organizationId = organizationOf(request);
      const id = await testWebhook(database, organizationId, idOf(request, "webhook"), idOfCreated(request));
      return getDelivery(database, organizationId, id);
    },
  );
}

/** Adds the operations on webhook deliveries: list, show with all attempts, send again. */
export function addDeliveryOperations(app: App, { database }: Pick<ApiOptions, "database">): void {
  app.get(
    "/delivery/list",
    {
      config,
      schema: {
        tags,
        operationId: "listDeliveries",
        summary: "List deliveries",
        querystring: pageQuerySchema.extend({
          webhookId: z.uuid().optional(),
          status: z.enum(deliveryStatuses).optional(),
        }),
        response: answers(pageSchema("deliveries", deliverySchema)),
      },
    },
    async (request) => {
      const page = await listDeliveries(database, organizationOf(request), request.query);
      return { deliveries: page.items, nextCursor: page.nextCursor };
    },
  );
  app.get(
    "/delivery/:id",
    {
      config,
      schema: {
        tags,
        operationId: "getDelivery",
        summary: "Show a delivery, with each attempt and its answer",
        params: idParameters,
        response: answers(deliveryDetailSchema),
      },
    },
    async (request) => getDelivery(database, organizationOf(request), idOf(request, "delivery")),
  );
  app.post(
    "/delivery/:id/resend",
    {
      config,
      schema: {
        tags,
        operationId: "resendDelivery",
        summary: "Send a delivery again",
        params: idParameters,
        response: answers(deliveryDetailSchema),
      },
    },
    async (request) => resendDelivery(database, organizationOf(request), idOf(request, "delivery")),
  );
}
