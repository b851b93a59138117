import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { agreeOnVersion, createEngineApi } from "./api.ts";
import { EngineError, longestAnswerBytes } from "./socket.ts";

describe("the version of the API", () => {
  it.each([
    ["Docker 20.10", "1.41", "1.12", "1.41"],
    ["Podman 4.3", "1.41", "1.24", "1.41"],
    ["an engine between the oldest and the newest", "1.44", "1.24", "1.44"],
    ["an engine newer than what is known", "1.52", "1.44", "1.47"],
    ["an engine that does not tell its oldest", "1.43", null, "1.43"],
    ["an engine of another major version, with the old one", "2.0", "1.40", "1.47"],
  ])("is the newest that both know: %s", (_, ApiVersion, MinAPIVersion, expected) => {
    expect(agreeOnVersion({ ApiVersion, MinAPIVersion })).toBe(expected);
  });

  it.each([
    ["too old", "1.40", "1.12", "speaks version 1.40 of Docker's API, and Offstage needs 1.41"],
    ["too old, by a number that is greater as text", "1.9", "1.1", "speaks version 1.9"],
    ["too new", "1.60", "1.48", "speaks version 1.48 and newer of Docker's API, and Offstage 1.47 at most"],
  ])("is refused with words: %s", (_, ApiVersion, MinAPIVersion, words) => {
    expect(() => agreeOnVersion({ ApiVersion, MinAPIVersion })).toThrow(words);
  });
});

describe("an engine's answers", () => {
  const closing: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
  });
  const signal = AbortSignal.timeout(60_000);

  /** An engine that answers whatever is asked of it, but for its version. */
  async function engineThat(answer: (asked: IncomingMessage, response: ServerResponse) => void, version = "1.41") {
    const folder = await mkdtemp(join(tmpdir(), "offstage-engine-"));
    const socket = join(folder, "engine.sock");
    const asked: string[] = [];
    const said = { version };
    const server = createServer((request, response) => {
      asked.push(`${request.method} ${request.url}`);
      if (request.url === "/version") response.end(JSON.stringify({ ApiVersion: said.version }));
      else answer(request, response);
    }).listen(socket);
    await once(server, "listening");
    closing.push(async () => {
      server.closeAllConnections();
      server.close();
      await rm(folder, { recursive: true, force: true });
    });
    return { api: createEngineApi(socket), asked, said };
  }

  it("are not read beyond a bound, from any sender", async () => {
    let sent = 0;
    const { api } = await engineThat((_, response) => {
      const more = (): void => {
        for (let goesOn = true; goesOn && !response.destroyed; sent += 65_536)
          goesOn = response.write(" ".repeat(65_536));
      };
      response.on("drain", more);
      more();
    });
    await expect(api.list("a=b", signal)).rejects.toThrow(`longer than ${longestAnswerBytes} bytes`);
    expect(sent).toBeLessThan(2 * longestAnswerBytes);
  });

  it("that refuse are an error with the engine's words and status", async () => {
    const { api } = await engineThat((_, response) => {
      response.writeHead(409).end(JSON.stringify({ message: "the name is taken" }));
    });
    const error = await api.remove("x", signal).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(EngineError);
    expect(error).toMatchObject({ status: 409, message: "the container engine answered 409: the name is taken" });
  });

  it.each([
    ["no JSON", "<html>"],
    ["JSON of another shape", '{"Id":7}'],
    ["JSON without what is needed", "{}"],
  ])("that are %s are an error, not a value", async (_, body) => {
    const { api } = await engineThat((_asked, response) => void response.end(body));
    await expect(api.inspect("x", signal)).rejects.toThrow(EngineError);
  });

  it("that break off are an error", async () => {
    const { api } = await engineThat((_, response) => {
      response.writeHead(200, { "Content-Length": 100 }).write('{"StatusCode"');
      setImmediate(() => response.destroy());
    });
    await expect(api.nextExit("x", signal)).rejects.toThrow("aborted");
  });

  it("without the stream that was asked for are an error with the engine's words", async () => {
    const { api } = await engineThat((_, response) => {
      response.writeHead(404).end(JSON.stringify({ message: "no such container" }));
    });
    await expect(api.attach("x", signal)).rejects.toThrow("the container engine answered 404: no such container");
  });

  it("are waited for no longer than the signal says", async () => {
    const { api } = await engineThat(() => undefined);
    const stop = new AbortController();
    const asked = api.info(stop.signal);
    stop.abort();
    await expect(asked).rejects.toMatchObject({ name: "AbortError" });
  });

  it("are asked for in the version that was agreed on, and agreed on again with another engine", async () => {
    const { api, asked, said } = await engineThat((request, response) => {
      const knows = request.url?.startsWith(`/v${said.version}/`) === true;
      response.writeHead(knows ? 204 : 400).end(knows ? "" : '{"message":"unknown version"}');
    });
    await api.kill("x", signal);
    said.version = "1.45";
    await expect(api.kill("x", signal)).rejects.toThrow("unknown version");
    await api.kill("x", signal);
    expect(asked.filter((call) => call !== "GET /version")).toEqual([
      "POST /v1.41/containers/x/kill",
      "POST /v1.41/containers/x/kill",
      "POST /v1.45/containers/x/kill",
    ]);
  });

  it("are asked for under names that can't lead elsewhere", async () => {
    const { api, asked } = await engineThat((_, response) => void response.writeHead(404).end("{}"));
    expect(await api.imageId("../containers/x/json?all=1#", signal)).toBe(null);
    expect(asked.at(-1)).toBe("GET /v1.41/images/..%2Fcontainers%2Fx%2Fjson%3Fall%3D1%23/json");
  });
});
