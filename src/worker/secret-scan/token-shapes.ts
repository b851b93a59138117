import { lintSource } from "@secretlint/core";
import { secretLintProfiler } from "@secretlint/profiler";
import { rules } from "@secretlint/secretlint-rule-preset-recommend";

/** A match of a rule: something that looks like a secret. */
export interface TokenShape {
  /** Name of the rule, for example `github`, `aws`, `privatekey`. */
  readonly rule: string;
  /** Start in the text, in characters. */
  readonly start: number;
  /** End in the text, exclusive. */
  readonly end: number;
}

const prefix = "@secretlint/secretlint-rule-";
/**
 * Rules of secretlint's recommended set that are not used:
 * - `filter-comments` obeys comments in the text, which an agent may write
 * - `gcp` opens a file on the server by the name that it is given; `privatekey` finds the key in a service account's JSON
 * - the others match any URL with a password in it, which tests, documentation and Compose files contain
 */
const leftOut = new Set(["filter-comments", "gcp", "basicauth", "database-connection-string"]);

const config = {
  rules: rules
    .filter(({ meta }) => !leftOut.has(meta.id.slice(prefix.length)))
    .map((rule) => ({
      id: rule.meta.id,
      rule,
      // AWS key ids come with keys; an account number is no secret.
      ...(rule.meta.id === `${prefix}aws` && {
        options: { enableIDScanRule: true },
        allowMessageIds: ["AWSAccountID"],
      }),
    })),
};

/** The profiler would keep marks of every rule and text in the process. */
secretLintProfiler.setEnabled(false);

/**
 * Finds what looks like a token or a private key, by secretlint's recommended rules. The time depends on the text, which an
 * agent chose: call it only in a thread that can be ended.
 */
export async function findTokenShapes(content: string): Promise<TokenShape[]> {
  const { messages } = await lintSource({
    source: { filePath: "text", ext: "", contentType: "text", content },
    options: { config, noPhysicFilePath: true },
  });
  // secretlint does not count a byte order mark at the beginning.
  const offset = content.startsWith("\ufeff") ? 1 : 0;
  return messages.map(({ ruleId, range: [start, end] }) => ({
    rule: ruleId.slice(prefix.length),
    start: start + offset,
    end: end + offset,
  }));
}
