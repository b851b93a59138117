/**
 * Pattern of a page to open after a sign-in: a path on this server that no browser can take for another site's address.
 */
export const pagePath = /^(?:\/|(?:\/[\w-]{1,64}){1,3})(?:\?[\w=&.-]{1,100})?(?:#[\w-]{1,64})?$/u;

/** Why a sign-in failed. The code is in the address of the sign-in page, which shows the text. */
export type SignInProblem = "refused" | "disabled" | "denied" | "expired" | "unavailable";

/** The page on which people see the organizations that they have accounts in. */
export const ownOrganizationsPage = "/settings#organizations";
