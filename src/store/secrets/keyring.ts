import { randomBytes } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { createFile, replaceFile } from "../../atomic-file.ts";
import { InvalidInputError } from "../../domain/errors/errors.ts";

/** The master keys. The first one encrypts; the others only decrypt what was encrypted before a rotation. */
export interface Keyring {
  /** For messages: the file's path, or the variable's name. */
  readonly source: string;
  /**
   * 32 bytes each, the first one for encryption.
   * @throws InvalidInputError if the keys are malformed, or others can read their file
   */
  keys(): Promise<readonly Buffer[]>;
  /** Adds a new first key; null if the keys are in the environment, which only the operator can change. */
  readonly add: (() => Promise<void>) | null;
  /** Deletes all keys but the first; null if the keys are in the environment. */
  readonly retire: (() => Promise<void>) | null;
}

const keyBytes = 32;

/**
 * Reads the master keys from the value of `OFFSTAGE_MASTER_KEY`: base64 of 32 bytes each, separated by commas, the
 * newest first.
 * @throws InvalidInputError
 */
export function environmentKeyring(value: string): Keyring {
  const source = "OFFSTAGE_MASTER_KEY";
  const keys = readKeys(value.split(","), source);
  return { source, keys: () => Promise.resolve(keys), add: null, retire: null };
}

/**
 * Stores the master keys in a file that only its owner can read, one key in base64 per line. The file is created if it
 * does not exist. It is read at each use, so that a server sees a rotation by another process. `keys` throws
 * InvalidInputError if others can read the file or its content is malformed.
 */
export function fileKeyring(path: string): Keyring {
  async function read(): Promise<readonly Buffer[]> {
    const { mode } = await stat(path);
    if ((mode & 0o077) !== 0) {
      throw new InvalidInputError(`others than its owner can read ${path}: run chmod 600 ${path}`);
    }
    const lines = (await readFile(path, "utf8")).split("\n").filter((line) => line.trim() !== "");
    return readKeys(lines, path);
  }

  /** Durable before a secret is sealed with the new key: with the key, a loss of power would take the secret. */
  const written = { mode: 0o600, durable: true };
  const write = (ring: readonly Buffer[]): Promise<void> => replaceFile(path, textOf(ring), written);

  async function keys(): Promise<readonly Buffer[]> {
    try {
      return await read();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
    // If two processes do this at the same time, the first one's key stays.
    await createFile(path, textOf([randomBytes(keyBytes)]), written);
    return read();
  }

  return {
    source: path,
    keys,
    add: async () => write([randomBytes(keyBytes), ...(await keys())]),
    retire: async () => write((await keys()).slice(0, 1)),
  };
}

function textOf(ring: readonly Buffer[]): string {
  return ring.map((key) => `${key.toString("base64")}\n`).join("");
}

function readKeys(lines: readonly string[], source: string): readonly Buffer[] {
  const keys = lines.map((line) => Buffer.from(line.trim(), "base64"));
  if (keys.length === 0 || keys.some((key) => key.length !== keyBytes)) {
    throw new InvalidInputError(`${source}: must be base64 of 32 bytes, for example from \`openssl rand -base64 32\``);
  }
  return keys;
}
