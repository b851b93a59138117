import { randomBytes } from "node:crypto";
import { chmod, open, readFile, rename, rm, stat } from "node:fs/promises";
import { InvalidInputError } from "../../domain/errors.ts";

/** Where the master keys are. The first seals; the others only open what was sealed before a rotation. */
export interface Keyring {
  /** For people: the file's path, or the variable's name. */
  readonly source: string;
  keys(): Promise<readonly Buffer[]>;
  /** Puts a new key first; null where the operator does that, since it is in the environment. */
  readonly add: (() => Promise<void>) | null;
  /** Forgets all but the first. */
  readonly retire: (() => Promise<void>) | null;
}

const keyBytes = 32;

/** From `OFFSTAGE_MASTER_KEY`: base64 of 32 bytes each, with commas, the newest first. @throws InvalidInputError */
export function environmentKeyring(value: string): Keyring {
  const source = "OFFSTAGE_MASTER_KEY";
  const keys = readKeys(value.split(","), source);
  return { source, keys: () => Promise.resolve(keys), add: null, retire: null };
}

/**
 * From a file that its owner alone can read, a key on each line; made where it is not there. It is read each time, so
 * that a server sees what a rotation beside it wrote.
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

  /** Whole or not at all, whatever happens in between. */
  async function write(ring: readonly Buffer[]): Promise<void> {
    const fresh = `${path}.new`;
    await rm(fresh, { force: true });
    const file = await open(fresh, "wx", 0o600);
    try {
      await file.writeFile(ring.map((key) => `${key.toString("base64")}\n`).join(""));
      await file.sync();
    } finally {
      await file.close();
    }
    await chmod(fresh, 0o600);
    await rename(fresh, path);
  }

  async function keys(): Promise<readonly Buffer[]> {
    try {
      return await read();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    }
    await create(path);
    return read();
  }

  return {
    source: path,
    keys,
    add: async () => write([randomBytes(keyBytes), ...(await keys())]),
    retire: async () => write((await keys()).slice(0, 1)),
  };
}

/** Of two that find no file at the same time, one makes it. */
async function create(path: string): Promise<void> {
  try {
    const file = await open(path, "wx", 0o600);
    try {
      await file.writeFile(`${randomBytes(keyBytes).toString("base64")}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

function readKeys(lines: readonly string[], source: string): readonly Buffer[] {
  const keys = lines.map((line) => Buffer.from(line.trim(), "base64"));
  if (keys.length === 0 || keys.some((key) => key.length !== keyBytes)) {
    throw new InvalidInputError(`${source}: must be base64 of 32 bytes, for example from \`openssl rand -base64 32\``);
  }
  return keys;
}
