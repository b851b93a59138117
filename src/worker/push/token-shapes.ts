import { lintSource } from "@secretlint/core";
import { secretLintProfiler } from "@secretlint/profiler";
import { rules } from "@secretlint/secretlint-rule-preset-recommend";

/** What looks like a secret, by the rule that says so. */
export interface TokenShape {
  /** For example `github`, `aws`, `privatekey`. */
  readonly rule: string;
  /** Where in the text it stands, in characters. */
  readonly start: number;
  readonly end: number;
}

const prefix = "@secretlint/secretlint-rule-";
/**
 * Rules of the set that are not asked:
 * - `filter-comments` obeys comments in the text, which an agent may write
 * - `gcp` opens files of the server by the name that it is given; the key in a service account's JSON is found by `privatekey`
 * - the others take any address with a password in it, as tests, documentation and Compose files have them
 */
const leftOut = new Set(["filter-comments", "gcp", "basicauth", "database-connection-string"]);

const config = {
  rules: rules
    .filter(({ meta }) => !leftOut.has(meta.id.slice(prefix.length)))
    .map((rule) => ({
      id: rule.meta.id,
      rule,
      // Keys' ids come with keys; an account's number is no secret.
      ...(rule.meta.id === `${prefix}aws` && {
        options: { enableIDScanRule: true },
        allowMessageIds: ["AWSAccountID"],
      }),
    })),
};

/** Every rule and text would leave its marks in the process. */
secretLintProfiler.setEnabled(false);

/**
 * What looks like a token or a private key, by secretlint's recommended rules. Its time depends on the text, which an agent
 * chose: to be called where it can be ended.
 */
export async function findTokenShapes(content: string): Promise<TokenShape[]> {
  const { messages } = await lintSource({
    source: { filePath: "text", ext: "", contentType: "text", content },
    options: { config, noPhysicFilePath: true },
  });
  // A mark of byte order at the beginning is not counted.
  const offset = content.startsWith("\ufeff") ? 1 : 0;
  return messages.map(({ ruleId, range: [start, end] }) => ({
    rule: ruleId.slice(prefix.length),
    start: start + offset,
    end: end + offset,
  }));
}
