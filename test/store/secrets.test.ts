import { randomBytes } from "node:crypto";
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import type { Database } from "../../src/database/database.ts";
import { ConflictError, InvalidInputError } from "../../src/domain/errors/errors.ts";
import { environmentKeyring, fileKeyring } from "../../src/store/secrets/keyring.ts";
import { rotateMasterKey } from "../../src/store/secrets/rotation.ts";
import { createSecret, openSecrets, updateSecret } from "../../src/store/secrets/secrets.ts";
import { createVault, type Vault } from "../../src/store/secrets/vault.ts";
import { createTestDatabase, type TestDatabase } from "../database.ts";
import { addOrganization, atOnce } from "./fixtures.ts";

let testDatabase: TestDatabase;
let database: Database;
let folder: string;
let organizationId: string;
let vault: Vault;

beforeAll(async () => {
  testDatabase = await createTestDatabase();
  ({ database } = testDatabase);
  folder = await mkdtemp(join(tmpdir(), "offstage-secrets-"));
});

beforeEach(async () => {
  await database.pool.query("delete from secret");
  organizationId = await addOrganization(database);
  vault = createVault(fileKeyring(join(folder, `${organizationId}.key`)));
});

afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
  await testDatabase.close();
});

const add = (name: string, value: string) =>
  createSecret(database, vault, organizationId, {
    id: crypto.randomUUID(),
    name,
    value,
    phases: ["setup"],
    repositoryId: null,
  });

const opened = async (): Promise<Record<string, string>> => {
  const secrets = await openSecrets(database, vault, organizationId, []);
  return Object.fromEntries(secrets.map(({ name, value }) => [name, value]));
};

it("stores nothing from which a value could be read", async () => {
  await add("TOKEN", "a value that is secret");
  const { rows } = await database.pool.query<{ text: string }>("select secret::text as text from secret");
  expect(rows.map(({ text }) => text).join("")).not.toContain("secret value");
  expect(rows.some(({ text }) => text.includes(Buffer.from("a value").toString("hex")))).toBe(false);
  expect(await opened()).toEqual({ TOKEN: "a value that is secret" });
});

it("seals the same value differently each time", async () => {
  const one = await vault.seal("1", "same");
  const other = await vault.seal("1", "same");
  expect(one.sealed.equals(other.sealed)).toBe(false);
});

it("does not open a value that was moved to another row or changed", async () => {
  const sealed = await vault.seal("one", "value");
  await expect(vault.open("another", sealed)).rejects.toThrow(ConflictError);
  const changed = Buffer.from(sealed.sealed);
  changed[changed.length - 1] = (changed.at(-1) ?? 0) ^ 1;
  await expect(vault.open("one", { ...sealed, sealed: changed })).rejects.toThrow(/changed outside/u);
  // A shorter tag would be easier to forge.
  await expect(vault.open("one", { ...sealed, sealed: sealed.sealed.subarray(0, 20) })).rejects.toThrow(/tag/u);
});

it("keeps the master key in a file that others can't read, and refuses one that they can", async () => {
  await add("TOKEN", "value");
  const { source } = vault.keyring;
  expect((await stat(source)).mode & 0o777).toBe(0o600);
  await chmod(source, 0o644);
  await expect(opened()).rejects.toThrow(InvalidInputError);
});

it("says which master key is missing, if it is not the one that sealed", async () => {
  await add("TOKEN", "value");
  await writeFile(vault.keyring.source, `${randomBytes(32).toString("base64")}\n`);
  await expect(opened()).rejects.toThrow(/the master key [0-9a-f]{16}, which sealed a secret, is missing/u);
});

it("seals everything with a new key on rotation, and forgets the old one", async () => {
  await add("ONE", "first");
  await add("TWO", "second");
  const before = await readFile(vault.keyring.source, "utf8");
  expect(await rotateMasterKey(database, vault)).toBe(2);
  const after = await readFile(vault.keyring.source, "utf8");
  expect(after.trim().split("\n")).toHaveLength(1);
  expect(after).not.toBe(before);
  expect(await opened()).toEqual({ ONE: "first", TWO: "second" });
});

it("loses no value that is set while the key is rotated", async () => {
  const { id } = await add("TOKEN", "0");
  // Two processes: each has a keyring of its own on the same file.
  const beside = createVault(fileKeyring(vault.keyring.source));
  await Promise.all([
    atOnce(10, (index) => updateSecret(database, vault, organizationId, id, { value: String(index) })),
    rotateMasterKey(database, beside),
    atOnce(5, (index) => add(`MORE_${index}`, String(index))),
  ]);
  expect(Object.keys(await opened())).toHaveLength(6);
});

it("loses no value if another rotation is interrupted just when one ends", async () => {
  await add("TOKEN", "value");
  const { keyring } = vault;
  let isFirst = true;
  const interrupted: Database = {
    ...database,
    async transaction(work) {
      const result = await database.transaction(work);
      // The other one has added its key, and then its process was killed.
      if (isFirst) await fileKeyring(keyring.source).add?.();
      isFirst = false;
      return result;
    },
  };
  await rotateMasterKey(interrupted, vault);
  expect(await opened()).toEqual({ TOKEN: "value" });
  // The next one completes it, and leaves one key.
  await rotateMasterKey(database, vault);
  expect(await opened()).toEqual({ TOKEN: "value" });
  expect(await keyring.keys()).toHaveLength(1);
});

it("makes one key if many ask for it at once, and no one finds half a file", async () => {
  const path = join(folder, "fresh.key");
  const rings = await atOnce(30, () => fileKeyring(path).keys());
  expect(new Set(rings.map((ring) => ring.map((key) => key.toString("hex")).join())).size).toBe(1);
  expect((await readdir(folder)).filter((name) => name.endsWith(".new"))).toEqual([]);
});

it("rotates keys of the environment by their order", async () => {
  const [old, fresh] = [randomBytes(32).toString("base64"), randomBytes(32).toString("base64")];
  vault = createVault(environmentKeyring(old));
  await add("TOKEN", "value");
  await expect(rotateMasterKey(database, vault)).rejects.toThrow(
    /^OFFSTAGE_MASTER_KEY: has one key alone: put a new one/u,
  );
  vault = createVault(environmentKeyring(`${fresh},${old}`));
  expect(await opened()).toEqual({ TOKEN: "value" });
  await rotateMasterKey(database, vault);
  vault = createVault(environmentKeyring(fresh));
  expect(await opened()).toEqual({ TOKEN: "value" });
});

it.each(["", "short", "x".repeat(44)])("refuses %j as a master key", (value) => {
  expect(() => environmentKeyring(value)).toThrow(/OFFSTAGE_MASTER_KEY: must be base64 of 32 bytes/u);
});
