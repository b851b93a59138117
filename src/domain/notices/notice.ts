import { z } from "zod";

/** Kinds of notices. The names are those of webhooks' events. */
export const noticeKinds = [
  "session.completed",
  "session.failed",
  "session.waiting",
  "pullRequest.opened",
  "pullRequest.conflicted",
  "pullRequest.merged",
  "automation.paused",
  "automation.silent",
] as const;
/** See `noticeKinds`. */
export type NoticeKind = (typeof noticeKinds)[number];

/** How notices reach people. */
export const noticeChannels = ["email", "push"] as const;
/** See `noticeChannels`. */
export type NoticeChannel = (typeof noticeChannels)[number];

/**
 * The sessions and automations of a notice: none, those that the person asked for or created, or all of the
 * organization.
 */
export const noticeScopes = ["off", "mine", "all"] as const;
/** See `noticeScopes`. */
export type NoticeScope = (typeof noticeScopes)[number];

/** A person's choices, by kind and channel. */
export type NoticeSettings = { readonly [Kind in NoticeKind]?: { readonly [Channel in NoticeChannel]?: NoticeScope } };

/** Kinds that are pushed to a person's subscribed browsers by default. No kind is mailed by default. */
const pushedByDefault: ReadonlySet<NoticeKind> = new Set([
  "session.completed",
  "session.failed",
  "session.waiting",
  "pullRequest.conflicted",
  "automation.paused",
  "automation.silent",
]);

/** The scope of sessions and automations for which a person gets notices. */
export function scopeOf(settings: NoticeSettings, kind: NoticeKind, channel: NoticeChannel): NoticeScope {
  const chosen = settings[kind]?.[channel];
  if (chosen !== undefined) return chosen;
  return channel === "push" && pushedByDefault.has(kind) ? "mine" : "off";
}

/**
 * Whether a person gets a notice.
 * @param askedBy id of the user who asked for the session, or created the automation; null: no user
 */
export function isNotified(
  { userId, settings }: { readonly userId: string; readonly settings: NoticeSettings },
  kind: NoticeKind,
  channel: NoticeChannel,
  askedBy: string | null,
): boolean {
  const scope = scopeOf(settings, kind, channel);
  return scope === "all" || (scope === "mine" && askedBy === userId);
}

const scope = z.enum(noticeScopes);

/** A person's choice for one kind. */
export const noticeSettingSchema = z.object({ kind: z.enum(noticeKinds), email: scope, push: scope });

/** A person's choices, and their available channels. */
export const noticeSettingsSchema = z.object({
  settings: z.array(noticeSettingSchema),
  email: z.object({
    address: z.string().nullable().meta({ description: "As the identity provider verified it; null: none is known." }),
    available: z.boolean().meta({ description: "Whether the server can send mail." }),
  }),
  push: z.object({
    publicKey: z
      .string()
      .meta({ description: "What a browser subscribes with (`applicationServerKey`), in base64url." }),
  }),
});
/** See `noticeSettingsSchema`. */
export type NoticeSettingsAnswer = z.infer<typeof noticeSettingsSchema>;

/** Body of a change of a person's notices: kinds that are not named keep their setting. */
export const updateNoticeSettingsSchema = z.object({
  settings: z
    .array(noticeSettingSchema.partial({ email: true, push: true }))
    .max(noticeKinds.length, `must have at most ${noticeKinds.length} kinds`),
});

const base64url = (characters: number) =>
  z
    .string()
    .max(characters)
    .regex(/^[A-Za-z0-9_-]+={0,2}$/u, "must be in base64url");

const subscriptionFields = {
  endpoint: z
    .url({ protocol: /^https$/u, error: "must be an https:// address" })
    .max(2_000, "must be at most 2,000 characters"),
  keys: z.object({ p256dh: base64url(100), auth: base64url(40) }),
};
const renewalSecret = z.string().regex(/^[A-Za-z0-9_-]{43}$/u, "must be 32 random bytes in base64url");

/** Body of a browser's subscription to web push, as `PushSubscription.toJSON()` has it. */
export const createSubscriptionSchema = z.object({
  ...subscriptionFields,
  renewalSecret: renewalSecret.optional().meta({
    description:
      "32 random bytes in base64url, which the browser keeps: with it, it tells its new address once it has another.",
  }),
});
/** See `createSubscriptionSchema`. */
export type CreateSubscription = z.infer<typeof createSubscriptionSchema>;

/** Body of a renewal: the new address of a browser whose subscription was changed. */
export const renewSubscriptionSchema = z.object({ ...subscriptionFields, renewalSecret });
/** See `renewSubscriptionSchema`. */
export type RenewSubscription = z.infer<typeof renewSubscriptionSchema>;

/** A browser that takes web push, without what lets others write to it. */
export const subscriptionSchema = z.object({
  id: z.uuid(),
  host: z.string().meta({ description: "Of the browser's push service." }),
  userAgent: z.string().nullable(),
  createdAt: z.iso.datetime(),
  sentAt: z.iso.datetime().nullable().meta({ description: "When it last took a notice." }),
});
/** See `subscriptionSchema`. */
export type Subscription = z.infer<typeof subscriptionSchema>;
