import { z } from "zod";
import type { EventContext } from "../../../domain/automations/automation.ts";
import type { ForgeEvent } from "../../../domain/automations/forge-event.ts";
import { queuedJobSchema, type QueuedJob } from "../../../domain/automations/job.ts";
import { ledgerEntrySchema, wholeLedgerEntrySchema } from "../../../domain/automations/ledger.ts";
import { ledgerOutcomes } from "../../../domain/automations/ledger-outcome.ts";
import { receivedSchema, type Received } from "../../../domain/automations/trigger.ts";
import { steeringHintOf } from "../../../domain/conversations/steering-hint.ts";
import { pageSchema, pageQuerySchema } from "../../../domain/fields/list.ts";
import { receiveEvent } from "../../../store/automations/inbound-events.ts";
import { getLedgerEntry, listLedger, readRepeatable } from "../../../store/automations/ledger.ts";
import { openAllTriggerSecrets } from "../../../store/automations/trigger-secrets.ts";
import { openHookSecrets, readConnectionOfEvent } from "../../../store/secrets/event-connections.ts";
import { openAllSecrets } from "../../../store/secrets/secrets.ts";
import { organizationOf } from "../../http/auth.ts";
import type { ApiOptions, App } from "../../http/context.ts";
import { requestOrigin } from "../../http/origin.ts";
import { answers, idOf, idParameters } from "../../http/shapes.ts";
import { requireNotPaused } from "../resolve.ts";

const tags = ["Ledger"];

/** Adds the operations on the ledger of accepted triggers: list, show, trigger again. */
export function addLedgerOperations(
  app: App,
  options: Pick<ApiOptions, "database" | "vault" | "inserts" | "mention" | "maskOf">,
): void {
  const { database } = options;
  app.get(
    "/ledger/list",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "listLedger",
        summary: "List triggers and their outcomes",
        querystring: pageQuerySchema.extend({
          automationId: z.uuid().optional(),
          outcome: z.enum(ledgerOutcomes).optional(),
        }),
        response: answers(pageSchema("entries", ledgerEntrySchema)),
      },
    },
    async (request) => {
      const page = await listLedger(database, organizationOf(request), request.query);
      return { entries: page.items, nextCursor: page.nextCursor };
    },
  );
  app.get(
    "/ledger/:id",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "getLedgerEntry",
        summary: "Show a trigger and its outcome",
        params: idParameters,
        response: answers(wholeLedgerEntrySchema),
      },
    },
    async (request) => {
      const organizationId = organizationOf(request);
      const entry = await getLedgerEntry(database, organizationId, idOf(request, "ledger entry"));
      return { ...entry, payload: await maskPayload(options, organizationId, entry.payload) };
    },
  );
  app.post(
    "/ledger/:id/replay",
    {
      config: { operation: { scope: "write", creates: true, queues: true } },
      schema: {
        tags,
        operationId: "replayLedgerEntry",
        summary:
          "Do again what the entry is about: trigger its automation, or have all triggers that listen decide on its event",
        params: idParameters,
        response: answers(z.union([queuedJobSchema, receivedSchema])),
      },
    },
    (request) => replay(options, organizationOf(request), idOf(request, "ledger entry"), requestOrigin(request)),
  );
}

/** Conditions and policies are skipped if a person starts an automation again by hand. */
async function replay(
  { database, inserts, mention }: Pick<ApiOptions, "database" | "inserts" | "mention">,
  organizationId: string,
  replayOf: string,
  origin: ReturnType<typeof requestOrigin>,
): Promise<QueuedJob | Received> {
  const repeatable = await readRepeatable(database, organizationId, replayOf);
  if (repeatable.kind === "event") {
    const { kind: _, ...event } = repeatable;
    const fresh = { deliveryId: null, scope: origin.id, keys: [], originalId: replayOf };
    const { name, connectionId, payload } = event;
    const connection =
      connectionId === null ? null : await readConnectionOfEvent(database, organizationId, connectionId);
    const word = connection?.mention ?? mention;
    const steering =
      name === null || connectionId === null ? null : steeringHintOf(payload as unknown as ForgeEvent, word);
    return receiveEvent(database, { ...origin, organizationId, ...event, ...fresh, steering });
  }
  const { kind: _, paused, macro, ...job } = repeatable;
  requireNotPaused({ paused, macro });
  return inserts.createJob({ ...origin, ...job, organizationId, replayOf });
}

/** A payload without the organization's secrets and the server's, which a sender may have put there. */
export async function maskPayload(
  { database, vault, maskOf }: Pick<ApiOptions, "database" | "vault" | "maskOf">,
  organizationId: string,
  payload: EventContext | null,
): Promise<EventContext | null> {
  if (payload === null) return null;
  const [mask, ...secrets] = await Promise.all([
    maskOf(organizationId),
    openAllSecrets(database, vault, organizationId),
    openHookSecrets(database, vault, organizationId),
    openAllTriggerSecrets(database, vault, organizationId),
  ]);
  return mask.with(secrets.flat()).value(payload) as EventContext;
}
