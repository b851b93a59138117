import { request } from "node:http";

/**
 * A hostile agent as a process of its own: sends one kind of body to a gateway's socket, several at once, and prints the
 * statuses of the answers.
 * Arguments: socket, token, kind, megabytes, how many.
 */
const [, , socketPath = "", token = "", kind = "deep", megabytes = "30", times = "4"] = process.argv;
const bytes = Number(megabytes) * 1024 * 1024;
const fill = (piece: string): string => piece.repeat(Math.floor(bytes / Buffer.byteLength(piece)));

const makers: Record<string, () => string> = {
  deep: () => "[".repeat(bytes / 2) + "]".repeat(bytes / 2),
  deepInside: () => `{"model":"m","metadata":${"[".repeat(bytes / 2)}${"]".repeat(bytes / 2)}}`,
  wide: () => `{"model":"m","metadata":[${fill("[],")}0]}`,
  wideMessages: () => `{"model":"m","messages":[${fill("{},")}{}]}`,
  objects: () => `{"model":"m","metadata":[${fill('{"a":{}},')}0]}`,
  keys: () => `{"model":"m","metadata":{${fill('"k":0,')}"a":1}}`,
  numbers: () => `{"model":"m","metadata":[${fill("1e9,")}0]}`,
  escapes: () => `{"model":"m","user":"${fill("\\u0041")}"}`,
  unicode: () => `{"model":"m","user":"${fill("\u{1f600}")}"}`,
  name: () => `{"model":"${fill("x")}"}`,
  key: () => `{"${fill("x")}":1,"model":"m"}`,
};
const body = Buffer.from((makers[kind] ?? (() => kind))());

const statuses = await Promise.all(
  Array.from(
    { length: Number(times) },
    () =>
      new Promise<number>((resolve) => {
        const headers = { "x-api-key": token, "content-type": "application/json", "content-length": body.length };
        const sent = request(
          { socketPath, path: "/model/anthropic/v1/messages", method: "POST", headers },
          (answer) => {
            answer.resume();
            resolve(answer.statusCode ?? 0);
          },
        );
        sent.once("error", () => resolve(0));
        sent.end(body);
      }),
  ),
);
process.stdout.write(JSON.stringify(statuses));
process.exit(0);
