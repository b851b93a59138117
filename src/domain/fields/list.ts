import { z } from "zod";

/** The query parameters of every list. Lists return the newest first, a page at a time. */
export const pageQuerySchema = z.object({
  limit: z.coerce.number().int().min(1).max(100).default(20).meta({ description: "1 to 100, default 20" }),
  cursor: z.string().max(200).optional().meta({ description: "nextCursor of the previous page" }),
});
/** See `pageQuerySchema`. */
export type PageQuery = z.infer<typeof pageQuerySchema>;

/**
 * Schema of a query parameter that may be given several times.
 * @param most how often
 */
export function oneOrMore<Item extends z.ZodType>(item: Item, most: number) {
  const several = z.array(item).max(most, `may be given ${most} times`);
  return z.union([item, several]).transform((given) => (Array.isArray(given) ? given : [given]) as z.output<Item>[]);
}

/** One page of a list as the database returns it; the API renames `items` to the noun of the list. */
export interface Page<T> {
  readonly items: T[];
  readonly nextCursor: string | null;
}

/**
 * The schema of an answer that is one page of a list.
 * @param noun names the list; the items are in the field of this name
 */
export function pageSchema<Noun extends string, Item extends z.ZodType>(noun: Noun, item: Item) {
  const items = { [noun]: z.array(item) } as Record<Noun, z.ZodArray<Item>>;
  return z.object({ ...items, nextCursor: z.string().nullable() });
}
