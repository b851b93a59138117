import {
  boundedProblems,
  connectionStateOf,
  type ConnectionCheck,
  type ConnectionCredential,
} from "../../domain/repositories/connection.ts";
import type { Sealed, Vault } from "./vault.ts";

// The fields of connections' rows, for code that changes or opens connections.

/** SQL for the time until the next check of a connection's health: an hour less up to a sixth of it, so that checks spread. */
export const untilNextCheck = "interval '1 hour' - random() * interval '10 minutes'";

/** The sealed part of a connection. */
interface SealedContent {
  readonly credential: ConnectionCredential;
  /** Secrets of its webhook: the current one, then the one before, if there was one. */
  readonly hookSecrets: readonly string[];
}

/** Seals the content of the connection `id`. */
export function sealContent(vault: Vault, id: string, content: SealedContent): Promise<Sealed> {
  return vault.seal(id, JSON.stringify(content));
}

/** Opens the content of the connection `id`. @throws ConflictError if it can't be decrypted */
export async function openContent(vault: Vault, id: string, sealed: Sealed): Promise<SealedContent> {
  return JSON.parse(await vault.open(id, sealed)) as SealedContent;
}

/** The columns `state` and `problems` of what a check found. */
export function healthOf({ problems }: ConnectionCheck): [string, string] {
  return [connectionStateOf(problems), JSON.stringify(boundedProblems(problems))];
}
