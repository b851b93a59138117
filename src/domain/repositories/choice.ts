import { z } from "zod";

// Lists from which people choose a session's repository: a forge's repositories, branches and files, page by page.

/** Most entries of one answer. */
export const mostOffered = 100;

/** A repository to choose. */
export const offeredRepositorySchema = z.object({
  name: z.string(),
  url: z.string().meta({ description: "What `repositories` of a session takes." }),
  forge: z.string().meta({ description: "The forge's name." }),
  defaultBranch: z.string().nullable(),
  description: z.string().nullable(),
});
/** See `offeredRepositorySchema`. */
export type OfferedRepository = z.infer<typeof offeredRepositorySchema>;

const complete = z.boolean().meta({ description: "Whether the forge has no more that fit." });

/** Repositories to choose, of all forges. */
export const offeredRepositoriesSchema = z.object({
  repositories: z.array(offeredRepositorySchema),
  complete,
  problems: z
    .array(z.object({ forge: z.string(), text: z.string() }))
    .meta({ description: "Forges that could not be looked through, and why." }),
});
/** See `offeredRepositoriesSchema`. */
export type OfferedRepositories = z.infer<typeof offeredRepositoriesSchema>;

/** Branches to choose. */
export const offeredBranchesSchema = z.object({ branches: z.array(z.string()), complete });
/** See `offeredBranchesSchema`. */
export type OfferedBranches = z.infer<typeof offeredBranchesSchema>;

/** Files to name in a prompt. */
export const offeredFilesSchema = z.object({ paths: z.array(z.string()), complete });
/** See `offeredFilesSchema`. */
export type OfferedFiles = z.infer<typeof offeredFilesSchema>;

/**
 * Sorts what a search offers: what begins with the words first, then what has them in its last part, then the others; of equals the
 * first stays first.
 */
export function bestFirst<Item>(items: readonly Item[], nameOf: (item: Item) => string, query: string): Item[] {
  const wanted = query.toLowerCase();
  const rank = (item: Item): number => {
    const name = nameOf(item).toLowerCase();
    const last = name.slice(name.lastIndexOf("/") + 1);
    if (name.startsWith(wanted)) return 0;
    return last.startsWith(wanted) ? 1 : last.includes(wanted) ? 2 : 3;
  };
  return items
    .map((item, place) => ({ item, place, rank: rank(item) }))
    .toSorted((a, b) => a.rank - b.rank || a.place - b.place)
    .map(({ item }) => item);
}
