import type { RepositoryAddress } from "../src/domain/repositories/repository.ts";
import { createForges } from "../src/forges/forges.ts";

const forges = createForges([]);

/** The key of a repository, as a server without forges of its own makes it. */
export const keyOf = (address: RepositoryAddress): Promise<string> => Promise.resolve(forges.keyOf(address));
