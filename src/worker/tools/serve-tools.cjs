/*
 * Offers a harness inside the sandbox the tools of its session, by the Model Context Protocol on stdin and stdout, a message a line
 * (https://modelcontextprotocol.io/specification/2025-06-18). What it is asked, it asks the session's gateway, which knows whose tools
 * they are.
 * Environment: OFFSTAGE_TOOLS_SOCKET, the gateway's unix socket; OFFSTAGE_TOOLS_TOKEN, the session's token there.
 */
const http = require("node:http");
const readline = require("node:readline");

const socketPath = process.env.OFFSTAGE_TOOLS_SOCKET;
const token = process.env.OFFSTAGE_TOOLS_TOKEN;
const versions = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/** Asks the gateway. @returns the parsed answer */
function ask(method, path, body) {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const request = http.request({ socketPath, method, path, headers, agent: false }, (response) => {
      const pieces = [];
      response.on("data", (piece) => pieces.push(piece));
      response.on("error", reject);
      response.on("end", () => {
        const text = Buffer.concat(pieces).toString("utf8");
        if (response.statusCode !== 200)
          return reject(new Error(`the gateway answered ${response.statusCode}: ${text}`));
        return resolve(JSON.parse(text));
      });
    });
    request.on("error", reject);
    request.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

async function answer(method, params) {
  switch (method) {
    case "initialize": {
      const asked = params.protocolVersion;
      return {
        protocolVersion: versions.includes(asked) ? asked : versions[1],
        capabilities: { tools: {} },
        serverInfo: { name: "offstage", version: "1" },
      };
    }
    case "ping":
      return {};
    case "tools/list":
      return ask("GET", "/tools");
    case "tools/call": {
      const { text, isError } = await ask("POST", "/tools/call", { name: params.name, arguments: params.arguments });
      return { content: [{ type: "text", text }], isError };
    }
    default:
      // JSON-RPC 2.0, section 5.1.
      throw Object.assign(new Error(`there is no method ${method}`), { rpcCode: -32601 });
  }
}

const say = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  if (line.trim() === "") return;
  let message;
  try {
    message = JSON.parse(line);
  } catch {
    say({ id: null, error: { code: -32700, message: "Parse error" } });
    return;
  }
  // JSON-RPC 2.0, sections 4 and 5.1; there are no batches since version 2025-06-18 of the protocol.
  if (message === null || typeof message !== "object" || Array.isArray(message)) {
    say({ id: null, error: { code: -32600, message: "Invalid Request" } });
    return;
  }
  const { id, method, params } = message;
  // A notification, or an answer: nothing to say to it.
  if (id === undefined || typeof method !== "string") return;
  answer(method, params ?? {}).then(
    (result) => say({ id, result }),
    (error) => say({ id, error: { code: error.rpcCode ?? -32603, message: error.message } }),
  );
});
