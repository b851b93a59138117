import { join } from "node:path";
import type { Config } from "../config/config.ts";
import { createObjectStore, type ObjectStore } from "../objects/object-store.ts";
import { environmentKeyring, fileKeyring } from "../store/secrets/keyring.ts";
import { createVault, type Vault } from "../store/secrets/vault.ts";

/** Opens the vault with the operator's master key, or with the one in the data folder. */
export function openVault({ masterKey, data }: Config): Vault {
  return createVault(masterKey === null ? fileKeyring(join(data, "master.key")) : environmentKeyring(masterKey));
}

/** Opens the object store; null if none is configured, and large artifacts are in the database. */
export function openObjects({ objects }: Config): ObjectStore | null {
  return objects === null ? null : createObjectStore(objects);
}

/** Folder of the recorded model responses. */
export function recordingsDirectory({ data }: Config): string {
  return join(data, "recordings");
}
