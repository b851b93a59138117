/** Texts of the sign-in page. */
export const english = {
  title: "Sign in",
  /** The command that prints the link stands between them. */
  about: { before: "With an API key, or with the link that", after: "prints on the server." },
  key: "API key",
  invited: {
    title: "You are invited to Offstage",
    about: "This signs the browser in as you, and works once: use the browser that you work with.",
  },
  signingIn: "Signing in …",
  signInWith: (provider: string) => `Sign in with ${provider}`,
  problems: {
    refused: "You are not allowed to sign in to this server: ask its operator for access.",
    disabled: "Your account was disabled: ask an admin.",
    denied: "The sign-in was not finished, or could not be verified. Try again.",
    expired: "The sign-in took too long, or was started in another browser. Try again.",
    unavailable: "The sign-in provider does not answer. Try again later, or use a key or link.",
  },
};
/** See `english`. */
export type SignInTexts = typeof english;
