import type { RepositoryAddress } from "../../src/domain/repositories/repository.ts";
import { createForges } from "../../src/forges/forges.ts";
import { createLogger } from "../../src/observability.ts";
import { decideNext } from "../../src/worker/events/event-decisions.ts";
import type { EventDecisions } from "../../src/worker/events/decide-event.ts";

/** Decides all events that wait, as a worker of the name. */
export async function decideAllEvents(
  { database, templates, ...more }: Pick<EventDecisions, "database" | "templates" | "leaseMs">,
  worker = "one",
): Promise<void> {
  const logger = createLogger("silent");
  const keyOf = (address: RepositoryAddress) => Promise.resolve(createForges([]).keyOf(address));
  while (await decideNext({ database, templates, worker, logger, keyOf, ...more })) continue;
}
