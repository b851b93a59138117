import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ModelProviders } from "../../domain/agents/model.ts";
import { programFile } from "../../programs/program-file.ts";
import type { Provider } from "../harness.ts";
import { defaultModelOf, noModel, chooseModel, type ModelChoice } from "../models.ts";
import { reasoningLevels } from "./reasoning.ts";

/** Offstage's own agent: needs only a model's key. */
export function basicProvider(models: ModelProviders): Provider {
  const defaultModel = defaultModelOf(models);
  return {
    id: "basic",
    name: "Basic",
    defaultModel,
    // As the AI SDK maps them to each provider's own.
    reasoningLevels: [...reasoningLevels],
    statePaths: [".offstage-agent"],
    problem: () => Promise.resolve(defaultModel === null ? noModel : null),
    launch: ({ model, reasoning, models: reached }) => {
      const route = chooseModel(reached, model ?? defaultModel ?? "");
      return {
        command: process.execPath,
        arguments: [fileURLToPath(programFile(import.meta.url, "main"))],
        model: null,
        environment: {
          ...(route !== null && environmentOf(route)),
          ...(reasoning !== null && { OFFSTAGE_AGENT_REASONING: reasoning }),
        },
        readOnly: programFolders(),
        files: {},
      };
    },
  };
}

const keyNames = {
  anthropic: "ANTHROPIC_API_KEY",
  openai: "OPENAI_API_KEY",
  google: "GEMINI_API_KEY",
  compatible: "OFFSTAGE_MODEL_API_KEY",
};
const addressNames = {
  anthropic: "ANTHROPIC_BASE_URL",
  openai: "OPENAI_BASE_URL",
  google: "GOOGLE_GEMINI_BASE_URL",
  compatible: "OFFSTAGE_MODEL_BASE_URL",
};

/** Only the variables of this model: other providers' keys stay outside. */
function environmentOf({ provider, model, apiKey, baseUrl }: ModelChoice): Record<string, string> {
  return {
    OFFSTAGE_AGENT_MODEL: `${provider}/${model}`,
    ...(apiKey !== undefined && { [keyNames[provider]]: apiKey }),
    ...(baseUrl !== undefined && { [addressNames[provider]]: baseUrl }),
  };
}

/**
 * Folders of this program and its packages. Not their parent, which may contain the server's data: in a clone,
 * `.offstage` is beside them.
 */
function programFolders(): string[] {
  const program = join(import.meta.dirname, "../..");
  const root = dirname(program);
  // If this is an installed package, its dependencies may be beside it instead of in it.
  const outer = /^.*?\/node_modules(?=\/)/u.exec(root)?.[0];
  return [
    program,
    join(root, "package.json"),
    join(root, "node_modules"),
    ...(outer === undefined ? [] : [outer]),
  ].filter((path) => existsSync(path));
}
