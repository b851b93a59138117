import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { createWorld, startInProcess, untilOver, type World } from "../test/world.ts";
import { script } from "../test/end-to-end/script.ts";
import { quantile, table } from "./measure.ts";

/**
 * From `POST /session/create` to the pull request, beside the same work done by hand in a shell script: the same
 * repository, harness and scripted model, interleaved.
 *
 *   npm run bench:pull-request
 */
const rounds = 5;
const prompt = "write hello.txt: hello there";
const run = promisify(execFile);

type Work = (round: number) => Promise<void>;

function byHand(world: World, repositoryUrl: string): Work {
  const model = "scripted/scripted";
  const provider = {
    npm: "@ai-sdk/openai-compatible",
    options: { baseURL: world.variables["OFFSTAGE_MODEL_BASE_URL"], apiKey: world.variables["OFFSTAGE_MODEL_API_KEY"] },
    models: { scripted: {} },
  };
  const settings = {
    enabled_providers: ["scripted"],
    model,
    small_model: model,
    autoupdate: false,
    share: "disabled",
    permission: { edit: "allow", bash: "allow", webfetch: "allow", external_directory: "allow" },
    provider: { scripted: provider },
  };
  return async (round) => {
    await run(join(import.meta.dirname, "by-hand.sh"), {
      env: {
        PATH: process.env["PATH"],
        REPOSITORY_URL: repositoryUrl,
        API_URL: `${world.forge.apiUrl}/repos/bench/repository/pulls`,
        FORGE_TOKEN: world.forge.token,
        BRANCH: `by-hand-${round}`,
        PROMPT: prompt,
        HARNESS: join(import.meta.dirname, "../node_modules/.bin/opencode"),
        OPENCODE_CONFIG_CONTENT: JSON.stringify(settings),
        OPENCODE_DISABLE_MODELS_FETCH: "1",
        OPENCODE_DISABLE_AUTOUPDATE: "1",
        OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
      },
    });
  };
}

async function compare(ways: Record<string, Work>): Promise<string> {
  const took: Record<string, number[]> = {};
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, work] of Object.entries(ways)) {
      const started = performance.now();
      await work(round);
      (took[name] ??= []).push(performance.now() - started);
    }
  }
  const rows = Object.entries(took).map(([name, all]) => {
    const sorted = all.toSorted((a, b) => a - b);
    return [name, ...[0, 0.5, 1].map((share) => (quantile(sorted, share) / 1_000).toFixed(2))];
  });
  return table([`${rounds} rounds`, "fastest s", "p50 s", "slowest s"], rows);
}

const world = await createWorld(script, { embedded: true });
try {
  const repository = await world.forge.createRepository("bench", "repository", { "README.md": "# Bench\n" });
  const { offstage, client } = await startInProcess(world);
  try {
    const offstageWay: Work = async () => {
      const session = await client.session.create({ prompt, repositories: [repository.url] });
      const done = await untilOver(client, session.id);
      if (done.pullRequests.length === 0) throw new Error(done.failure?.reason ?? `the session is ${done.status}`);
    };
    process.stdout.write(await compare({ "by hand": byHand(world, repository.url), Offstage: offstageWay }));
  } finally {
    await offstage.stop();
  }
} finally {
  await world.close();
}
