import { parseArgs } from "node:util";
import { pullRequestFields } from "../src/domain/repositories/pull-request-settings.ts";
import { acceptForge } from "./forge-acceptance.ts";
import type { Expectation, Subject } from "./forge-trial.ts";
import { acceptLoop, type LoopSubject } from "./loop-acceptance.ts";

/**
 * Tries a real forge as Offstage uses it, in a repository for trials:
 *
 *   FORGE_TOKEN=… npm run accept:forge -- --kind azure https://dev.azure.com/acme/shop/_git/trials
 *   FORGE_TOKEN=… npm run accept:forge -- --kind github https://github.com/acme/trials
 *   FORGE_TOKEN=… npm run accept:forge -- --kind gitlab https://gitlab.com/acme/trials
 *   FORGE_TOKEN=… npm run accept:forge -- --kind gitea https://git.example.com/acme/trials
 *   FORGE_TOKEN=… npm run accept:forge -- --kind bitbucket --username me@acme.example https://bitbucket.org/acme/trials
 *   FORGE_TOKEN=… npm run accept:forge -- --kind bitbucketDataCenter https://bitbucket.example.com/scm/acme/trials.git
 *
 * With `--loop` it tries the feedback loop too, of a running Offstage to which the forge delivers; with the token of a second person, a
 * review as well:
 *
 *   FORGE_TOKEN=… FORGE_REVIEWER_TOKEN=… OFFSTAGE_API_KEY=… npm run accept:forge -- --kind github --loop https://offstage.example.com https://github.com/acme/trials
 *
 * Ends with 0 if every expectation is met, 1 if one is not, 2 if it can't begin.
 */
const usage =
  "usage: FORGE_TOKEN=… npm run accept:forge -- --kind azure|github|gitlab|gitea|bitbucket|bitbucketDataCenter [--username <name>] [--web-url <url>] [--api-url <url>] [--lag <seconds>] [--label <name>]… [--reviewer <name>]… [--assignee <name>]… [--loop <URL of Offstage, whose key is in OFFSTAGE_API_KEY> [--mention <word>] [--turn <seconds>] [--reviewer-username <name>]] <repository URL>";

/** The API's address of each kind; Azure DevOps has it beside its repositories. */
const apis = {
  azure: "",
  github: "/api/v3",
  gitlab: "/api/v4",
  gitea: "/api/v1",
  bitbucket: "/2.0",
  bitbucketDataCenter: "/rest/api/latest",
} as const;
/** Public servers that have it at another host. */
const publicApis: Readonly<Record<string, string>> = {
  "https://github.com": "https://api.github.com",
  "https://bitbucket.org": "https://api.bitbucket.org/2.0",
};

process.exitCode = await main();

async function main(): Promise<number> {
  try {
    const { subject, offstage, reviewer } = readSubject();
    const isForgeMet = await acceptForge(subject, tell);
    const isMet =
      offstage === null ? isForgeMet : (await acceptLoop({ ...subject, offstage, reviewer }, tell)) && isForgeMet;
    console.log(isMet ? "Every expectation is met." : "An expectation is not met: see above.");
    return isMet ? 0 : 1;
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    return 2;
  }
}

function tell({ name, problem, ms }: Expectation): void {
  const mark = problem === null ? "ok  " : "FAIL";
  console.log(`${mark} ${name} (${ms} ms)${problem === null ? "" : `\n     ${problem.trim()}`}`);
}

/** @throws Error with the usage if something is missing */
function readSubject(): Pick<LoopSubject, "reviewer"> & {
  readonly subject: Subject;
  readonly offstage: LoopSubject["offstage"] | null;
} {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      kind: { type: "string" },
      username: { type: "string" },
      "web-url": { type: "string" },
      "api-url": { type: "string" },
      lag: { type: "string", default: "30" },
      label: { type: "string", multiple: true },
      reviewer: { type: "string", multiple: true },
      assignee: { type: "string", multiple: true },
      loop: { type: "string" },
      mention: { type: "string", default: "offstage" },
      turn: { type: "string", default: "900" },
      "reviewer-username": { type: "string" },
    },
  });
  const { kind, lag, username } = values;
  const [repositoryUrl] = positionals;
  const token = process.env["FORGE_TOKEN"] ?? "";
  if (!isKind(kind) || repositoryUrl === undefined || token === "") throw new Error(usage);
  const webUrl = values["web-url"] ?? new URL(repositoryUrl).origin;
  const apiUrl = values["api-url"] ?? apiOf(kind, webUrl);
  const isNamed = kind === "bitbucket" || kind === "bitbucketDataCenter";
  const named = (name: string | undefined) => (isNamed && name !== undefined ? { username: name } : {});
  const given = { labels: values.label, reviewers: values.reviewer, assignees: values.assignee };
  const additions = pullRequestFields.flatMap((field) => {
    const names = given[field];
    return names === undefined ? [] : [{ field, names }];
  });
  const settings = { kind, webUrl, apiUrl, token, ...named(username) };
  const subject = { settings, repositoryUrl, lagMs: Number(lag) * 1_000, additions };
  if (values.loop === undefined) return { subject, offstage: null, reviewer: null };
  const key = process.env["OFFSTAGE_API_KEY"] ?? "";
  if (key === "") throw new Error(usage);
  const { mention, turn } = values;
  const url = values.loop.replace(/\/+$/u, "");
  const reviewerToken = process.env["FORGE_REVIEWER_TOKEN"];
  const reviewer =
    reviewerToken === undefined
      ? null
      : { kind, webUrl, apiUrl, token: reviewerToken, ...named(values["reviewer-username"]) };
  return { subject, offstage: { url, key, mention, turnMs: Number(turn) * 1_000 }, reviewer };
}

function isKind(kind: string | undefined): kind is keyof typeof apis {
  return kind !== undefined && Object.hasOwn(apis, kind);
}

function apiOf(kind: keyof typeof apis, webUrl: string): string {
  return publicApis[webUrl] ?? `${webUrl}${apis[kind]}`;
}
