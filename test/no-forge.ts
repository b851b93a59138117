import type { RepositoryAddress } from "../src/domain/repositories/repository.ts";
import { createForges } from "../src/forges/forges.ts";
import { createRestingHosts } from "../src/worker/conversations/ask-forge.ts";

const forges = createForges([]);

/** By which a job tells repositories apart and asks forges, on a server without forges of its own. */
export const noForge = {
  keyOf: (address: RepositoryAddress) => Promise.resolve(forges.keyOf(address)),
  forgeOf: (address: RepositoryAddress) => Promise.resolve(forges.forgeOf(address)),
  resting: createRestingHosts(),
};
