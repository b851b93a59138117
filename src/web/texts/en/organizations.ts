/** Texts of what concerns several organizations. */
export const english = {
  organization: "Organization",
  yours: "Your organizations",
  yoursAbout:
    "You have an account in each of these. What you see and do is of one of them at a time. A switch is for all windows of this browser, and is remembered for your next sign-in.",
  here: "you are here",
  switch: "Switch",
  switchTo: (name: string) => `Switch to ${name}`,
  roles: { admin: "Admin", member: "Member", viewer: "Viewer" },
  all: "Organizations",
  allAbout:
    "Each has its own people, keys, repositories, sessions and settings, and sees nothing of the others. They share this server’s workers and models; its access to forges, tokens and ssh keys, is for those alone that use it.",
  none: "There is no organization.",
  own: "the server’s own",
  usesForges: "uses the server’s forges",
  usesForgesOf: (name: string) => `${name} uses the server’s forges`,
  lend: "It uses the server’s access to forges",
  lendHint:
    "With the operator’s tokens and ssh keys, its members reach all repositories that these reach. Without, it connects its own forges.",
  members: (count: number) => (count === 1 ? "1 member" : `${count} members`),
  sessions: (count: number, isAll: boolean) =>
    isAll ? (count === 1 ? "1 session" : `${count} sessions`) : `more than ${count} sessions`,
  lastSession: "the newest",
  since: "since",
  create: "New organization",
  createTitle: "New organization",
  name: "Its name",
  first: "Its first admin",
  ways: { invite: "is invited", key: "gets an API key from me" },
  adminName: "Name of the admin",
  email: "E-mail address (optional)",
  emailHint: "The link is mailed there, if this server has a mail server.",
  making: "Creating …",
  makeVerb: "Create",
  linkFor: (admin: string, organization: string) => `Link for ${admin}, the admin of ${organization}`,
  linkAbout: (until: string) =>
    `It signs one browser in as this person, once, until ${until}. Send it only to them. It is shown only now.`,
  mailed: (address: string) => `It is mailed to ${address}, too.`,
  keyOf: (organization: string) => `Admin key of ${organization}`,
  keyAbout: "It allows everything in that organization. It is shown only now.",
  erase: "Erase",
};
/** See `english`. */
export type OrganizationTexts = typeof english;
