import { z } from "zod";

/** One browser's sign-in. It contains nothing that would let another browser sign in. */
export const loginSchema = z.object({
  id: z.uuid(),
  /** The signed-in principal: a user, an API key, or the person who opened a one-time link. */
  by: z.enum(["user", "key", "link"]),
  userId: z.uuid().nullable(),
  keyId: z.uuid().nullable(),
  /** The user's name, or the key's. */
  name: z.string().nullable(),
  /** True for the browser that sends the request. */
  current: z.boolean(),
  /** Client address at sign-in, as far as the server knows it. */
  address: z.string().nullable(),
  userAgent: z.string().nullable(),
  createdAt: z.iso.datetime(),
  lastUsedAt: z.iso.datetime().nullable(),
  expiresAt: z.iso.datetime(),
});
/** See `loginSchema`. */
export type Login = z.infer<typeof loginSchema>;
