/** One way of doing it, as a table's row is made of it. */
export interface Measured {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
  readonly p99Ms: number;
}

/** Keeps `concurrency` pieces of work under way for `durationMs`. @returns how long each took, in milliseconds */
export async function load(
  work: () => Promise<void>,
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
