import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs, styleText } from "node:util";
import { createClient } from "../src/client.ts";
import { readConfig } from "../src/config/config.ts";
import { createLogger } from "../src/observability.ts";
import { installBubblewrap } from "../src/sandboxes/bubblewrap.ts";
import { startOffstage, type Offstage } from "../src/server/offstage.ts";
import { startForge } from "../test/forge/server.ts";
import { startModelServer } from "../test/model/server.ts";
import { printEvent } from "./print.ts";
import { demoPrompt, demoScript } from "./script.ts";

/**
 * The whole product on one machine in one go: Offstage with everything embedded, the project's own forge with a small
 * repository on it, and one session whose work arrives as a pull request.
 *
 *   npm run demo              serves on until Ctrl-C
 *   npm run demo -- --exit    leaves with 0 when the pull request is open, with 1 and the reason otherwise
 */
const { values: flags } = parseArgs({ options: { exit: { type: "boolean", default: false } } });

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const stops: (() => Promise<void>)[] = [];

async function stopAll(): Promise<void> {
  for (const stop of stops.splice(0).reverse()) await stop();
}

async function demo(): Promise<number> {
  if (!(await installBubblewrap())) say("bubblewrap is not installed, and could not be installed here.");
  const forge = await startForge();
  stops.push(() => forge.close());
  const repository = await forge.createRepository(
    "demo",
    "greet",
    join(import.meta.dirname, "../test/forge/demo-repository"),
  );
  say(`A test forge serves ${repository.url}`);

  const variables = await modelVariables();
  const data = await mkdtemp(join(tmpdir(), "offstage-demo-"));
  stops.push(() => rm(data, { recursive: true, force: true }));
  // Started by root, the database runs as another user, who must be able to pass.
  await chmod(data, 0o755);
  const forges = [{ kind: "github", webUrl: forge.url, apiUrl: forge.apiUrl, token: forge.token }];
  const config = readConfig({
    OFFSTAGE_PORT: "0",
    OFFSTAGE_LOG_LEVEL: "error",
    ...process.env,
    ...variables,
    OFFSTAGE_DATA: data,
    OFFSTAGE_FORGES: JSON.stringify(forges),
    OFFSTAGE_ADMIN_KEY: undefined,
    DATABASE_URL: undefined,
  });
  const offstage = await startOffstage(config, createLogger(config.logLevel));
  stops.push(() => offstage.stop());
  say(`Offstage answers at ${offstage.url}`);
  return runSession(offstage, repository.url);
}

/** A model key in the environment is used; without one the bundled scripted model answers. */
async function modelVariables(): Promise<Record<string, string>> {
  const keys = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OFFSTAGE_MODEL_BASE_URL"];
  const found = keys.find((key) => (process.env[key] ?? "") !== "");
  if (found !== undefined) {
    say(`The model is asked with ${found}.`);
    return {};
  }
  say("No model key in the environment: the bundled scripted model answers. All the rest is the real thing.");
  const model = await startModelServer({ script: demoScript });
  stops.push(() => model.close());
  return {
    OFFSTAGE_MODEL_BASE_URL: `${model.url}/v1`,
    OFFSTAGE_MODEL_API_KEY: "scripted-model-key",
    OFFSTAGE_MODEL: "scripted",
  };
}

async function runSession(offstage: Offstage, repositoryUrl: string): Promise<number> {
  const client = createClient({ baseUrl: offstage.url, key: offstage.first?.adminKey ?? "" });
  const { agents } = await client.agent.list();
  const opencode = agents.find((agent) => agent.id === "opencode");
  if (opencode === undefined || !opencode.available) {
    say(`OpenCode can't run here: ${opencode?.problem ?? "it is not installed"}`);
    return 1;
  }
  const session = await client.session.create({
    prompt: demoPrompt,
    repositories: [repositoryUrl],
    agent: `opencode:${opencode.defaultModel}`,
  });
  say(`\nThe session's page   ${styleText("underline", session.htmlUrl)}`);
  say(`Sign in once with    ${styleText("underline", offstage.first?.loginLink ?? "")}\n`);
  for await (const event of client.streamEvents(session.id, {})) printEvent(event);

  const done = await client.session.get(session.id);
  const { repositories } = await client.session.diff(session.id);
  for (const { patch } of repositories) say(`\n${patch}`);
  const [pullRequest] = done.pullRequests;
  if (pullRequest === undefined) {
    say(
      styleText("red", `No pull request: ${done.failure?.reason ?? done.summary ?? `the session is ${done.status}`}`),
    );
    if (done.failure !== null) say(done.failure.remedy);
    return 1;
  }
  say(`${styleText("bold", "Pull request")} ${styleText("underline", pullRequest.url)}`);
  return 0;
}

async function interrupted(): Promise<void> {
  await new Promise<void>((resolve) => {
    process.once("SIGINT", () => resolve());
    process.once("SIGTERM", () => resolve());
  });
}

const stopRequested = interrupted();
try {
  const finished = demo();
  const outcome = await Promise.race([finished, stopRequested.then(() => null)]);
  process.exitCode = outcome ?? 130;
  if (outcome !== null && !flags.exit) {
    say("\nServing until Ctrl-C.");
    await stopRequested;
  }
} catch (error) {
  say(styleText("red", error instanceof Error ? error.message : String(error)));
  process.exitCode = 1;
} finally {
  await stopAll();
}
