import { z } from "zod";

/** The sign-in of one browser. Nothing in it lets anybody else sign in. */
export const loginSchema = z.object({
  id: z.uuid(),
  /** Whom it stands for: a user, a key, or whoever opened a one-time link. */
  by: z.enum(["user", "key", "link"]),
  userId: z.uuid().nullable(),
  keyId: z.uuid().nullable(),
  /** The user's name, or the key's. */
  name: z.string().nullable(),
  /** The browser that asks. */
  current: z.boolean(),
  /** Where it was made, as far as the server knows. */
  address: z.string().nullable(),
  userAgent: z.string().nullable(),
  createdAt: z.iso.datetime(),
  lastUsedAt: z.iso.datetime().nullable(),
  expiresAt: z.iso.datetime(),
});
export type Login = z.infer<typeof loginSchema>;
