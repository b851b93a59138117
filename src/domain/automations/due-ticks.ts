/** A tick that is at least so late was missed, in ms: no worker read its schedule for that time. */
export const graceMs = 2 * 60_000;

/** The outcomes of the due ticks of one schedule. Times are in ms since the epoch, the oldest first. */
export interface JudgedTicks {
  /** Ticks that run: those on time, or, if there is none and it is set so, the newest that was missed. */
  readonly run: readonly number[];
  readonly missed: readonly number[];
  /** The tick that runs in the place of those that were missed; null: none does. */
  readonly instead: number | null;
}

/**
 * Decides which of the ticks that are due run. After an outage the work is to be done once: if a tick is on time, it does that, and no
 * missed one runs at the same time.
 * @param ticks ms since the epoch, the oldest first
 * @param now ms since the epoch
 */
export function judgeTicks(
  ticks: readonly number[],
  { now, missed: policy }: { readonly now: number; readonly missed: "runOnce" | "skip" },
): JudgedTicks {
  const onTime = ticks.filter((tick) => now - tick < graceMs);
  const late = ticks.filter((tick) => now - tick >= graceMs);
  if (policy === "skip" || late.length === 0) return { run: onTime, missed: late, instead: null };
  if (onTime.length > 0) return { run: onTime, missed: late, instead: onTime[0] ?? null };
  return { run: late.slice(-1), missed: late.slice(0, -1), instead: late.at(-1) ?? null };
}
