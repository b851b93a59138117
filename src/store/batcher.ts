import { UnavailableError } from "../domain/errors/errors.ts";

/**
 * Handles many inputs at once.
 * @returns their results, in the order of the inputs
 */
export type Flush<Input, Result> = (inputs: readonly Input[]) => Promise<readonly Result[]>;

/** Limits of a batch, and how its errors are treated. */
export interface BatchOptions<Input> {
  /** Batches that may run at the same time. */
  readonly atOnce: number;
  /** Maximum number of inputs in one batch. */
  readonly most: number;
  /** Whether an error may be caused by one input, so that the inputs must be tried apart. */
  readonly isOnesOwn: (error: unknown) => boolean;
  /** The weight of inputs, in one unit; omitted: none. */
  readonly weight?: {
    readonly of: (input: Input) => number;
    /** Of one batch. An input that weighs more is handled alone. */
    readonly most: number;
    /** Of all that wait for their batch; beyond, inputs are refused. */
    readonly mostWaiting: number;
  };
}

/**
 * Collects inputs while batches run, so that batches grow with the load; if no batch runs, an input is handled at
 * once. Each caller gets its own result or error: an invalid input does not fail the others.
 * @returns a function that rejects with UnavailableError if what waits weighs too much
 */
export function createBatcher<Input, Result>(
  flush: Flush<Input, Result>,
  { atOnce, most, isOnesOwn, weight }: BatchOptions<Input>,
): (input: Input) => Promise<Result> {
  interface Waiting {
    readonly input: Input;
    readonly weight: number;
    readonly resolve: (result: Result) => void;
    readonly reject: (error: unknown) => void;
  }
  const waiting: Waiting[] = [];
  let waitingWeight = 0;
  let underWay = 0;

  /**
   * A failed batch is retried in halves, so that one bad input of a hundred costs seven more batches, and not a
   * hundred.
   */
  async function run(batch: readonly Waiting[]): Promise<void> {
    try {
      const results = await flush(batch.map(({ input }) => input));
      for (const [index, { resolve }] of batch.entries()) resolve(results[index] as Result);
    } catch (error) {
      if (batch.length > 1 && isOnesOwn(error)) {
        const half = Math.ceil(batch.length / 2);
        await run(batch.slice(0, half));
        await run(batch.slice(half));
      } else for (const { reject } of batch) reject(error);
    }
  }

  /** The next of those that wait, as many as may go together. */
  function take(): Waiting[] {
    let count = 0;
    let sum = 0;
    for (const one of waiting) {
      sum += one.weight;
      if (count === most || (count > 0 && sum > (weight?.most ?? Number.POSITIVE_INFINITY))) break;
      count += 1;
    }
    const batch = waiting.splice(0, count);
    for (const one of batch) waitingWeight -= one.weight;
    return batch;
  }

  function next(): void {
    while (underWay < atOnce && waiting.length > 0) {
      underWay += 1;
      void run(take()).finally(() => {
        underWay -= 1;
        next();
      });
    }
  }

  return (input) =>
    new Promise((resolve, reject) => {
      const one = { input, weight: weight?.of(input) ?? 0, resolve, reject };
      if (waiting.length > 0 && waitingWeight + one.weight > (weight?.mostWaiting ?? Number.POSITIVE_INFINITY)) {
        reject(new UnavailableError("too much waits for the database: send the request again", 1));
        return;
      }
      waiting.push(one);
      waitingWeight += one.weight;
      // Inputs of the same turn of the event loop go into one batch.
      if (waiting.length === 1) queueMicrotask(next);
    });
}
