import { join } from "node:path";
import { messageOf } from "../../domain/errors/errors.ts";
import { damageIn, damageOf, quotesDamage, type DamagedMirrorError } from "../git/damage.ts";
import { markDamaged } from "../git/mirrors/mend.ts";
import type { Attempt, AttemptServices } from "./attempt.ts";
import { foldersOf } from "./session-repositories.ts";

/**
 * Has mirrors mended before they are used again, if the error of an attempt shows that they are damaged.
 * @returns what the attempt failed for: the damage, if the error only quotes words about it; otherwise the error
 */
export async function markDamagedMirrors(
  attempt: Attempt,
  services: AttemptServices,
  error: unknown,
): Promise<unknown> {
  if (damageOf(error) === null) return (await markBorrowed(attempt, services, error)) ?? error;
  const own = foldersOf(attempt.session, services).readOnly;
  // That of a submodule is none of the session's own: git's words name it.
  const named = [...messageOf(error).matchAll(/\b[0-9a-f]{32}\.git\b/gu)];
  const mirrors = new Set([...own, ...named.map(([name]) => join(services.mirrors.directory, name))]);
  await mark(attempt, [...mirrors], error);
  return error;
}

/** The same, if the error quotes words about damage in a clone that borrows from the session's mirrors. @returns null if they can be read */
async function markBorrowed(
  attempt: Attempt,
  services: AttemptServices,
  error: unknown,
): Promise<DamagedMirrorError | null> {
  const said = messageOf(error);
  if (!quotesDamage(said)) return null;
  let damage: DamagedMirrorError | null = null;
  for (const path of foldersOf(attempt.session, services).readOnly) {
    const found = await damageIn(path, said);
    if (found === null) continue;
    damage = found;
    await mark(attempt, [path], error);
  }
  return damage;
}

async function mark({ logger }: Attempt, mirrors: readonly string[], error: unknown): Promise<void> {
  logger.warn({ err: error, mirrors }, "a mirror is damaged, and is mended");
  for (const path of mirrors) await markDamaged(path);
}
