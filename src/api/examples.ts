const repository = "https://github.com/acme/shop";
const repositoryId = "0b9f6d0e-6f0c-4f3e-9a57-3f6c1a2b4c5d";
const instructions = "Fix {{ event.issue.url }}: {{ event.issue.title }}";
const event = { issue: { url: `${repository}/issues/7`, title: "Crash on an empty cart" } };
const template = { name: "Fix a bug", instructions, repositories: [repository] };

/**
 * An example of each operation's body, by the operation's id: the description has it, and with it the reference and the clients' examples.
 * A test sends each to the API.
 */
export const bodyExamples: Readonly<Record<string, unknown>> = {
  "postPublic-apiSessionCreate": {
    prompt: "Fix the failing test in src/cart, and add one for the empty cart",
    repositories: [repository],
    targetBranch: "main",
  },
  createTask: { description: "Fix the failing test in src/cart", repositories: [repository] },
  changeLabels: { add: ["billing"], remove: ["triage"] },
  createShare: { expiresInDays: 7 },
  sendMessage: { message: "Also update the changelog" },
  sendMessages: { message: "Also update the changelog" },
  setSessionBudget: { budgetUsd: 5 },
  createAutomation: { ...template, macro: "fix-bug" },
  updateAutomation: { instructions: `${instructions}. Add a test.`, priority: 3 },
  previewAutomation: { event },
  previewDraft: { instructions, event },
  updateAutomationState: { set: { lastIssue: 7 }, versions: { lastIssue: 0 } },
  triggerAutomation: event,
  triggerAgent: event,
  createRepository: { url: repository, branch: "main", description: "The shop" },
  updateRepository: { description: "The shop, and its API" },
  setAutomationFiles: { enabled: true },
  setEgress: { egress: ["api.example.com", "*.example.org"] },
  allowEgress: { host: "files.example.com:443" },
  updateEnvironment: { setupScript: "npm ci", variables: { CI: "true" } },
  setLimits: { maxRunningSessions: 3 },
  setAllowedFindings: { allowedFindings: [{ path: "test/fixtures/**", rule: "github" }] },
  allowFinding: { path: "test/fixtures/token.txt" },
  updateOrganization: { defaultAgent: "opencode:gpt-5", monthlyBudgetUsd: 500 },
  eraseOrganization: { name: "acme" },
  createOrganization: { name: "acme", admin: { name: "Ada", email: "ada@example.com" } },
  updateOtherOrganization: { usesServerForges: true },
  eraseOtherOrganization: { name: "acme" },
  rotateConnectionSecret: { webhookSecret: "a-secret-that-the-forge-made" },
  createSubscription: {
    endpoint: "https://push.example.com/send/abc",
    keys: {
      p256dh: "BNcRdreALRFXTkOOUHK1EtK2wtaz5Ry4YfYCA_0QTpQtUbVlUls0VJXg7A8u-Ts1XbjhazAkj7I99e8QcYP7DkM",
      auth: "tBHItJI5svbpez7KI4CCXg",
    },
  },
  renewSubscription: {
    endpoint: "https://push.example.com/send/def",
    keys: {
      p256dh: "BNcRdreALRFXTkOOUHK1EtK2wtaz5Ry4YfYCA_0QTpQtUbVlUls0VJXg7A8u-Ts1XbjhazAkj7I99e8QcYP7DkM",
      auth: "tBHItJI5svbpez7KI4CCXg",
    },
    renewalSecret: "32-random-bytes-that-the-browser-has-chosen",
  },
  trySetup: {},
  updateNoticeSettings: { settings: [{ kind: "session.failed", email: "mine" }] },
  createSecret: { name: "NPM_TOKEN", value: "the value", phases: ["setup"], repositoryId },
  updateSecret: { value: "another value" },
  createRegistry: { kind: "npm", url: "https://npm.example.com/", scope: "@acme", token: "the token" },
  updateRegistry: { token: "another token" },
  createConnection: {
    kind: "gitea",
    webUrl: "https://git.example.com",
    credential: { type: "token", token: "the-token" },
  },
  updateConnection: { name: "The company's Gitea" },
  createAccount: { webUrl: "https://git.example.com", token: "your-token" },
  updateAccount: { token: "another-token" },
  startGitHubApp: { webUrl: "https://github.com", account: "acme" },
  createKey: { name: "nightly builds", scopes: ["trigger"] },
  createLogin: { token: "of a one-time link" },
  switchOrganization: { organizationId: "3f0c9a52-6c0e-4f83-9a1d-0c5b7e8d2f41" },
  decideOAuthRequest: { allow: true },
  updateUser: { role: "member" },
  inviteUserAgain: { language: "en" },
  inviteUser: { name: "Ada", email: "ada@example.com", role: "member" },
  createWebhook: { url: "https://hooks.example.com/offstage", events: ["session.completed", "session.failed"] },
  updateWebhook: { events: ["session.failed"], enabled: true },
};
