/**
 * Waits for all promises, also if one rejects, so that no work continues afterwards.
 * @returns their values
 * @throws the reason of the first of the list that rejected
 */
export async function allSettled<const Values extends readonly unknown[]>(promises: {
  readonly [Index in keyof Values]: Promise<Values[Index]>;
}): Promise<Values> {
  const results = await Promise.allSettled(promises);
  for (const result of results) if (result.status === "rejected") throw result.reason;
  return results.map((result) => (result as PromiseFulfilledResult<unknown>).value) as unknown as Values;
}
