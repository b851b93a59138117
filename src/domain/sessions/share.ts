import { z } from "zod";
import type { SessionDetail } from "./session.ts";

/** Most links of one session that are neither revoked nor expired. */
export const mostShareLinks = 100;
const longestDays = 365;

/** Body of the creation of a share link. */
export const createShareSchema = z.object({
  expiresInDays: z
    .int()
    .min(1)
    .max(longestDays)
    .optional()
    .meta({ description: "Days for which the link shows the session; default 7." }),
});
/** See `createShareSchema`. */
export type CreateShare = z.infer<typeof createShareSchema>;

/** Days for which a link shows its session, if nothing else is asked for. */
export const defaultShareDays = 7;

/** A link that shows one session, read-only, to anyone who has it: as the API shows the link, without its token. */
export const shareSchema = z.object({
  id: z.uuid(),
  sessionId: z.uuid(),
  createdAt: z.iso.datetime(),
  expiresAt: z.iso.datetime(),
  revokedAt: z.iso.datetime().nullable(),
  lastUsedAt: z.iso.datetime().nullable().meta({ description: "To the minute." }),
  createdBy: z
    .object({ id: z.uuid(), name: z.string() })
    .nullable()
    .meta({ description: "The person who made it; null: nobody who is known by name." }),
});
/** See `shareSchema`. */
export type Share = z.infer<typeof shareSchema>;

/** A link among those of all sessions, with what its session is called. */
export const listedShareSchema = shareSchema.extend({ sessionTitle: z.string() });
/** See `listedShareSchema`. */
export type ListedShare = z.infer<typeof listedShareSchema>;

/** A session as shown by a share link: without its relations to other sessions and automations of the organization. */
export function withoutSurroundings(session: SessionDetail): SessionDetail {
  return {
    ...session,
    queuePosition: null,
    estimatedWaitSeconds: null,
    jobId: null,
    automationId: null,
    attention: [],
  };
}

/** Answer to the creation of a share link: the only one that has its address. */
export const createdShareSchema = shareSchema.extend({
  url: z.string().meta({ description: "The page that shows the session. What follows the # is the secret." }),
});
