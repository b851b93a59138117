import { randomBytes, randomUUID } from "node:crypto";
import type { Database } from "../../database/database.ts";
import { oldSecretMs, type TriggerInput, type TriggerType } from "../../domain/automations/trigger.ts";
import { ConflictError } from "../../domain/errors/errors.ts";
import { sealing } from "../secrets/rotation.ts";
import type { Sealed, Vault } from "../secrets/vault.ts";
import { one } from "../one-row.ts";

// The secrets of triggers: with what their deliveries are signed, and answers are written to who sends them.

/** The sealed secrets of a trigger's deliveries. */
interface SealedSecrets {
  readonly secret: string;
  /** The one before, and until when it counts, in ms since the epoch. */
  readonly previous?: { readonly secret: string; readonly until: number };
  /** With what answers are written to the service that sends the events. */
  readonly replyToken?: string;
}

/** The automation that triggers belong to. */
export interface TriggerOwner {
  readonly organizationId: string;
  readonly automationId: string;
}

/** A trigger's secrets before it is saved. */
export interface KnownSecrets {
  readonly sealed: Buffer | null;
  readonly masterKey: string | null;
  readonly hasReplyToken: boolean;
}

async function open(vault: Vault, triggerId: string, sealed: Sealed): Promise<SealedSecrets> {
  return JSON.parse(await vault.open(triggerId, sealed)) as SealedSecrets;
}

/**
 * Opens the secrets with which a trigger's deliveries may be signed.
 * @returns those that count at a time, in ms since the epoch
 * @throws ConflictError if they can't be opened, as without the master key
 */
export async function openTriggerSecrets(
  vault: Vault,
  triggerId: string,
  sealed: Sealed,
): Promise<(now: number) => readonly string[]> {
  const { secret, previous } = await open(vault, triggerId, sealed);
  return (now) => [secret, ...(previous !== undefined && previous.until > now ? [previous.secret] : [])];
}

/** Whether the trigger has a token for answers once it is saved. */
export function keepsReplyToken(input: TriggerInput, before: KnownSecrets | undefined): boolean {
  if (input.type !== "source") return false;
  return input.replyToken === undefined ? (before?.hasReplyToken ?? false) : input.replyToken !== "";
}

/**
 * Seals newly sent secrets, with those that the trigger keeps.
 * @param secret null: the one that it has
 * @returns null if nothing changes
 * @throws ConflictError if the kept ones can't be decrypted
 */
export async function sealChanges(
  vault: Vault,
  id: string,
  {
    input,
    before,
    secret,
  }: { readonly input: TriggerInput; readonly before: KnownSecrets | undefined; readonly secret: string | null },
) {
  const given = input.type === "source" ? input.replyToken : undefined;
  if (secret === null && given === undefined) return null;
  const keepsToken = given === undefined && keepsReplyToken(input, before);
  const { sealed = null, masterKey = null } = before ?? {};
  const isOpened = (secret === null || keepsToken) && sealed !== null && masterKey !== null;
  const old = isOpened ? await open(vault, id, { sealed, masterKey }) : null;
  const replyToken = given ?? old?.replyToken ?? "";
  const { replyToken: _, ...kept } = old ?? { secret: "" };
  const changed: SealedSecrets = {
    ...(secret === null ? kept : { secret }),
    ...(replyToken !== "" && { replyToken }),
  };
  return vault.seal(id, JSON.stringify(changed));
}

/** A secret of 32 random bytes; Standard Webhooks has another form (https://www.standardwebhooks.com). */
export function newSecret(
  trigger: Pick<TriggerInput, "type"> & { readonly verify?: { readonly type: string } },
): string {
  return trigger.verify?.type === "standardWebhooks"
    ? `whsec_${randomBytes(32).toString("base64")}`
    : randomBytes(32).toString("hex");
}

/**
 * Replaces what a trigger's deliveries are signed with; the one before counts for another day. A webhook without a signature gets
 * another id, and so another address, at once.
 * @param now ms since the epoch
 * @returns the trigger's id, and the new secret if it has one
 * @throws NotFoundError
 * @throws ConflictError if it takes no deliveries
 */
export function rotateTrigger(
  database: Database,
  vault: Vault,
  { organizationId, automationId }: TriggerOwner,
  triggerId: string,
  now: number,
): Promise<{ readonly id: string; readonly secret: string | null }> {
  return sealing(database, async (transaction) => {
    const { rows } = await transaction.query<{
      type: TriggerType;
      settings: { verify?: { type: string } };
      sealed: Buffer | null;
      masterKey: string | null;
    }>(
      `select type, settings, sealed, master_key as "masterKey" from trigger
       where id = $1 and automation_id = $2 and organization_id = $3 and deleted_at is null for update`,
      [triggerId, automationId, organizationId],
    );
    const row = one(rows, "trigger", triggerId);
    const { type, settings, sealed, masterKey } = row;
    if (type !== "webhook" && type !== "source") {
      throw new ConflictError(`trigger ${triggerId} is of type ${type}, which has neither a secret nor an address`);
    }
    if (settings.verify?.type === "none") {
      const id = randomUUID();
      // Without a secret: what is sealed is bound to the id, and nothing asks for it.
      await transaction.query(
        "update trigger set id = $2, sealed = null, master_key = null, updated_at = now() where id = $1",
        [triggerId, id],
      );
      return { id, secret: null };
    }
    const secret = newSecret({ type, ...(settings.verify !== undefined && { verify: settings.verify }) });
    const old = sealed === null || masterKey === null ? null : await open(vault, triggerId, { sealed, masterKey });
    const secrets: SealedSecrets = {
      secret,
      ...(old !== null && { previous: { secret: old.secret, until: now + oldSecretMs } }),
      ...(old?.replyToken !== undefined && { replyToken: old.replyToken }),
    };
    const fresh = await vault.seal(triggerId, JSON.stringify(secrets));
    await transaction.query("update trigger set sealed = $2, master_key = $3, updated_at = now() where id = $1", [
      triggerId,
      fresh.sealed,
      fresh.masterKey,
    ]);
    return { id: triggerId, secret };
  });
}

/**
 * The token with which answers are written to the service of a trigger; null if it has none, or is no longer there.
 * @throws ConflictError if it can't be opened, as without the master key
 */
export async function openReplyToken(
  database: Database,
  vault: Vault,
  organizationId: string,
  triggerId: string,
): Promise<string | null> {
  const { rows } = await database.pool.query<{ sealed: Buffer; masterKey: string }>(
    `select sealed, master_key as "masterKey" from trigger
     where id = $1 and organization_id = $2 and type = 'source' and deleted_at is null and sealed is not null`,
    [triggerId, organizationId],
  );
  const [row] = rows;
  if (row === undefined) return null;
  return (await open(vault, triggerId, row)).replyToken ?? null;
}

/**
 * All that triggers' deliveries are signed with and their answers are written with, to mask it.
 * @throws ConflictError if it can't be opened, as without the master key
 */
export async function openAllTriggerSecrets(
  database: Database,
  vault: Vault,
  organizationId: string,
): Promise<string[]> {
  const { rows } = await database.pool.query<Sealed & { readonly id: string }>(
    `select id, sealed, master_key as "masterKey" from trigger
     where organization_id = $1 and deleted_at is null and sealed is not null`,
    [organizationId],
  );
  const all = await Promise.all(rows.map((row) => open(vault, row.id, row)));
  return all.flatMap(({ secret, previous, replyToken }) =>
    [secret, previous?.secret, replyToken].filter((each) => each !== undefined),
  );
}
