import { createPushKeys, type PushKeys } from "../channels/push.ts";
import type { Database } from "../database/database.ts";
import { serverKey } from "../store/secrets/server-keys.ts";
import type { Vault } from "../store/secrets/vault.ts";

/** Reads the keys of web push, once; they are made on first use. */
export function pushKeysOf({
  database,
  vault,
}: {
  readonly database: Database;
  readonly vault: Vault;
}): () => Promise<PushKeys> {
  let read: Promise<PushKeys> | null = null;
  const load = async (): Promise<PushKeys> => {
    const key = await serverKey(database, vault, "web push", async () => {
      const made = await createPushKeys();
      return { public: made.publicKey, secret: made.privateKey };
    });
    return { publicKey: key.public, privateKey: key.secret };
  };
  return () => {
    read ??= load().catch((error: unknown) => {
      read = null;
      throw error;
    });
    return read;
  };
}
