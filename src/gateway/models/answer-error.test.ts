import { Readable } from "node:stream";
import { expect, it } from "vitest";
import { readError } from "./answer-error.ts";

const read = (chunks: readonly Buffer[]): Promise<string> =>
  new Promise((resolve) => readError(Readable.from(chunks), resolve));

it("reads a message whose characters are cut by the borders of chunks", async () => {
  const body = Buffer.from('{"error":{"message":"Modèle trop chargé: 混雑 🚧"}}');
  const bytes = Array.from(body, (byte) => Buffer.from([byte]));
  expect(await read(bytes)).toBe("Modèle trop chargé: 混雑 🚧");
});

it("reads the beginning of a body that has no message", async () => {
  expect(await read([Buffer.from("<html>"), Buffer.from("x".repeat(100_000))])).toBe(`<html>${"x".repeat(494)}`);
});
