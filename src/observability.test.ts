import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";

const observability = JSON.stringify(join(import.meta.dirname, "observability.ts"));

/** The output of a process that runs these statements. */
function logged(statements: string): string {
  const source = `import { createLogger, maskErrors } from ${observability};
    const hide = (secret) => (text) => text.replaceAll(secret, "[secret]");
    ${statements}`;
  return execFileSync("sh", ["-c", `"$0" --input-type=module -e "$1" 2>&1`, process.execPath, source], {
    encoding: "utf8",
  });
}

test("no known secret is in a line, at any position", () => {
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

test("fields that a library adds to an error are left out, its code is logged", () => {
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

test("lines for people have the time, level, message, fields and the error, and no character that rules a terminal", () => {
  const text = logged(`createLogger("info", hide("server-secret"), "text").warn(
    { sessionId: "one", of: "\\u001b[2Jserver-secret", err: Object.assign(new Error("broken\\nhere\\u202e"), { code: "E1" }) }, "a run\\u001b]0;x\\u0007 failed");`);
  const [first = "", ...below] = text.trimEnd().split("\n");
  expect(first).toMatch(
    /^\d\d:\d\d:\d\d WARN {2}a run\\u\{1b\}\]0;x\\u\{7\} failed sessionId=one of=\\u\{1b\}\[2J\[secret\] code=E1$/u,
  );
  expect(below.slice(0, 3)).toEqual([
    "    Error: broken",
    String.raw`    here\u{202e}`,
    expect.stringMatching(/^ {8}at /u),
  ]);
  expect(text).not.toContain("server-secret");
});

test("lines are JSON unless stderr is a terminal or text is wanted", () => {
  expect(JSON.parse(logged(`createLogger("info").info("x");`))).toMatchObject({ msg: "x" });
  const onTerminal = `process.stderr.isTTY = true; createLogger("info", (line) => line, FORMAT).info("x");`;
  expect(logged(onTerminal.replace("FORMAT", '"auto"'))).toMatch(/^\d\d:\d\d:\d\d .*INFO.* x$/mu);
  expect(JSON.parse(logged(onTerminal.replace("FORMAT", '"json"')))).toMatchObject({ msg: "x" });
});
