import { isoTime } from "../cursor.ts";

/** When a user, or a program that acts for them, last asked for something, of one of these tables. */
const lastUseOf = (table: "browser_session" | "oauth_grant"): string =>
  `(select max(last_used_at) from ${table} where user_id = user_account.id)`;
const lastSeen = `greatest(last_sign_in_at, ${lastUseOf("browser_session")}, ${lastUseOf("oauth_grant")})`;

const invitationMail = `(select json_build_object('status', mail.status, 'problem', mail.problem)
  from invitation_mail mail where mail.user_id = user_account.id)`;

/** SQL for the columns of `user_account` as the API shows a user. */
export const userColumns = `id, name, email, issuer, role, ${isoTime("created_at")} as "createdAt",
  ${isoTime("invited_at")} as "invitedAt", ${invitationMail} as "invitationMail", ${isoTime("last_sign_in_at")} as "lastSignInAt", ${isoTime(lastSeen)} as "lastSeenAt",
  ${isoTime("disabled_at")} as "disabledAt"`;
