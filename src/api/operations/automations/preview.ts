import { titleOfRun, type EventContext } from "../../../domain/automations/automation.ts";
import type { AutomationTemplates } from "../../../automation-files/templates.ts";
import type { Expression, Verdict } from "../../../domain/automations/condition.ts";
import { listsEvent, listsRepository } from "../../../domain/automations/listening.ts";
import {
  previewDraftSchema,
  previewSchema,
  type Preview,
  type PreviewDraft,
  type TriggerPreview,
} from "../../../domain/automations/preview.ts";
import type { TriggerInput } from "../../../domain/automations/trigger.ts";
import { ConflictError, InvalidInputError } from "../../../domain/errors/errors.ts";
import type { Principal } from "../../../domain/people/key.ts";
import {
  isAddressProblem,
  parseRepositoryUrl,
  type RepositoryAddress,
} from "../../../domain/repositories/repository.ts";
import { getLedgerEntry } from "../../../store/automations/ledger.ts";
import type { TriggerRecord } from "../../../store/automations/triggers.ts";
import { principalOfRequest } from "../../http/auth.ts";
import type { ApiOptions, App } from "../../http/context.ts";
import { checkJsonValue } from "../../http/json-value.ts";
import { answers } from "../../http/shapes.ts";
import { maskPayload } from "./ledger.ts";
import { eventOfSample, nameIn, type SampleEvent } from "./sample-events.ts";
import { askerOf, requireAutomation } from "./triggers.ts";

/** Dependencies of a preview; the sample events of templates among it. */
type PreviewOptions = Pick<ApiOptions, "database" | "vault" | "templates" | "maskOf"> & {
  readonly automationTemplates: AutomationTemplates;
};

/** Adds the operation that renders a draft of an automation and evaluates its triggers. */
export function addPreviewOperation(app: App, options: PreviewOptions): void {
  app.post(
    "/automation/preview",
    {
      config: { operation: { scope: "read", hasEvent: true } },
      schema: {
        tags: ["Automations"],
        operationId: "previewDraft",
        summary:
          "Render a draft or a saved automation with an event and evaluate its triggers, without running anything",
        body: previewDraftSchema,
        response: answers(previewSchema),
      },
    },
    (request) => preview(options, principalOfRequest(request), request.body),
  );
}

/** The previewed automation: a saved one with the draft's changes, or the draft alone. */
interface Draft {
  readonly name: string;
  readonly instructions: string;
  readonly title: string | null;
  readonly triggers: readonly PreviewedTrigger[];
}

/** A trigger as it is sent, or as it is saved. */
type PreviewedTrigger = TriggerInput | TriggerRecord;

async function preview(options: PreviewOptions, principal: Principal, body: PreviewDraft): Promise<Preview> {
  const draft = await draftOf(options, principal, body);
  const happening = await happeningOf(options, principal, body);
  const { event, name: eventName } = happening;
  const address = addressOf(event);
  const repository = address === null ? null : { name: address.name, url: address.cloneUrl };
  return {
    ...(await render(options, principal, draft, event)),
    event,
    eventName,
    repository,
    triggers: await evaluate(options, principal, { draft, happening, address, repository }),
  };
}

async function draftOf(options: PreviewOptions, principal: Principal, body: PreviewDraft): Promise<Draft> {
  const saved = body.automation === undefined ? null : await requireAutomation(options, principal, body.automation);
  return {
    name: body.name ?? saved?.name ?? "Draft",
    instructions: body.instructions ?? saved?.instructions ?? "",
    title: body.title === undefined ? (saved?.title ?? null) : body.title,
    triggers: body.triggers ?? saved?.triggers ?? [],
  };
}

/**
 * @throws NotFoundError if the ledger has no such entry
 * @throws ConflictError if the entry's payload is gone
 * @throws InvalidInputError if there is no such sample, or the event can't be stored
 */
async function happeningOf(
  options: PreviewOptions,
  { organizationId }: Principal,
  { event = {}, ledgerId, sample }: PreviewDraft,
): Promise<SampleEvent> {
  if (sample !== undefined) return eventOfSample(sample, options.automationTemplates);
  if (ledgerId !== undefined) {
    const { payload, name } = await getLedgerEntry(options.database, organizationId, ledgerId);
    const shown = await maskPayload(options, organizationId, payload);
    if (shown === null) throw new ConflictError(`ledgerId: the payload of entry ${ledgerId} is gone`);
    return { event: shown, name: name ?? nameIn(shown) };
  }
  checkJsonValue(event, "event");
  return { event, name: nameIn(event) };
}

/** The repository that an event is about; null if it is about none, or says nothing that can be one. */
function addressOf(event: EventContext): RepositoryAddress | null {
  const { url } = (event["repository"] ?? {}) as { readonly url?: unknown };
  if (typeof url !== "string") return null;
  const address = parseRepositoryUrl(url);
  return isAddressProblem(address) || address.local ? null : address;
}

async function render(
  { templates }: PreviewOptions,
  principal: Principal,
  { name, instructions, title }: Draft,
  event: EventContext,
): Promise<Pick<Preview, "prompt" | "title" | "problem">> {
  const rendered = async (template: string): Promise<string | InvalidInputError> => {
    try {
      return await templates.render(template, event, askerOf(principal));
    } catch (error) {
      if (error instanceof InvalidInputError) return error;
      throw error;
    }
  };
  const prompt = await rendered(instructions);
  if (prompt instanceof InvalidInputError) return { prompt: null, title: null, problem: prompt.message };
  const own = title === null ? null : await rendered(title);
  if (own instanceof InvalidInputError) {
    return { prompt, title: null, problem: own.message.replace(/^instructions\b/u, "title") };
  }
  return { prompt, title: titleOfRun(own, prompt, name), problem: null };
}

async function evaluate(
  { templates }: PreviewOptions,
  principal: Principal,
  {
    draft: { triggers },
    happening: { event, name },
    address,
    repository,
  }: {
    readonly draft: Draft;
    readonly happening: SampleEvent;
    readonly address: RepositoryAddress | null;
    readonly repository: Preview["repository"];
  },
): Promise<TriggerPreview[]> {
  const verdicts = new Map<PreviewedTrigger, Verdict>();
  // Conditions see a repository only in events of forges.
  for (const isForge of [true, false]) {
    const alike = triggers.filter(({ type }) => (type === "forge") === isForge);
    if (alike.length === 0) continue;
    const variables = { event, repository: isForge ? repository : null };
    const found = await templates.evaluate(alike.map(expressionOf), variables, askerOf(principal));
    for (const [index, trigger] of alike.entries()) verdicts.set(trigger, found[index] ?? { passes: true, key: null });
  }
  return triggers.map((trigger) =>
    shownOf(trigger, verdicts.get(trigger) ?? { passes: true, key: null }, name, address),
  );
}

/** @param verdict of its condition and its key */
function shownOf(
  trigger: PreviewedTrigger,
  verdict: Verdict,
  name: string | null,
  address: RepositoryAddress | null,
): TriggerPreview {
  const isEvaluated = !("problem" in verdict);
  return {
    id: trigger.id ?? null,
    type: trigger.type,
    enabled: trigger.enabled,
    listsEvent: listsEvent(trigger, name),
    listsRepository: listsRepository(trigger, address),
    passes: isEvaluated ? verdict.passes : null,
    problem: isEvaluated ? null : verdict.problem,
    concurrencyKey: isEvaluated ? verdict.key : null,
  };
}

/** The id of an unsaved trigger in its conditions. */
const noId = "00000000-0000-0000-0000-000000000000";

function expressionOf({ id = noId, type, condition, concurrency }: PreviewedTrigger): Expression {
  return { condition, key: concurrency?.key ?? null, trigger: { id, type } };
}
