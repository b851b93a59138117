import { expect, test } from "vitest";
import type { Provider } from "../../agents/harness.ts";
import { createProviders } from "../../agents/providers.ts";
import type { OpenedRegistry } from "../../store/secrets/registries.ts";
import { launchKey, type Launch, type LaunchServices } from "./launch.ts";

const models = { openai: { apiKey: "sk-secret", baseUrl: "https://models.example/v1" } };
const services: LaunchServices = {
  models,
  limits: { memoryBytes: 1, processes: 1, diskBytes: 1, cpus: 1 },
  author: { name: "Author", email: "author@localhost" },
  committer: { name: "Committer", email: "committer@localhost" },
};
const custom = {
  id: "own",
  command: "sh",
  arguments: ["-c", "true"],
  environment: { TOKEN: "{token}", MODEL: "{model}" },
  readOnly: [],
  defaultModel: null,
  state: [],
};

/** A provider of the operator's; each call makes another of the same kind. */
function provider(changes: Partial<typeof custom> = {}): Provider {
  const [made] = createProviders({ models, custom: [{ ...custom, ...changes }] });
  if (made === undefined) throw new Error("there is no provider");
  return made;
}

const launch = (changes: Partial<Launch> = {}): Launch => ({
  provider: provider(),
  model: "one",
  reasoning: null,
  variables: { A: "1", B: "2" },
  registries: [],
  image: null,
  ...changes,
});
const key = launchKey(launch(), services);

const registry: OpenedRegistry = {
  id: "r",
  kind: "npm",
  url: "https://packages.example/",
  scope: null,
  username: null,
  token: "its-token",
};

test("the same launch has the same key, in whatever order its variables are", () => {
  expect(launchKey(launch({ provider: provider(), variables: { B: "2", A: "1" } }), services)).toBe(key);
});

test.each<[string, Partial<Launch>]>([
  ["another model", { model: "two" }],
  ["the harness's own model", { model: null }],
  ["a level of reasoning", { reasoning: "high" }],
  ["another provider", { provider: provider({ id: "other" }) }],
  ["another program", { provider: provider({ command: "env" }) }],
  ["another argument", { provider: provider({ arguments: ["-c", "false"] }) }],
  ["another variable of the provider", { provider: provider({ environment: { TOKEN: "{token}", MODEL: "fixed" } }) }],
  ["another folder to read", { provider: provider({ readOnly: ["/opt/other"] as never }) }],
  ["another value of a variable", { variables: { A: "1", B: "3" } }],
  ["a variable more", { variables: { A: "1", B: "2", C: "" } }],
  ["a variable less", { variables: { A: "1" } }],
  ["a registry", { registries: [registry] }],
  ["an image", { image: "node:24" }],
])("%s makes another key", (_, changes) => {
  expect(launchKey(launch(changes), services)).not.toBe(key);
});

test.each<[string, Partial<LaunchServices>]>([
  ["another limit", { limits: { ...services.limits, memoryBytes: 2 } }],
  ["another author", { author: { name: "Other", email: "author@localhost" } }],
])("%s of the server makes another key", (_, changes) => {
  expect(launchKey(launch(), { ...services, ...changes })).not.toBe(key);
});

test("what a file in the home says is part of it", () => {
  const without = provider();
  const withFiles: Provider = {
    ...without,
    launch: (options) => ({ ...without.launch(options), files: { ".own/settings.json": "{}" } }),
  };
  expect(launchKey(launch({ provider: withFiles }), services)).not.toBe(key);
});

test("no key of a model is needed for it: who has another has the same launch", () => {
  const others = { ...services, models: { openai: { ...models.openai, apiKey: "sk-other" } } };
  expect(launchKey(launch(), others)).toBe(key);
});
