import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, it } from "vitest";
import { createClient } from "./client.ts";

const closing: (() => void)[] = [];

afterEach(() => {
  for (const close of closing.splice(0)) close();
});

async function serving(answer: (response: ServerResponse) => void): Promise<string> {
  const server = createServer((_request, response) => {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    answer(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const event = (seq: number): string =>
  JSON.stringify({
    seq,
    createdAt: "2026-11-22T12:00:00.000Z",
    type: "notice",
    data: { level: "info", text: `number ${seq}` },
  });

it.each([
  ["line feeds", "\n"],
  ["carriage returns and line feeds", "\r\n"],
  ["carriage returns", "\r"],
])("an event stream is read whose lines end in %s, in any chunks", async (_name, end) => {
  const first = event(1);
  const second = event(2);
  const half = second.indexOf('"type"');
  const lines = [
    ": a comment",
    `data: ${first}`,
    "",
    // One message in two lines of data, which are joined by a line feed.
    `data:${second.slice(0, half)}`,
    `data: ${second.slice(half)}`,
    "",
    "event: end",
    "data: {}",
    "",
    // A carriage return ends a line for sure only once it is known what follows.
    ": another comment",
    "",
  ].join(end);
  const url = await serving((response) => {
    const bytes = Buffer.from(lines);
    for (let at = 0; at < bytes.length; at += 7) response.write(bytes.subarray(at, at + 7));
    response.end();
  });
  const heard: number[] = [];
  for await (const { seq } of createClient({ baseUrl: url, key: "k" }).streamEvents("an-id", {})) heard.push(seq);
  expect(heard).toEqual([1, 2]);
});

it("no character of an event's text makes the client lose the event, in any chunks", async () => {
  // Characters that some readers of lines treat as line ends or drop, and multi-byte ones. Escaped by JSON or not, each
  // must arrive.
  const texts = [
    "\n",
    "\r",
    "\v",
    "\f",
    "\0",
    "\u001C",
    "\u0085",
    "\u200B",
    "\u2028",
    "\u2029",
    "\uFEFF",
    "\uFFFD",
    "\u{1F600}",
    "\uD800",
  ].map((character) => `${character}one${character}two${character}`);
  const url = await serving((response) => {
    const messages = texts.map((text, index) => {
      const payload = {
        seq: index + 1,
        createdAt: "2026-11-22T12:00:00.000Z",
        type: "notice",
        data: { level: "info", text },
      };
      return `id: ${index + 1}\ndata: ${JSON.stringify(payload)}\n\n`;
    });
    for (const byte of Buffer.from(`${messages.join("")}event: end\ndata: {}\n\n`)) response.write(Buffer.of(byte));
    response.end();
  });
  const heard: string[] = [];
  for await (const { type, data } of createClient({ baseUrl: url, key: "k" }).streamEvents("an-id", {}))
    if (type === "notice") heard.push(data.text);
  expect(heard).toEqual(texts);
});

it("an event that only a newer server has is skipped, and the others are emitted", async () => {
  const url = await serving((response) => {
    const unknown = JSON.stringify({ seq: 2, createdAt: "2026-11-22T12:00:00.000Z", type: "session.dreamt", data: {} });
    for (const data of [event(1), unknown, event(3)]) response.write(`data: ${data}\n\n`);
    response.end("event: end\ndata: {}\n\n");
  });
  const heard: number[] = [];
  for await (const { seq } of createClient({ baseUrl: url, key: "k" }).streamEvents("an-id", {})) heard.push(seq);
  expect(heard).toEqual([1, 3]);
});
