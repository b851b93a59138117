import { z } from "zod";
import { queuedJobSchema } from "../../domain/automations/job.ts";
import { ledgerEntrySchema, ledgerOutcomes } from "../../domain/automations/ledger.ts";
import { pageOf, pageQuerySchema } from "../../domain/fields/list.ts";
import { getLedgerEntry, listLedger, readRepeatable } from "../../store/automations/ledger.ts";
import { organizationOf, principalOfRequest } from "../http/auth.ts";
import type { ApiOptions, App } from "../http/context.ts";
import { originOf } from "../http/origin.ts";
import { answers, idOf, idParameters } from "../http/shapes.ts";
import { requireNotPaused } from "./resolve.ts";

const tags = ["Ledger"];

/** Adds the operations on the ledger of accepted triggers: list, show, trigger again. */
export function addLedgerOperations(app: App, { database, inserts: intake }: ApiOptions): void {
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
        response: answers(pageOf("entries", ledgerEntrySchema)),
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
        response: answers(ledgerEntrySchema),
      },
    },
    async (request) => {
      const { organizationId } = principalOfRequest(request);
      return getLedgerEntry(database, organizationId, idOf(request, "ledger entry"));
    },
  );
  app.post(
    "/ledger/:id/replay",
    {
      config: { operation: { scope: "write", creates: true, queues: true } },
      schema: {
        tags,
        operationId: "replayLedgerEntry",
        summary: "Trigger the automation again with the entry's payload",
        params: idParameters,
        response: answers(queuedJobSchema),
      },
    },
    async (request) => {
      const { organizationId } = principalOfRequest(request);
      const replayOf = idOf(request, "ledger entry");
      const { paused, macro, ...job } = await readRepeatable(database, organizationId, replayOf);
      requireNotPaused({ paused, macro });
      return intake.createJob({ ...originOf(request), ...job, organizationId, replayOf });
    },
  );
}
