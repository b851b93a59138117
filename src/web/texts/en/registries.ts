/** Texts of the settings of private package registries. */
export const english = {
  title: "Private package registries",
  about:
    "Setups and agents of all sessions install from them. A token never enters a sandbox: what a sandbox asks of the registry’s address gets it outside, on its way. Nothing can be published.",
  none: "No private registries yet.",
  everything: "every package",
  user: (name: string) => `user ${name}`,
  set: "set",
  add: "Add a registry",
  adding: "Adding …",
  verb: "Add",
  kind: "Kind",
  /** Of the kinds that have no scope. */
  isForAll: {
    pypi: "Everything that pip and uv install comes from it.",
    maven: "Everything that Maven asks for comes from it.",
    nuget: "Its packages are offered beside those of nuget.org.",
    rubygems: "Everything that gem and Bundler install comes from it.",
  },
  url: "Address",
  urlHint: {
    npm: "As npm is configured with it. Everything below it gets the token; at GitLab’s address of an instance or a group, the packages of its projects too.",
    pypi: "Of its index, which ends with /simple/. Everything beside that gets the token, too; at Azure Artifacts what the feeds of the same project or organization offer.",
    maven: "As Maven’s settings name it. Everything below it gets the token.",
    cargo:
      "Of its index. Everything below it gets the token, and where its config.json says that its crates are, at the same host.",
    go: "As GOPROXY names it. Everything below it gets the token.",
    nuget:
      "Of its index.json. Everything beside that gets the token, and where it says that packages are, at the same host.",
    rubygems: "As gem is configured with it. Everything below it gets the token.",
  },
  scope: { npm: "Scope", cargo: "Name in Cargo", go: "Modules" },
  scopeHint: {
    npm: "Whose packages come from it, such as @acme. Empty: every package does.",
    cargo: "As Cargo.toml names it, such as acme. Empty: it takes the place of crates.io.",
    go: "Patterns of those that come from it, such as go.acme.example/*, with commas between them; no database of checksums is asked about these. Empty: every module does.",
  },
  username: "User name",
  usernameHint: "With one, the token is its password (Basic). Empty: the token is sent as Bearer.",
  usernameHintCargo: "With one, the token is its password (Basic). Empty: the token is sent as it is.",
  token: "Token",
  newToken: "New token",
  tokenHint: "One that may only read. It is never shown again.",
  replace: "Replace the token",
  replaceOf: (registry: string) => `New token of ${registry}`,
  save: "Save",
  saving: "Saving …",
  remove: "Delete",
  removeOf: (registry: string) => `Delete ${registry}?`,
  removeAbout: "Its token is deleted with it. What starts from then on no longer installs from it.",
};
/** See `english`. */
export type RegistryTexts = typeof english;
