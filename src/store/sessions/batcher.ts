/**
 * Handles many inputs at once.
 * @returns their results, in the order of the inputs
 */
export type Flush<Input, Result> = (inputs: readonly Input[]) => Promise<readonly Result[]>;

/** Limits of a batch, and how its errors are treated. */
export interface BatchOptions {
  /** Batches that may run at the same time. */
  readonly atOnce: number;
  /** Maximum number of inputs in one batch. */
  readonly most: number;
  /** Whether an error may be caused by one input, so that each input must be tried alone. */
  readonly isOnesOwn: (error: unknown) => boolean;
}

/**
 * Collects inputs while batches run, so that batches grow with the load; if no batch runs, an input is handled at
 * once. Each caller gets its own result or error: an invalid input does not fail the others.
 */
export function createBatcher<Input, Result>(
  flush: Flush<Input, Result>,
  { atOnce, most, isOnesOwn }: BatchOptions,
): (input: Input) => Promise<Result> {
  interface Waiting {
    readonly input: Input;
    readonly resolve: (result: Result) => void;
    readonly reject: (error: unknown) => void;
  }
  const waiting: Waiting[] = [];
  let underWay = 0;

  async function run(batch: readonly Waiting[]): Promise<void> {
    try {
      const results = await flush(batch.map(({ input }) => input));
      for (const [index, { resolve }] of batch.entries()) resolve(results[index] as Result);
    } catch (error) {
      if (batch.length > 1 && isOnesOwn(error)) for (const one of batch) await run([one]);
      else for (const { reject } of batch) reject(error);
    }
  }

  function next(): void {
    while (underWay < atOnce && waiting.length > 0) {
      underWay += 1;
      void run(waiting.splice(0, most)).finally(() => {
        underWay -= 1;
        next();
      });
    }
  }

  return (input) =>
    new Promise((resolve, reject) => {
      waiting.push({ input, resolve, reject });
      // Inputs of the same turn of the event loop go into one batch.
      if (waiting.length === 1) queueMicrotask(next);
    });
}
