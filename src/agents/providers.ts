import { existsSync, realpathSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, dirname, join } from "node:path";
import type { ModelProviders } from "../domain/agents/model.ts";
import { basicProvider } from "./basic/provider.ts";
import { usualLevels } from "../domain/agents/agent.ts";
import type { HarnessLaunch, Provider } from "./harness.ts";
import { defaultModelOf, defaultModels, noModel, chooseModel, sdkBaseUrl } from "./models.ts";

/** The operator's configuration of an own agent provider. */
export interface CustomProviderSettings {
  readonly id: string;
  readonly name?: string | undefined;
  readonly command: string;
  readonly arguments: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly readOnly: readonly string[];
  readonly defaultModel: string | null;
  readonly reasoningLevels?: readonly string[] | undefined;
  readonly state: readonly string[];
}

/** Configuration of the agent providers. */
export interface RegistryOptions {
  readonly models: ModelProviders;
  readonly custom: readonly CustomProviderSettings[];
}

/** All agent providers, in the order in which the default is chosen. */
export function createProviders(options: RegistryOptions): Provider[] {
  const { models } = options;
  return [
    ...options.custom.map(customProvider),
    claudeCode(models),
    codex(models),
    openCode(models),
    gemini(models),
    basicProvider(models),
  ];
}

/** A program on PATH, or in an installed package. */
function findProgram(name: string): string | null {
  const folders = [
    ...(process.env["PATH"] ?? "").split(delimiter),
    join(import.meta.dirname, "../../node_modules/.bin"),
  ];
  const found = folders.map((folder) => join(folder, name)).find((path) => path.startsWith("/") && existsSync(path));
  return found ?? null;
}

function claudeCode(models: ModelProviders): Provider {
  const program = findProgram("claude-agent-acp");
  return {
    id: "claudeCode",
    name: "Claude Code",
    defaultModel: "default",
    reasoningLevels: ["low", "medium", "high", "xhigh", "max"],
    statePaths: [".claude/projects", ".claude/.claude.json"],
    problem: () =>
      Promise.resolve(
        program === null
          ? "not installed: npm install -g @agentclientprotocol/claude-agent-acp"
          : models.anthropic === undefined
            ? "no key: set ANTHROPIC_API_KEY"
            : null,
      ),
    launch: ({ model, reasoning, home, models: reached }) => ({
      ...launchOf(program, [], model, {
        // https://code.claude.com/docs/en/env-vars
        CLAUDE_CODE_EFFORT_LEVEL: reasoning ?? undefined,
        ANTHROPIC_API_KEY: reached.anthropic?.apiKey,
        ANTHROPIC_BASE_URL: reached.anthropic?.baseUrl,
        ANTHROPIC_MODEL: model === "default" ? undefined : (model ?? undefined),
        CLAUDE_CONFIG_DIR: join(home, ".claude"),
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
        CLAUDE_CODE_MAX_RETRIES: "2",
        IS_SANDBOX: "1",
      }),
      // The model's provider would run the search: the gateway refuses that.
      files: { ".claude/settings.json": JSON.stringify({ permissions: { deny: ["WebSearch"] } }) },
    }),
  };
}

function codex(models: ModelProviders): Provider {
  const program = findProgram("codex-acp");
  const settings = (model: string | null, reasoning: string | null, baseUrl: string | undefined): string =>
    JSON.stringify({
      ...(model !== null && { model }),
      ...(reasoning !== null && { model_reasoning_effort: reasoning }),
      // The model's provider would run it: the gateway refuses that.
      web_search: "disabled",
      model_provider: "offstage",
      model_providers: {
        offstage: {
          name: "OpenAI",
          base_url: baseUrl ?? "https://api.openai.com/v1",
          env_key: "OPENAI_API_KEY",
          wire_api: "responses",
        },
      },
    });
  return {
    id: "codex",
    name: "Codex",
    defaultModel: defaultModels.openai,
    reasoningLevels: ["minimal", "low", "medium", "high", "xhigh"],
    // The names of its databases contain their format's number.
    statePaths: [".codex/*.sqlite", ".codex/sessions", ".codex/session_index.jsonl"],
    problem: () =>
      Promise.resolve(
        program === null
          ? "not installed: npm install -g @agentclientprotocol/codex-acp"
          : models.openai === undefined
            ? "no key: set OPENAI_API_KEY"
            : null,
      ),
    launch: ({ model, reasoning, home, models: reached }) => ({
      ...launchOf(program, [], model, {
        OPENAI_API_KEY: reached.openai?.apiKey,
        CODEX_HOME: join(home, ".codex"),
        CODEX_CONFIG: settings(model, reasoning, reached.openai?.baseUrl),
        MODEL_PROVIDER: "offstage",
        INITIAL_AGENT_MODE: "agent-full-access",
        NO_BROWSER: "1",
      }),
      // It does not create its folder.
      files: { ".codex/config.toml": "" },
      // The only way in which it sends the output of commands.
      extensions: { terminal_output_delta: true },
    }),
  };
}

function gemini(models: ModelProviders): Provider {
  const program = findProgram("gemini");
  return {
    id: "gemini",
    name: "Gemini CLI",
    defaultModel: defaultModels.google,
    reasoningLevels: usualLevels,
    statePaths: [".gemini/projects.json", ".gemini/tmp", ".gemini/history"],
    problem: () =>
      Promise.resolve(
        program === null
          ? "not installed: npm install -g @google/gemini-cli"
          : models.google === undefined
            ? "no key: set GEMINI_API_KEY"
            : null,
      ),
    launch: ({ model, reasoning, models: reached }) => ({
      ...launchOf(program, ["--acp", ...(model === null ? [] : ["-m", model])], model, {
        GEMINI_API_KEY: reached.google?.apiKey,
        GOOGLE_GEMINI_BASE_URL: reached.google?.baseUrl,
        GEMINI_CLI_TRUST_WORKSPACE: "true",
      }),
      reasoning,
      files: {
        ".gemini/settings.json": JSON.stringify({
          security: { auth: { selectedType: "gemini-api-key" } },
          // Its default of ten attempts takes minutes without any output.
          general: { maxAttempts: 4, enableAutoUpdate: false },
          privacy: { usageStatisticsEnabled: false },
          // The model's provider would search and fetch: the gateway refuses that.
          tools: { exclude: ["google_web_search"] },
          experimental: { directWebFetch: true },
        }),
      },
    }),
  };
}

/** OpenCode names a model `<model provider>/<model>`; offered are those of the configured providers. */
function openCode(models: ModelProviders): Provider {
  const program = openCodeProgram();
  const defaultModel = defaultModelOf(models);
  return {
    id: "opencode",
    name: "OpenCode",
    defaultModel,
    reasoningLevels: ["none", "minimal", "low", "medium", "high", "xhigh", "max"],
    statePaths: [".local/share/opencode/*.db", ".local/share/opencode/storage"],
    problem: () =>
      Promise.resolve(
        program === null ? "not installed: npm install -g opencode-ai" : defaultModel === null ? noModel : null,
      ),
    launch: ({ model, reasoning, models: reached }) => {
      const route = chooseModel(reached, model ?? defaultModel ?? "");
      const named = route === null ? "" : `${route.provider}/${route.model}`;
      return launchOf(program, ["acp", "--print-logs", "--log-level", "ERROR"], named, {
        OPENCODE_CONFIG_CONTENT: JSON.stringify(openCodeSettings(reached, named, reasoning)),
        OPENCODE_DISABLE_MODELS_FETCH: "1",
        OPENCODE_DISABLE_AUTOUPDATE: "1",
        OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
        OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
      });
    },
  };
}

/** The native program in this platform's package: the wrapper on PATH needs its install script. */
function openCodeProgram(): string | null {
  const name = `opencode-${process.platform}-${process.arch}`;
  const require = createRequire(import.meta.url);
  for (const candidate of [name, `${name}-baseline`]) {
    try {
      const path = join(dirname(require.resolve(`${candidate}/package.json`)), "bin/opencode");
      if (existsSync(path)) return path;
    } catch {
      // That package is not installed here; another may be.
    }
  }
  return findProgram("opencode");
}

function openCodeSettings(models: ModelProviders, model: string, reasoning: string | null): unknown {
  const name = model.slice(model.indexOf("/") + 1);
  const chosen = model.slice(0, model.indexOf("/"));
  // Options of a model are the AI SDK's of its provider (https://opencode.ai/docs/models).
  const reasoningOptions = {
    anthropic: { effort: reasoning },
    google: { thinkingConfig: { thinkingLevel: reasoning } },
    openai: { reasoningEffort: reasoning },
    compatible: { reasoningEffort: reasoning },
  };
  const optionsOf = (provider: keyof typeof reasoningOptions) =>
    reasoning === null || chosen !== provider ? {} : { options: reasoningOptions[provider] };
  const options = (provider: "anthropic" | "openai" | "google") => {
    const settings = models[provider];
    if (settings === undefined) return null;
    const baseURL = sdkBaseUrl({ provider, baseUrl: settings.baseUrl });
    const ofModel = optionsOf(provider);
    return {
      options: { apiKey: settings.apiKey, ...(baseURL !== undefined && { baseURL }) },
      ...("options" in ofModel && { models: { [name]: ofModel } }),
    };
  };
  const provider = {
    anthropic: options("anthropic"),
    openai: options("openai"),
    google: options("google"),
    compatible:
      models.compatible === undefined
        ? null
        : {
            npm: "@ai-sdk/openai-compatible",
            name: "Configured model server",
            options: { baseURL: models.compatible.baseUrl, apiKey: models.compatible.apiKey ?? "none" },
            models: { [name]: { name, tool_call: true, ...optionsOf("compatible") } },
          },
  };
  const configured = Object.fromEntries(Object.entries(provider).filter(([, settings]) => settings !== null));
  return {
    enabled_providers: Object.keys(configured),
    provider: configured,
    model,
    small_model: model,
    autoupdate: false,
    share: "disabled",
    permission: { edit: "allow", bash: "allow", webfetch: "allow", external_directory: "allow" },
  };
}

/**
 * A provider that the operator configured. In its arguments and environment, `{model}` is replaced by the model's name,
 * `{reasoning}` by the level of reasoning,
 * `{token}` by the session's token, and `{anthropicUrl}`, `{openaiUrl}`, `{googleUrl}`, `{compatibleUrl}` by the
 * gateway's addresses.
 */
function customProvider(settings: CustomProviderSettings): Provider {
  const program = settings.command.startsWith("/")
    ? existsSync(settings.command)
      ? settings.command
      : null
    : findProgram(settings.command);
  return {
    id: settings.id,
    name: settings.name ?? settings.id,
    defaultModel: settings.defaultModel,
    reasoningLevels: settings.reasoningLevels ?? usualLevels,
    statePaths: settings.state,
    problem: () =>
      Promise.resolve(
        program === null ? `${settings.command} was not found: install it, or correct OFFSTAGE_PROVIDERS` : null,
      ),
    launch: ({ model, reasoning, models: reached }) => {
      const values: Record<string, string | undefined> = {
        model: model ?? "",
        reasoning: reasoning ?? "",
        token: Object.values(reached)[0]?.apiKey,
        anthropicUrl: reached.anthropic?.baseUrl,
        openaiUrl: reached.openai?.baseUrl,
        googleUrl: reached.google?.baseUrl,
        compatibleUrl: reached.compatible?.baseUrl,
      };
      const fill = (text: string): string =>
        text.replaceAll(/\{(\w+)\}/gu, (whole, name: string) => values[name] ?? whole);
      const environment = Object.fromEntries(
        Object.entries(settings.environment).map(([name, value]) => [name, fill(value)]),
      );
      const launch = launchOf(program, settings.arguments.map(fill), model, environment);
      const isGiven = [...settings.arguments, ...Object.values(settings.environment)].some((text) =>
        text.includes("{reasoning}"),
      );
      return { ...launch, reasoning: isGiven ? null : reasoning, readOnly: [...launch.readOnly, ...settings.readOnly] };
    },
  };
}

/**
 * Starts the program by its real path: PATH often has a link whose target is not in the sandbox. The sandbox can read
 * the program's folder or, if the program came in a package, all packages installed with it.
 */
function launchOf(
  program: string | null,
  parameters: readonly string[],
  model: string | null,
  environment: Readonly<Record<string, string | undefined>>,
): HarnessLaunch {
  const command = program === null ? "" : realpathSync(program);
  const packages = /^.*?\/node_modules(?=\/)/u.exec(command)?.[0];
  return {
    command,
    arguments: parameters,
    model,
    environment: Object.fromEntries(
      Object.entries(environment).filter((entry): entry is [string, string] => entry[1] !== undefined),
    ),
    readOnly: command.startsWith("/usr/") || command === "" ? [] : [packages ?? dirname(command)],
    files: {},
  };
}
