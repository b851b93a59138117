import { expect, test } from "vitest";
import type { Provider } from "../../../agents/harness.ts";
import { chooseAgent } from "./choose.ts";

const provider = (id: string, problem: string | null = null): Provider => ({
  id,
  name: id,
  problem: () => Promise.resolve(problem),
  defaultModel: `${id}-model`,
  reasoningLevels: ["low", "high"],
  statePaths: [],
  launch: () => ({ command: id, arguments: [], environment: {}, files: {}, readOnly: [], model: null }),
});
const providers = [provider("codex"), provider("gemini", "its key is missing")];

/** Chooses among the session's own, the organization's and the server's. */
async function choose(own: string | null, organizations: string | null = null, servers: string | null = null) {
  const organization = { defaultAgent: organizations, egress: [], models: null };
  const services = { providers, defaultAgent: () => Promise.resolve(servers) };
  const { provider: chosen, ...rest } = await chooseAgent({ session: { agent: own, organization } }, services);
  return { id: chosen.id, ...rest };
}

test("a session's own choice goes before its organization's, and that before the server's", async () => {
  expect(await choose("codex:a", "codex:b", "codex:c")).toMatchObject({ model: "a" });
  expect(await choose(null, "codex:b", "codex:c")).toMatchObject({ model: "b" });
  expect(await choose(null, null, "codex:c")).toMatchObject({ model: "c" });
});

test("a level of reasoning is separated from the model, which may have colons itself", async () => {
  expect(await choose("codex:vendor:model:high")).toEqual({ id: "codex", model: "vendor:model", reasoning: "high" });
  expect(await choose("codex:vendor:model")).toEqual({ id: "codex", model: "vendor:model", reasoning: null });
});

test("a default that names only the provider has the provider's own model", async () => {
  expect(await choose(null, null, "codex")).toEqual({ id: "codex", model: "codex-model", reasoning: null });
});

test.each([
  ["there is none", null, "No agent can run on this server"],
  ["its provider is not there", "claudeCode:x", "there is no provider claudeCode"],
  ["it lacks something", "gemini:x", "its key is missing"],
])("an agent is unavailable if %s", async (_why, own, reason) => {
  await expect(choose(own)).rejects.toMatchObject({
    code: "agent_unavailable",
    message: expect.stringContaining(reason) as string,
  });
});
