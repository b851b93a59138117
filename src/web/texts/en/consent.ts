/** Texts of the page that asks whether a program may act for somebody. */
export const english = {
  title: "Let a program act for you?",
  /** The program’s name stands between them. */
  question: { before: "Let", after: "act for you?" },
  loading: "Loading …",
  unknown: "The program chose this name itself; it is not verified.",
  describedBy: "It is described by",
  toProgram: "The answer goes to a program on this machine",
  ifStarted: "Go on only if you have just started one that asks for this.",
  toSite: "The answer goes to",
  ifTrusted: "Go on only if you trust that site.",
  could: "It could then:",
  couldByTools: "It could then, by the tools of the MCP server:",
  nothing: "You may do nothing of what it asks for.",
  scopes: {
    read: "See sessions, their changes and events, automations and repositories",
    write: "Start, steer and cancel sessions, and change automations",
    trigger: "Start automations",
    admin: "Do everything else that an admin may: budgets, secrets, keys, users and settings",
  },
  end: "You can end this at any time in the settings, under “Programs”.",
  allow: "Allow",
  refuse: "Refuse",
  goingBack: "Going back to the program …",
  problem: {
    title: "Nothing was allowed",
    none: "A program sent you here without saying what for.",
    sentences: {
      client:
        "The program that sent you here is not known to this server, or its description can't be read. Have it register again, or ask who makes it.",
      redirect:
        "The program wants you sent to an address that it did not register. Nothing was allowed. Have it register again, or ask who makes it.",
    },
  },
};
/** See `english`. */
export type ConsentTexts = typeof english;
