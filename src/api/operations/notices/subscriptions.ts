import { pageSchema, pageQuerySchema } from "../../../domain/fields/list.ts";
import {
  createSubscriptionSchema,
  renewSubscriptionSchema,
  subscriptionSchema,
} from "../../../domain/notices/notice.ts";
import {
  createSubscription,
  deleteSubscription,
  listSubscriptions,
  renewSubscription,
} from "../../../store/notices/subscriptions.ts";
import { requirePerson } from "../../http/auth.ts";
import type { ApiOptions, App } from "../../http/context.ts";
import { idOfCreated } from "../../http/idempotency.ts";
import { answers, idOf, idParameters } from "../../http/shapes.ts";

const tags = ["Notices"];

/** Adds the operations on a person's browsers that take web push (https://www.w3.org/TR/push-api/). */
export function addSubscriptionOperations(app: App, { database, vault }: ApiOptions): void {
  app.post(
    "/subscription/create",
    {
      config: { operation: { scope: "read", creates: true, secretBody: true } },
      schema: {
        tags,
        operationId: "createSubscription",
        summary: "Have notices pushed to this browser",
        body: createSubscriptionSchema,
        response: answers(subscriptionSchema),
      },
    },
    async (request) => {
      const person = await requirePerson(database, request);
      const userAgent = request.headers["user-agent"] ?? null;
      return createSubscription(database, vault, person, { ...request.body, id: idOfCreated(request), userAgent });
    },
  );
  app.post(
    "/subscription/renew",
    {
      // A service worker sends it without a signed-in person: the secret identifies the subscription.
      config: { operation: { scope: null, secretBody: true } },
      schema: {
        tags,
        operationId: "renewSubscription",
        summary: "Have notices pushed to the new address of a browser that was subscribed with a renewalSecret",
        body: renewSubscriptionSchema,
        response: answers(subscriptionSchema),
      },
    },
    async (request) => renewSubscription(database, vault, request.body),
  );
  app.get(
    "/subscription/list",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "listSubscriptions",
        summary: "List your browsers that take notices",
        querystring: pageQuerySchema,
        response: answers(pageSchema("subscriptions", subscriptionSchema)),
      },
    },
    async (request) => {
      const page = await listSubscriptions(database, await requirePerson(database, request), request.query);
      return { subscriptions: page.items, nextCursor: page.nextCursor };
    },
  );
  app.post(
    "/subscription/:id/delete",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "deleteSubscription",
        summary: "Have nothing more pushed to a browser of yours",
        params: idParameters,
        response: answers(subscriptionSchema),
      },
    },
    async (request) =>
      deleteSubscription(database, await requirePerson(database, request), idOf(request, "subscription")),
  );
}
