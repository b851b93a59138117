import { parseArgs } from "node:util";
import { acceptForge, type Subject } from "./forge-acceptance.ts";

/**
 * Tries a real forge as Offstage uses it, in a repository for trials:
 *
 *   FORGE_TOKEN=… npm run accept:forge -- --kind github https://github.com/acme/trials
 *   FORGE_TOKEN=… npm run accept:forge -- --kind gitlab https://gitlab.com/acme/trials
 *   FORGE_TOKEN=… npm run accept:forge -- --kind gitea https://git.example.com/acme/trials
 *
 * Ends with 0 if every expectation is met, 1 if one is not, 2 if it can't begin.
 */
const usage =
  "usage: FORGE_TOKEN=… npm run accept:forge -- --kind github|gitlab|gitea [--web-url <url>] [--api-url <url>] [--lag <seconds>] <repository URL>";

/** The version of each kind's API, as its path names it. */
const versions = { github: "v3", gitlab: "v4", gitea: "v1" } as const;

process.exitCode = await main();

async function main(): Promise<number> {
  try {
    const subject = readSubject();
    const isMet = await acceptForge(subject, ({ name, problem, ms }) => {
      const mark = problem === null ? "ok  " : "FAIL";
      console.log(`${mark} ${name} (${ms} ms)${problem === null ? "" : `\n     ${problem.trim()}`}`);
    });
    console.log(isMet ? "Every expectation is met." : "An expectation is not met: see above.");
    return isMet ? 0 : 1;
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    return 2;
  }
}

/** @throws Error with the usage if something is missing */
function readSubject(): Subject {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      kind: { type: "string" },
      "web-url": { type: "string" },
      "api-url": { type: "string" },
      lag: { type: "string", default: "30" },
    },
  });
  const { kind, lag } = values;
  const [repositoryUrl] = positionals;
  const token = process.env["FORGE_TOKEN"] ?? "";
  if (!isKind(kind) || repositoryUrl === undefined || token === "") throw new Error(usage);
  const webUrl = values["web-url"] ?? new URL(repositoryUrl).origin;
  const apiUrl = values["api-url"] ?? apiOf(kind, webUrl);
  return { settings: { kind, webUrl, apiUrl, token }, repositoryUrl, lagMs: Number(lag) * 1_000 };
}

function isKind(kind: string | undefined): kind is keyof typeof versions {
  return kind !== undefined && Object.hasOwn(versions, kind);
}

function apiOf(kind: keyof typeof versions, webUrl: string): string {
  return webUrl === "https://github.com" ? "https://api.github.com" : `${webUrl}/api/${versions[kind]}`;
}
