import { z } from "zod";

/** The query of every list: newest first, a page at a time. */
export const pageQuerySchema = z.object({
  limit: z.coerce.number().int().min(1).max(100).default(20).meta({ description: "1 to 100, default 20" }),
  cursor: z.string().max(200).optional().meta({ description: "nextCursor of the previous page" }),
});
export type PageQuery = z.infer<typeof pageQuerySchema>;

/** One page from the store, before it is named by its noun. */
export interface Page<T> {
  readonly items: T[];
  readonly nextCursor: string | null;
}
