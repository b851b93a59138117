import { cpus, loadavg } from "node:os";

/** One way of doing it, as a table's row is made of it. */
export interface Measured {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly p99Ms: number;
}

/** One piece of the work that is measured. */
export type Work = () => Promise<void>;

/** Keeps `concurrency` pieces of work under way for `durationMs`. @returns how long each took, in milliseconds */
export async function load(
  work: Work,
  options: { readonly concurrency: number; readonly durationMs: number },
): Promise<number[]> {
  const until = performance.now() + options.durationMs;
  const took: number[] = [];
  const lane = async (): Promise<void> => {
    for (let now = performance.now(); now < until;) {
      await work();
      const after = performance.now();
      took.push(after - now);
      now = after;
    }
  };
  await Promise.all(Array.from({ length: options.concurrency }, lane));
  return took;
}

/** @param overMs the time in which they were done, of all rounds together */
export function summarize(took: readonly number[], overMs: number): Measured {
  const sorted = took.toSorted((a, b) => a - b);
  return {
    perSecond: (took.length / overMs) * 1_000,
    p50Ms: quantile(sorted, 0.5),
    p95Ms: quantile(sorted, 0.95),
    p99Ms: quantile(sorted, 0.99),
  };
}

/** Head of what `compare` gives. */
export const comparedHead = ["", "connections", "per second", "of bare", "p50 ms", "p95 ms", "p99 ms"];

/**
 * Measures several ways of doing the same in turn, so that what else the machine does meets all of them.
 * @param ways the first is the bare one that the others are compared with
 * @returns a row for each
 */
export async function compare(
  ways: Readonly<Record<string, Work>>,
  {
    concurrency,
    rounds,
    roundMs,
    spent,
  }: {
    readonly concurrency: number;
    readonly rounds: number;
    readonly roundMs: number;
    /** What a way has used until now, of each of several things; its part for one piece of the work makes a column. */
    readonly spent?: (name: string) => Promise<readonly number[]>;
  },
): Promise<string[][]> {
  const took: Record<string, number[]> = {};
  const used: Record<string, number[]> = {};
  for (const work of Object.values(ways)) await load(work, { concurrency, durationMs: 500 });
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, work] of Object.entries(ways)) {
      const before = (await spent?.(name)) ?? [];
      (took[name] ??= []).push(...(await load(work, { concurrency, durationMs: roundMs })));
      const after = (await spent?.(name)) ?? [];
      used[name] = after.map((each, index) => each - (before[index] ?? 0) + (used[name]?.[index] ?? 0));
    }
  }
  const measured = Object.entries(took).map(([name, all]) => ({ name, ...summarize(all, rounds * roundMs) }));
  const bare = measured[0]?.perSecond ?? Number.NaN;
  return measured.map((one) => [
    one.name,
    String(concurrency),
    one.perSecond.toFixed(0),
    (one.perSecond / bare).toFixed(2),
    one.p50Ms.toFixed(2),
    one.p95Ms.toFixed(2),
    one.p99Ms.toFixed(2),
    ...(used[one.name] ?? []).map((each) => (each / (took[one.name]?.length ?? 0)).toFixed(2)),
  ]);
}

/** @param sorted in rising order */
export function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** Prints rows under a head as columns; numbers stand to the right. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  return all
    .map((row) => {
      const cells = row.map((cell, column) =>
        column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0),
      );
      return `${cells.join("  ").trimEnd()}\n`;
    })
    .join("");
}

/** What the figures are from, for the head of a table: Node and the processors. */
export function machine(): string {
  return `Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? "cpu"}, load ${loadavg()[0]?.toFixed(1) ?? "?"}`;
}
