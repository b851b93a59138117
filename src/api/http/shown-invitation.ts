import type { Invitation } from "../../store/people/invitations.ts";

/**
 * An invitation as the one answer shows it that has its link. What follows the # stays in the browser: no server and no proxy logs it.
 * @param publicUrl of this server
 */
export function shownInvitation(publicUrl: string, { token, ...invitation }: Invitation) {
  return { ...invitation, url: `${publicUrl}/sign-in#${token}` };
}
