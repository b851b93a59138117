/** Texts of the page of everybody who signs in. */
export const english = {
  title: "People",
  about: (organization: string) =>
    `People who signed in to the organization ${organization} or were invited. A person whom the identity provider lets in is listed after their first sign-in. A change takes effect immediately, in browsers that are signed in too.`,
  rolesTitle: "What a role may do",
  roles: { admin: "Admin", member: "Member", viewer: "Viewer" },
  mays: {
    viewer: "Sees sessions, automations and repositories, and changes nothing.",
    member: "Also starts and steers sessions, makes automations, and connects repositories.",
    admin:
      "Also sets what holds for all: people and keys, secrets, forges, hosts, limits and budgets, webhooks, the audit log.",
  },
  you: "you",
  disabled: "Disabled",
  seen: "seen",
  since: "here since",
  sessions: "Sessions",
  of: (name: string) => `of ${name}`,
  roleOf: (name: string) => `Role of ${name}`,
  roleChanged: (name: string, role: string) => `${name}: ${role} from now on.`,
  disable: "Disable",
  disableQuestion: (name: string) => `Disable ${name}?`,
  disableAbout:
    "They are signed out everywhere, and their keys and programs do not work until an admin enables them again. Their sessions go on.",
  isDisabled: (name: string) => `${name} is disabled.`,
  enable: "Enable",
  isEnabled: (name: string) => `${name} can sign in again.`,
  remove: "Remove",
  removeQuestion: (name: string) => `Remove ${name}?`,
  removeAbout:
    "Name, address and accounts at forges are erased, keys are revoked. What they asked for stays, as a deleted user’s. This can’t be undone; if the provider lets them in again, they get a new account.",
  isRemoved: (name: string) => `${name} was removed.`,
  invite: "Invite",
  inviteTitle: "Invite a person",
  name: "Name",
  email: "E-mail address (optional)",
  emailHint:
    "The link is mailed there, if this server has a mail server. If your identity provider knows them by this address, they sign in by it from then on.",
  role: "Role",
  makeLink: "Make a link",
  makingLink: "Making it …",
  linkOf: (name: string) => `Link for ${name}`,
  linkAbout: (until: string) =>
    `It signs one browser in as this person, once, until ${until}. Send it only to them. It is shown only now.`,
  mailed: (address: string) => `It is mailed to ${address}, too.`,
  notMailed: "This server has no mail server: give them the link yourself.",
  mail: { pending: "mail on its way", sent: "mailed", dead: "the mail was not sent" },
  byLink: "signs in by a link",
  invited: "invited",
  notSeen: "not here yet",
  newLink: "New link",
  newLinkQuestion: (name: string) => `Make a new link for ${name}?`,
  newLinkAbout:
    "It signs one browser in as this person. Links that were not used end; browsers that are signed in stay so.",
  empty: {
    title: "No one has signed in by an identity provider yet",
    text: "People who do, and people whom you invite, are listed here with their roles. Keys and one-time links of the command line sign in without a person.",
  },
  keys: "Keys for programs are in the settings.",
};
/** See `english`. */
export type PeopleTexts = typeof english;
