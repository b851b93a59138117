import type { Mask } from "./mask.ts";

/**
 * A mask that also replaces what is secret by the time of its use. Secrets once known stay known, and keep their place among
 * `secrets`.
 * @param current the secrets at present
 */
export function createLiveMask(base: Mask, current: () => readonly string[]): Mask {
  const known = new Set<string>();
  let mask = base;
  function latest(): Mask {
    const fresh = current().filter((secret) => !known.has(secret));
    if (fresh.length > 0) {
      for (const secret of fresh) known.add(secret);
      mask = mask.with(fresh);
    }
    return mask;
  }
  latest();
  return {
    text: (value) => latest().text(value),
    value: (value) => latest().value(value),
    event: (event) => latest().event(event),
    unfinished: (value) => latest().unfinished(value),
    get secrets() {
      return latest().secrets;
    },
    with: (more) => createLiveMask(latest().with(more), current),
  };
}
