import { once } from "node:events";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { SessionError } from "../domain/errors/errors.ts";
import { createDatabaseSocket, isConnectionError } from "./connection-errors.ts";

const withProperties = (message: string, properties: object): Error => Object.assign(new Error(message), properties);

test.each([
  [withProperties("terminating connection due to administrator command", { code: "57P01" })],
  [withProperties("the database system is starting up", { code: "57P03" })],
  [withProperties('could not extend file "base/1": No space left on device', { code: "53100" })],
  [withProperties("out of memory", { code: "53200" })],
  [withProperties("cannot execute UPDATE in a read-only transaction", { code: "25006" })],
  [new Error("Connection terminated unexpectedly")],
  [withProperties("connect ECONNREFUSED /tmp/.s.PGSQL.5432", { code: "ECONNREFUSED", syscall: "connect" })],
  [withProperties("read ECONNRESET", { code: "ECONNRESET", syscall: "read" })],
])("%s is of the connection", (error) => {
  expect(isConnectionError(error)).toBe(true);
});

test("whatever breaks a connection's own socket is of the connection", async () => {
  const socket = createDatabaseSocket();
  const failed = once(socket, "close").catch((failure: unknown) => failure);
  const error = withProperties("write EPIPE", { code: "EPIPE", syscall: "write" });
  socket.destroy(error);
  await failed;
  expect(isConnectionError(error)).toBe(true);
});

test("a name with several addresses, none of which answers, is of the connection too", async () => {
  const addresses = ["127.0.0.1", "127.0.0.2"].map((address) => ({ address, family: 4 }));
  const socket = connect({
    host: "database.test",
    port: 9,
    lookup: (_name, _options, found) => found(null, addresses),
  });
  const [error] = (await once(socket, "error", { signal: AbortSignal.timeout(5_000) }).catch((failure: unknown) => [
    failure,
  ])) as unknown[];
  expect(error).toBeInstanceOf(AggregateError);
  expect(isConnectionError(error)).toBe(true);
});

test.each([
  [new Error("the command failed: Connection terminated unexpectedly")],
  [
    new SessionError({
      code: "workspace_broken",
      reason: "Connection terminated unexpectedly",
      retryable: false,
      remedy: "None.",
    }),
  ],
  [withProperties("duplicate key", { code: "23505" })],
  [withProperties("write EPIPE", { code: "EPIPE", syscall: "write" })],
  ["Connection terminated"],
])("%s is not", (error) => {
  expect(isConnectionError(error)).toBe(false);
});
