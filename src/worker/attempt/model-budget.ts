import { matchesModel } from "../../domain/agents/model.ts";
import type { MostUsage } from "../../gateway/costs/estimate.ts";
import { costOf, modelLabel, mostCostOf, priceOf, priceOfAny, type Price } from "../../gateway/costs/prices.ts";
import type { ModelUsage } from "../../gateway/costs/usage.ts";
import type { Admission, Admit, ModelRequest } from "../../gateway/models/admission.ts";
import type { ModelRefusal } from "../../gateway/refusal.ts";
import {
  budgetLeft,
  holdBudget,
  shortageOf,
  spend,
  type BudgetHold,
  type BudgetLeft,
} from "../../store/queue/budgets.ts";
import { countUsage } from "../../store/insight/usage.ts";
import type { Attempt, AttemptServices } from "./attempt.ts";
import { BudgetUsedUp } from "./stop-reasons.ts";

/** Fewest output tokens that an answer may be limited to: a shorter one is of no use. */
const leastOutput = 1_000;

/** Services of the worker for model budgets. */
export type BudgetServices = Pick<AttemptServices, "database" | "allowedModels" | "prices" | "models">;

/** Admits a session's model requests, and records what they cost. */
export interface ModelBudget {
  readonly admit: Admit;
  /** Settles when every cost reported so far is in the database. */
  stored(): Promise<void>;
}

/**
 * Admits requests for allowed models while the budgets cover the most that each can cost. That amount is held in the database
 * before a request is sent, and replaced by the real cost afterwards, so budgets hold with any number of parallel requests.
 * @param onUsedUp called once, if a request is refused because the rest of the budget does not cover it
 * @param onUsage emits the session's usage event of a request
 */
export function createModelBudget(
  { session, logger }: Pick<Attempt, "session" | "logger">,
  services: BudgetServices,
  onUsedUp: (reason: BudgetUsedUp) => void,
  onUsage: (usage: Parameters<typeof usageEvent>) => void,
): ModelBudget {
  const { allowedModels, database, prices } = services;
  let stored: Promise<void> = Promise.resolve();
  let isReported = false;
  /** This session's requests that hold a part of the budget: a refused request waits until they are settled. */
  const underWay = new Set<Promise<void>>();

  function store(dollars: number, holdId: string | null): void {
    if (dollars === 0 && holdId === null) return;
    stored = stored
      .then(() => spend(database, session, dollars, holdId))
      .catch((error: unknown) => logger.error({ err: error }, "could not count a cost"));
  }

  function count({ model, ...used }: ReturnType<typeof usageEvent>["data"]): void {
    stored = stored
      .then(() => countUsage(database, session, { ...used, model: labelOf(services, model) }))
      .catch((error: unknown) => logger.error({ err: error }, "could not count what a model used"));
  }

  function admission(request: ModelRequest, hold: BudgetHold, outputLimit: number | null): Admission {
    const settled = Promise.withResolvers<void>();
    underWay.add(settled.promise);
    return {
      outputLimit,
      settle(usage) {
        const price = usage === null ? null : priceOfAny([usage.model, request.model], prices);
        const costUsd = usage === null || price === null ? null : costOf(usage, price);
        store(costUsd ?? 0, hold.id);
        if (usage !== null) count(usageEvent(request, usage, costUsd).data);
        underWay.delete(settled.promise);
        void stored.then(settled.resolve);
        if (usage !== null) onUsage([request, usage, costUsd]);
      },
    };
  }

  async function holdFor(
    most: MostUsage,
    price: Price,
  ): Promise<{ readonly hold: BudgetHold; readonly outputLimit: number | null } | Shortage> {
    const { input, token } = mostCostOf(most, price);
    const perToken = token * most.answers;
    const needed = input + most.outputTokens * perToken;
    const least = most.isLimited ? needed : input + Math.min(leastOutput, most.outputTokens) * perToken;
    const got = await holdBudget(database, session.sessionId, { needed, least });
    if ("left" in got) return { left: got.left, needed: least };
    const covers = got.dollars === null || got.dollars >= needed ? null : Math.floor((got.dollars - input) / perToken);
    return { hold: got, outputLimit: covers };
  }

  /** Tries again after each of the session's other requests, until none is left, before it reports a shortage. */
  async function holdInTurn(request: ModelRequest, most: MostUsage, price: Price) {
    for (;;) {
      await stored;
      const others = [...underWay];
      const got = await holdFor(most, price);
      if (!("left" in got) || others.length === 0 || request.signal.aborted) return got;
      await Promise.race([...others, untilAborted(request.signal)]);
    }
  }

  async function admit(request: ModelRequest): Promise<Admission | ModelRefusal> {
    const { model, most } = request;
    if (!matchesModel(allowedModels, model) || !matchesModel(session.organization.models ?? ["*"], model))
      return { status: 403, message: `the model ${model} is not allowed by this server or organization` };
    if (most === null) return admission(request, { id: null, dollars: null }, null);
    const price = priceOf(model, prices);
    if (price === null && (await isLimited(database, session.sessionId)))
      return { status: 403, message: `the model ${model} has no price, which a budget needs: set OFFSTAGE_PRICES` };
    if (price === null) return admission(request, { id: null, dollars: null }, null);
    const got = await holdInTurn(request, most, price);
    if (!("left" in got)) return admission(request, got.hold, got.outputLimit);
    const problem = shortageOf(got.left, got.needed);
    if (!isReported && !request.signal.aborted) onUsedUp(new BudgetUsedUp(problem, got.needed));
    isReported ||= !request.signal.aborted;
    return { status: 402, message: problem };
  }

  return { admit, stored: () => stored };
}

interface Shortage {
  readonly left: BudgetLeft;
  readonly needed: number;
}

async function isLimited(database: AttemptServices["database"], sessionId: string): Promise<boolean> {
  const left = await budgetLeft(database, sessionId);
  return left.session !== null || left.month !== null;
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

/** The event that records what one request used; costUsd is null if the model has no price. */
export function usageEvent(
  { provider, model: requestedModel }: ModelRequest,
  usage: ModelUsage,
  costUsd: number | null,
) {
  const { model, inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens } = usage;
  const tokens = { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens };
  return { type: "model.usage" as const, data: { provider, model: model ?? requestedModel, ...tokens, costUsd } };
}

/** The label of a model in metrics: all names that the server does not know share one. */
export function labelOf(
  services: Pick<BudgetServices, "prices" | "allowedModels" | "models">,
  model: string | null,
): string {
  return modelLabel(model, services.prices, namedModels(services));
}

/** Names and patterns of models in the configuration. */
export function namedModels({ allowedModels, models }: Pick<BudgetServices, "allowedModels" | "models">): string[] {
  return [...allowedModels, models.compatible?.model ?? []].flat();
}
