import { parseEgressRule } from "../domain/egress.ts";
import type { NewEvent } from "../domain/event.ts";
import type { ModelProviders } from "../domain/model.ts";
import { openGateway, type Gateway } from "../gateway/gateway.ts";
import type { Run } from "./run.ts";

/** Hosts of which one gateway tells; a program that tries again and again is told of once. */
const refusalLimit = 50;

/**
 * The way out of a sandbox of the session's: what the server allows, and what was allowed for its repositories.
 * @param models that can be asked through it; none while a repository is set up
 */
export function openSessionGateway(run: Run, models: ModelProviders): Promise<Gateway> {
  const { egress, socketDirectory, logger } = run.dependencies;
  const rules = run.session.repositories.flatMap(({ egress: allowed }) => allowed.map(parseEgressRule));
  const told = new Set<string>();
  /** Told beside the turn: where the lease was lost, the turn's own events find out. */
  const tell = (event: NewEvent): void => {
    run.emit(event).catch((error: unknown) => logger.debug({ err: error }, "could not tell what the gateway saw"));
  };
  return openGateway({
    directory: socketDirectory,
    models,
    egress: { ...egress, rules: [...egress.rules, ...rules.filter((rule) => rule !== null)] },
    onRefused(refusal) {
      const place = `${refusal.host}:${refusal.port}`;
      if (told.has(place) || told.size >= refusalLimit) return;
      told.add(place);
      tell({ type: "egress.refused", data: refusal });
    },
    onUsage: (maker, usage) => tell({ type: "model.usage", data: { provider: maker, ...usage } }),
  });
}
