/** Bodies that an operation takes, which its schema alone does not give: addresses, branches, names of variables. */
export function examplesOf(operationId: string, { repository, word, key }: ExampleParts): unknown {
  const examples: Readonly<Record<string, unknown>> = {
    "postPublic-apiSessionCreate": {
      prompt: `Fix ${word}`,
      codeRepoIds: [repository],
      targetBranch: "main",
      branchName: `fix-${word}`,
    },
    createTask: { description: `Fix ${word}`, repositories: [`https://git.example.com/acme/${word}`] },
    sendMessage: { message: "And the tests" },
    sendMessages: { message: "And the documentation" },
    changeLabels: { add: [`label ${word}`], remove: ["other"] },
    setSessionBudget: { budgetUsd: 5 },
    createAutomation: {
      name: word,
      macro: word,
      instructions: "Fix {{ event.x | default: 1 }}",
      codeRepoIds: [repository],
    },
    updateAutomation: { name: word, instructions: "Fix {{ event.x | default: 2 }}", targetBranch: "dev" },
    previewAutomation: { event: { x: 1, list: [{ a: "b" }], text: "c" } },
    previewDraft: { instructions: "Fix {{ event.x | default: 1 }}", event: { x: [1, { a: "b" }] } },
    updateAutomationState: { set: { seen: { last: 7 } }, remove: ["old"], versions: { old: 0 } },
    triggerAutomation: { x: { y: [1, "2", null] } },
    triggerAgent: { x: 1 },
    createRepository: { url: `https://git.example.com/new/${word}`, branch: "main", description: "a repository" },
    updateRepository: { name: word, branch: "dev", description: null },
    trySetup: { branch: "main" },
    setEgress: { egress: ["api.example.com", "*.example.org"] },
    allowEgress: { host: "files.example.com" },
    updateEnvironment: { setupScript: "npm ci", variables: { CI: "true" } },
    setLimits: { maxRunningSessions: 3 },
    setAutomationFiles: { enabled: true },
    // A list that allows no repository would have most other requests refused.
    updateOrganization: { name: word, repositories: null },
    // The name of none, so that the others still find their organization.
    eraseOrganization: { name: word },
    updateOtherOrganization: { usesServerForges: true },
    eraseOtherOrganization: { name: word },
    createOrganization: { name: word, admin: { name: "Ada", email: `${word}@example.com` } },
    switchOrganization: { organizationId: repository },
    setAllowedFindings: { allowedFindings: [{ path: `test/${word}/**`, rule: "github" }] },
    allowFinding: { path: `test/${word}.txt` },
    createSecret: {
      name: `TOKEN_${word.replaceAll("-", "_")}`,
      value: "a secret value",
      phases: ["setup"],
      repositoryId: repository,
    },
    createRegistry: { kind: "npm", url: "https://npm.example/", scope: `@s${word}`, token: "a secret token" },
    updateRegistry: { token: "another secret token" },
    createConnection: {
      kind: "gitea",
      webUrl: `https://${word}.example`,
      credential: { type: "token", token: "a-secret-token" },
    },
    createAccount: { webUrl: `https://${word}.example`, token: "a-secret-token" },
    createSubscription: {
      endpoint: `https://push.example.com/${word}`,
      keys: { p256dh: "BAAA", auth: "AAAA" },
    },
    updateNoticeSettings: { settings: [{ kind: "session.failed", push: "off", email: "mine" }] },
    updateAccount: { token: "another-secret-token" },
    startGitHubApp: { webUrl: `https://app-${word}.example`, account: "acme" },
    rotateConnectionSecret: { webhookSecret: "the-secret-of-the-forge" },
    updateConnection: { name: word, credential: { type: "token", token: "another-secret-token" } },
    updateSecret: { value: "another secret value" },
    createKey: { name: word, scopes: ["read"] },
    createLogin: { key },
    decideOAuthRequest: { allow: true },
    updateUser: { role: "viewer" },
    inviteUser: { name: "Ada", email: `${word}@example.com`, role: "viewer" },
    createWebhook: { url: `https://hooks.example.com/${word}`, events: ["session.failed"] },
    updateWebhook: { events: ["job.failed"], enabled: true },
  };
  return examples[operationId];
}

interface ExampleParts {
  readonly repository: string;
  /** Another each time, if two of the same name can't be. */
  readonly word: string;
  readonly key: string;
}
