/** Texts of the guide to the first pull request. */
export const english = {
  title: "Your first pull request",
  about: "What it takes, and what of it is there.",
  done: "Done",
  open: "To do",
  unknown: "Being looked at",
  key: {
    title: "A model’s key",
    done: (model: string) => `Agents use ${model} unless a session names another model.`,
    doneWithout: "An agent has what it needs.",
    remedy: "The server reads it from its environment when it starts.",
  },
  agent: {
    title: "An agent that works",
    done: (name: string) => `${name} takes sessions that name no other.`,
    first: "It works as soon as there is a key: the one called Basic needs nothing else.",
    lacks: (name: string, problem: string) => `${name}: ${problem}`,
    other: "Until then, choose another agent for the session.",
  },
  forge: {
    title: "A forge that takes pull requests",
    done: (forges: string) => `Connected: ${forges}.`,
    none: "None is connected.",
    connect: "Connect a forge",
    orToken: ", or start the server with GITHUB_TOKEN or GITLAB_TOKEN.",
    askAdmin: "An admin connects it in the settings.",
    lacks: (forge: string, problem: string) => `${forge}: ${problem}`,
    toSettings: "Open the settings",
  },
  session: {
    title: "A first session",
    write: "Choose the repository above, and say what should be done, such as:",
    example: "Add a section to the README that explains how to run the tests.",
    started: "It is started.",
    open: "Open it",
  },
  pullRequest: {
    title: "Its pull request",
    later: "It is opened as soon as the session’s work is committed.",
    underWay: "The session is at work.",
    waiting: "The session waits for a person.",
    nothing: "The session ended without a change. Ask it for one, or start another.",
    cancelled: "The session was cancelled. Start another.",
    opened: "Read it, comment on it, merge it:",
    next: "What starts by itself from now on is an automation:",
    automate: "Make one",
  },
};
/** See `english`. */
export type FirstRunTexts = typeof english;
