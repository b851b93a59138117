import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";

/** What a hostile agent can reach: its two outputs, and the model gateway. */
export interface Harm {
  /** To stdout, as it is. */
  write(bytes: Buffer | string): Promise<void>;
  /** To stderr. */
  log(bytes: Buffer | string): Promise<void>;
  /** One update of the protocol. */
  update(update: object): Promise<void>;
  /** The body of a request to a model; settles when it was answered, however. */
  model(body: Buffer): Promise<void>;
  /** So many connections to the gateway, each of which sends these bytes again and again, for a second. */
  flood(connections: number, bytes: Buffer): Promise<void>;
  /** So many connections to the gateway, opened and then ended at once, for a second. */
  open(connections: number): Promise<void>;
}

export interface Attack {
  /** MiB of the one body, line or file that it is about; its memory use is given in proportion to it. */
  readonly mebibytes: number;
  readonly act: (harm: Harm) => Promise<void>;
}

const mebibyte = 1024 * 1024;
const head = '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":';
const tool = `${head}{"sessionUpdate":"tool_call","toolCallId":"t","title":"x","rawInput":`;

/** @param unit repeated to so many MiB, between what opens and what closes the text */
function filled(mebibytes: number, unit: string, open = "", close = ""): Buffer {
  const length = mebibytes * mebibyte - open.length - close.length;
  return Buffer.concat([Buffer.from(open), Buffer.alloc(length, unit), Buffer.from(close)]);
}

/** So many MiB of brackets, half of them closing. */
function deep(mebibytes: number, open = "", close = ""): Buffer {
  const half = (mebibytes * mebibyte) / 2;
  return Buffer.concat([Buffer.from(open), Buffer.alloc(half, "["), Buffer.alloc(half, "]"), Buffer.from(close)]);
}

function keys(count: number, name: (index: number) => string): string {
  return `{${Array.from({ length: count }, (_, index) => `"${name(index)}":1`).join(",")}}`;
}

const body = (mebibytes: number, make: () => Buffer): Attack => ({ mebibytes, act: (harm) => harm.model(make()) });
const line = (mebibytes: number, make: () => Buffer): Attack => ({
  mebibytes,
  act: async (harm) => {
    await harm.write(make());
    await harm.write("\n");
  },
});
const lines = (mebibytes: number, one: string, count: number): Attack => ({
  mebibytes,
  act: (harm) => harm.write(`${one}\n`.repeat(count)),
});

const flood = (connections: number, bytes: string): Attack => ({
  mebibytes: 0,
  act: (harm) => harm.flood(connections, Buffer.from(bytes)),
});

const text = (content: string): string =>
  `${head}{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":${JSON.stringify(content)}}}}}`;
const toolOutput = (content: string): string =>
  `${head}{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"in_progress","content":[{"type":"content","content":{"type":"text","text":${content}}}]}}}`;

/** Bodies for the gateway begin with `gateway-`, floods of requests and connections with `http-`; the others are for the harness's driver and what comes after the turn. */
export const attacks: Readonly<Record<string, Attack>> = {
  /** None: what agents that mean well do to others by being there. */
  well: {
    mebibytes: 0,
    act: async (harm) => {
      await harm.update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: "A word. " } });
      await pause(200);
    },
  },
  "gateway-deep": body(62, () => deep(62, '{"model":"m","a":', "}")),
  "gateway-deep-first": body(62, () => deep(62)),
  "gateway-many-arrays": body(62, () => filled(62, "[],", '{"model":"m","a":[', "0]}")),
  "gateway-long-model": body(50, () => filled(50, "claude-", '{"model":"', '"}')),
  "gateway-model-last": body(62, () => filled(62, '"aaaaaaaa",', '{"a":[', '0],"model":"m"}')),
  "gateway-escapes": body(62, () => filled(62, "\\u0041", '{"model":"m","a":"', '"}')),
  "gateway-64-levels": body(62, () => filled(62, `${"[".repeat(64)}${"]".repeat(64)},`, '{"model":"m","a":[', "0]}")),
  "gateway-same-key": body(62, () => filled(62, '"model":"x",', "{", '"model":"m"}')),
  "gateway-many-keys": body(8, () => Buffer.from(`{"model":"m","a":${keys(500_000, (index) => `k${index}`)}}`)),
  "http-pipelined": flood(200, "GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(1_000)),
  "http-pipelined-hosts": flood(200, "GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n".repeat(1_000)),
  "http-pipelined-models": flood(
    200,
    "POST /model/compatible/v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}".repeat(1_000),
  ),
  "http-headers": flood(100, `GET / HTTP/1.1\r\nHost: x\r\n${"a: b\r\n".repeat(1_500)}\r\n`.repeat(10)),
  "http-chunks": flood(
    100,
    `POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n${"1\r\na\r\n".repeat(10_000)}0\r\n\r\n`,
  ),
  "http-tunnels": flood(200, "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test\r\n\r\n"),
  "http-connections": { mebibytes: 0, act: (harm) => harm.open(900) },
  "line-deep": line(31, () => deep(31)),
  "line-deep-input": line(31, () => deep(31, tool, "}}}")),
  "line-wide": line(31, () => filled(31, "{},", `${tool}[`, "0]}}}")),
  "line-without-end": { mebibytes: 31, act: (harm) => harm.write(Buffer.alloc(31 * mebibyte, "x")) },
  "line-deep-allowed": line(4, () => deep(3.9, tool, "}}}")),
  "line-wide-allowed": lines(1, `${tool}[${"{},".repeat(90_000)}0]}}}`, 20),
  "line-64-levels": lines(1, `${tool}[${`${"[".repeat(64)}${"]".repeat(64)},`.repeat(1_500)}0]}}}`, 20),
  "line-many-keys": lines(1, `${tool}${keys(90_000, (index) => `k${index}`)}}}}`, 10),
  "line-same-key": lines(1, `${tool}${keys(90_000, () => "k")}}}}`, 10),
  "line-big-text": lines(3.5, text("word ".repeat(700_000)), 4),
  "line-escapes": lines(3.5, toolOutput(`"${"\\u0001".repeat(600_000)}"`), 4),
  "line-base64": lines(3.5, toolOutput(JSON.stringify(`${"aGVsbG8h".repeat(9)}\n`.repeat(48_000))), 4),
  "flood-tiny-text": lines(1, text("x"), 10_000),
  "flood-tools": {
    mebibytes: 1,
    act: async (harm) => {
      for (let call = 0; call < 1_000; call += 1)
        await harm.update({
          sessionUpdate: "tool_call",
          toolCallId: `t${Math.random()}`,
          title: "x",
          status: "completed",
        });
    },
  },
  "flood-permissions": {
    mebibytes: 1,
    act: (harm) =>
      harm.write(
        `{"jsonrpc":"2.0","id":"p","method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t"},"options":[]}}\n`.repeat(
          5_000,
        ),
      ),
  },
  "flood-no-json": lines(1, "this is no JSON", 50_000),
  "flood-empty-objects": lines(1, "{}", 300_000),
  "flood-line-feeds": lines(1, "", 1_000_000),
  "flood-tool-output": lines(1, toolOutput(JSON.stringify("line of output\n".repeat(60_000))), 8),
  "flood-plans": lines(
    1,
    `${head}{"sessionUpdate":"plan","entries":[${`{"content":"${"x".repeat(100)}","priority":"high","status":"pending"},`.repeat(6_000)}{"content":"x","priority":"high","status":"pending"}]}}}`,
    5,
  ),
  "flood-stderr": {
    mebibytes: 1,
    act: (harm) => harm.log(Buffer.alloc(mebibyte, 'AI_APICallError: \\\\"message":"\n')),
  },
  "diff-long-lines": { mebibytes: 60, act: () => commit((index) => Buffer.alloc(20 * mebibyte, 97 + index)) },
  "diff-many-lines": { mebibytes: 60, act: () => commit((index) => Buffer.alloc(20 * mebibyte, `${index}\n`)) },
  "diff-control-characters": {
    mebibytes: 60,
    act: () => commit((index) => Buffer.alloc(20 * mebibyte, `\u0001\u001b${index}`)),
  },
  "commit-long-subject": {
    mebibytes: 30,
    act: () => {
      writeFileSync("/tmp/subject", Buffer.alloc(30 * mebibyte, "subject "));
      execFileSync("sh", [
        "-c",
        "git init -q . 2>/dev/null; git -c user.name=a -c user.email=a@b commit -q --allow-empty -F /tmp/subject",
      ]);
      return Promise.resolve();
    },
  },
};

/** Files of the clone, which are committed when the turn is over. */
function commit(content: (index: number) => Buffer): Promise<void> {
  for (const index of [0, 1, 2]) writeFileSync(`big-${index}.txt`, content(index));
  return Promise.resolve();
}
