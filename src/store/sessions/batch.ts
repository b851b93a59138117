/** Carries many inputs out at once. @returns their results in their order */
export type CarryOut<Input, Result> = (inputs: readonly Input[]) => Promise<readonly Result[]>;

export interface BatchOptions {
  /** Batches under way at the same time. */
  readonly atOnce: number;
  /** Inputs in one batch. */
  readonly most: number;
  /** Whether an error may be the fault of one input, so that each is tried alone. */
  readonly isOnesOwn: (error: unknown) => boolean;
}

/**
 * Gathers what comes while batches are under way, so that the busier it is the more goes into each; where none is, an
 * input goes at once. Each caller gets its own result, or its own error: what one asked for wrongly fails no other.
 */
export function createBatch<Input, Result>(
  carryOut: CarryOut<Input, Result>,
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
      const results = await carryOut(batch.map(({ input }) => input));
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
      // What comes in the same turn of the event loop goes together.
      if (waiting.length === 1) queueMicrotask(next);
    });
}
