/**
 * Pattern of a page to open after a sign-in: a path on this server that no browser can take for another site's address.
 */
export const pagePath = /^(?:\/|(?:\/[\w-]{1,64}){1,3})(?:\?[\w=&.-]{1,100})?$/u;

/** Why a sign-in failed. The code stands in the address of the sign-in page, which shows the text. */
export const signInProblems = {
  refused: "You are not allowed to sign in to this server: ask its operator for access.",
  disabled: "Your account was disabled: ask an admin.",
  denied: "The sign-in was not finished, or could not be verified. Try again.",
  expired: "The sign-in took too long, or was started in another browser. Try again.",
  unavailable: "The sign-in provider does not answer. Try again later, or use a key or link.",
} as const;

/** See `signInProblems`. */
export type SignInProblem = keyof typeof signInProblems;
