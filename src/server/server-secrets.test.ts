import { expect, it } from "vitest";
import { readConfig } from "../config/config.ts";
import { serverSecrets } from "./server-secrets.ts";

it("the password of the database's address is masked, as it is written there and as it is", () => {
  const secrets = serverSecrets(
    readConfig({ DATABASE_URL: "postgres://offstage:long%2Fpassword@db.example/offstage" }),
  );
  expect(secrets).toEqual(expect.arrayContaining(["long%2Fpassword", "long/password"]));
});

it("a database without a password adds nothing to what is masked", () => {
  expect(serverSecrets(readConfig({ DATABASE_URL: "postgres://db.example/offstage" }))).toEqual(
    serverSecrets(readConfig({})),
  );
});
