import { z } from "zod";
import { InvalidInputError, NotFoundError } from "../../../domain/errors/errors.ts";
import {
  noticeKinds,
  noticeSettingsSchema,
  scopeOf,
  updateNoticeSettingsSchema,
  type NoticeSettingsAnswer,
} from "../../../domain/notices/notice.ts";
import { addTestDeliveries } from "../../../store/notices/deliveries.ts";
import type { NotifiedPerson } from "../../../store/notices/person.ts";
import { readPreferences, updatePreferences } from "../../../store/notices/preferences.ts";
import { readUnsubscribeToken } from "../../../store/notices/unsubscribe.ts";
import { organizationOfUser } from "../../../store/people/users.ts";
import { requirePerson } from "../../http/auth.ts";
import type { ApiOptions, App } from "../../http/context.ts";
import { answers } from "../../http/shapes.ts";

const tags = ["Notices"];

/** Adds the operations on which notices a person gets, and by which channel. Each person has their own. */
export function addNoticeOperations(app: App, options: ApiOptions): void {
  const { database } = options;
  app.get(
    "/notice/settings",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "getNoticeSettings",
        summary: "Show what you are told of, and by which channel",
        response: answers(noticeSettingsSchema),
      },
    },
    async (request) => settingsOf(options, await requirePerson(database, request)),
  );
  app.post(
    "/notice/settings/update",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "updateNoticeSettings",
        summary: "Choose what you are told of, and by which channel",
        body: updateNoticeSettingsSchema,
        response: answers(noticeSettingsSchema),
      },
    },
    async (request) => {
      const person = await requirePerson(database, request);
      const changes = request.body.settings.map(({ kind, ...channels }) => ({ kind, channels }));
      await updatePreferences(database, person, changes);
      return settingsOf(options, person);
    },
  );
  app.post(
    "/notice/test",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "testNotices",
        summary: "Have a notice sent to yourself by each channel",
        response: answers(z.object({ deliveries: z.number().int() })),
      },
    },
    async (request) => {
      const person = await requirePerson(database, request);
      const channels = new Set(options.sendsMail ? (["push", "email"] as const) : (["push"] as const));
      const deliveries = await addTestDeliveries(database, person, channels);
      if (deliveries === 0) {
        throw new InvalidInputError(
          "there is nothing to send to: subscribe a browser first, or sign in with an address",
        );
      }
      return { deliveries };
    },
  );
  addUnsubscribe(app, options);
}

/**
 * Adds the operation behind a mail's unsubscribe link. Mail programs send a form (RFC 8058), which is not read: any
 * holder of the mail may end mails of its kind, and nothing else.
 */
function addUnsubscribe(app: App, { database, vault }: ApiOptions): void {
  void app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser("*", (_request, body, done) => {
      body.resume();
      body.once("end", () => done(null, undefined));
    });
    (scope as unknown as App).post(
      "/notice/unsubscribe",
      {
        config: { operation: { scope: null } },
        schema: {
          tags,
          operationId: "unsubscribe",
          summary: "End mails of one kind, by the link that such a mail has (RFC 8058)",
          querystring: z.object({ token: z.string().max(300) }),
          response: answers(z.object({ kind: z.enum(noticeKinds) })),
        },
      },
      async (request) => {
        const meant = await readUnsubscribeToken(vault, request.query.token);
        const organizationId = meant === null ? null : await organizationOfUser(database, meant.userId);
        if (meant === null || organizationId === null) throw new NotFoundError("token: is of no mail of this server");
        const person = { organizationId, userId: meant.userId };
        await updatePreferences(database, person, [{ kind: meant.kind, channels: { email: "off" } }]);
        return { kind: meant.kind };
      },
    );
    return Promise.resolve();
  });
}

async function settingsOf(options: ApiOptions, person: NotifiedPerson): Promise<NoticeSettingsAnswer> {
  const [{ settings, email }, publicKey] = await Promise.all([
    readPreferences(options.database, person),
    options.pushPublicKey(),
  ]);
  return {
    settings: noticeKinds.map((kind) => ({
      kind,
      email: scopeOf(settings, kind, "email"),
      push: scopeOf(settings, kind, "push"),
    })),
    email: { address: email, available: options.sendsMail },
    push: { publicKey },
  };
}
