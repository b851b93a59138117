import { z } from "zod";

/** The word that calls Offstage in comments, as people write it: a `@` before it is left out. */
export const mentionSchema = z
  .string()
  .regex(/^@?[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$/u, "must be a name, such as offstage")
  .transform((name) => name.replace(/^@/u, ""));

/** Logins of bots that may steer sessions, in lower case: forges ignore capitals in them. */
export const allowedBotsSchema = z
  .array(
    z
      .string()
      .regex(/^[^\s,\p{C}]{1,200}$/u, "must be a bot's login, such as renovate[bot]")
      .transform((login) => login.toLowerCase()),
  )
  .max(100)
  .transform((logins) => [...new Set(logins)]);

/**
 * Settings of one forge connection: the word that calls Offstage in comments there, and the bots that may. Null: what the operator
 * configured (OFFSTAGE_MENTION, OFFSTAGE_ALLOWED_BOTS).
 */
export interface Calling {
  readonly mention: string | null;
  readonly allowedBots: readonly string[] | null;
}
