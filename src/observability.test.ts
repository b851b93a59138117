import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";

const observability = JSON.stringify(join(import.meta.dirname, "observability.ts"));

/** What a process prints that logs so. */
function logged(statements: string): string {
  const source = `import { createLogger, maskErrors } from ${observability};
    const hide = (secret) => (text) => text.replaceAll(secret, "[secret]");
    ${statements}`;
  return execFileSync("sh", ["-c", `"$0" --input-type=module -e "$1" 2>&1`, process.execPath, source], {
    encoding: "utf8",
  });
}

test("no known secret is in a line, wherever it stands", () => {
  const line = logged(
    `createLogger("info", hide("server-secret")).info({ url: "/x?server-secret", err: new Error("server-secret") }, "server-secret");`,
  );
  expect(line).not.toContain("server-secret");
  expect(JSON.parse(line)).toMatchObject({ url: "/x?[secret]", err: { message: "[secret]" }, msg: "[secret]" });
});

test("an error of a run holds no secret of its session, in its cause either", () => {
  const line = logged(`const cause = new Error("git said session-secret");
    maskErrors(createLogger("info"), hide("session-secret")).warn({ err: new Error("failed with session-secret", { cause }) }, "a run failed");`);
  expect(line).not.toContain("session-secret");
  expect(JSON.parse(line)).toMatchObject({
    err: { message: expect.stringContaining("failed with [secret]") as string },
  });
});

test("headers that carry a key are left out", () => {
  const line = logged(
    `createLogger("info").info({ headers: { authorization: "Bearer key-to-look-for", cookie: "key-to-look-for" } }, "x");`,
  );
  expect(line).not.toContain("key-to-look-for");
});

test("what a library hangs onto an error is left out, its code is told", () => {
  const line = logged(
    `const connection = { password: "password-to-look-for" };
    connection.pool = { connection };
    const error = Object.assign(new Error("the connection broke"), { code: "57P01", client: connection });
    maskErrors(createLogger("info"), hide("other")).warn({ err: new AggregateError([error], "all broke") }, "x");
    createLogger("info").warn({ err: error }, "x");
    createLogger("info").warn({ err: AbortSignal.abort().reason }, "x");`,
  );
  expect(line).not.toContain("password-to-look-for");
  const [all, one, aborted] = line
    .trim()
    .split("\n")
    .map((each) => JSON.parse(each) as Record<string, unknown>);
  expect(all).toMatchObject({ err: { aggregateErrors: [{ code: "57P01", message: "the connection broke" }] } });
  expect(one).toMatchObject({ err: { type: "Error", code: "57P01", message: "the connection broke" } });
  expect(Object.keys(aborted?.["err"] ?? {})).toEqual(["type", "message", "stack"]);
});
