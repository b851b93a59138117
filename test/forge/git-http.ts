import { spawn } from "node:child_process";
import type { IncomingMessage, ServerResponse } from "node:http";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { createGunzip } from "node:zlib";

/**
 * Real git over HTTP: hands a request to `git http-backend` (git-http-backend(1)) as a CGI program.
 * @param pauseMs before each piece of an answer that follows the first
 */
export async function serveGit(
  { root, pauseMs }: { readonly root: string; readonly pauseMs: number },
  path: string,
  query: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const child = spawn("git", ["http-backend"], {
    env: {
      PATH: process.env["PATH"],
      GIT_PROJECT_ROOT: root,
      GIT_HTTP_EXPORT_ALL: "1",
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_CONFIG_GLOBAL: "/dev/null",
      PATH_INFO: path,
      QUERY_STRING: query,
      REQUEST_METHOD: request.method,
      CONTENT_TYPE: request.headers["content-type"] ?? "",
      REMOTE_USER: "tester",
      GIT_PROTOCOL: request.headers["git-protocol"]?.toString() ?? "",
    },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const body = request.headers["content-encoding"] === "gzip" ? request.pipe(createGunzip()) : request;
  body.pipe(child.stdin);
  // git may have answered before it read all that was sent.
  child.stdin.on("error", () => undefined);
  let head = Buffer.alloc(0);
  let headersSent = false;
  for await (const chunk of child.stdout as AsyncIterable<Buffer>) {
    if (headersSent) {
      if (pauseMs > 0) await pause(pauseMs);
      // A repository may have gigabytes. A client that went away drains nothing.
      if (!response.write(chunk) && !response.destroyed) await drained(response);
      continue;
    }
    head = Buffer.concat([head, chunk]);
    const end = head.indexOf("\r\n\r\n");
    if (end === -1) continue;
    sendHeaders(head.subarray(0, end).toString(), response);
    headersSent = true;
    response.write(head.subarray(end + 4));
  }
  response.end();
}

/** Waits until more may be written, or the client went away. */
async function drained(response: ServerResponse): Promise<void> {
  const over = new AbortController();
  const until = (event: string): Promise<unknown> => once(response, event, { signal: over.signal });
  await Promise.race([until("drain"), until("close")]);
  over.abort();
}

function sendHeaders(head: string, response: ServerResponse): void {
  for (const line of head.split("\r\n")) {
    const colon = line.indexOf(":");
    const name = line.slice(0, colon);
    const value = line.slice(colon + 1).trim();
    if (name.toLowerCase() === "status") response.statusCode = Number(value.slice(0, 3));
    else response.setHeader(name, value);
  }
}
