import { request, type Agent } from "node:http";

/** Posts a body, and gives the answer's. */
export type Post = (url: string, body: object | string, headers?: Record<string, string>) => Promise<string>;

/** Makes what posts over an agent's connections. It rejects any answer that is no success. */
export function poster(agent: Agent): Post {
  return (url, body, more = {}) =>
    new Promise((resolve, reject) => {
      const text = typeof body === "string" ? body : JSON.stringify(body);
      const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(text), ...more };
      const sent = request(url, { method: "POST", agent, headers }, (response) => {
        const parts: Buffer[] = [];
        response.on("data", (part: Buffer) => parts.push(part));
        response.once("error", reject);
        response.once("end", () => {
          const answer = Buffer.concat(parts).toString();
          if ((response.statusCode ?? 500) < 300) resolve(answer);
          else reject(new Error(`POST ${url} answered ${response.statusCode}: ${answer.slice(0, 200)}`));
        });
      });
      sent.once("error", reject);
      sent.end(text);
    });
}
