import { fitsModel } from "../../domain/model.ts";
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
import { BudgetUsedUp } from "./cancellation.ts";
import type { Run } from "./run.ts";

/** An answer that is cut shorter than this is of no use. */
const leastOutput = 1_000;

/** What a session's requests of models may cost, and did. */
export interface ModelBudget {
  readonly admit: Admit;
  /** Settles when all that was settled so far is stored. */
  stored(): Promise<void>;
}

/**
 * Lets requests through for models that are allowed, and while budgets cover what they can cost at most: that is held back in
 * the database before a request is sent, and settled when it is known. So budgets hold, however many requests are under way.
 * @param onUsedUp told once, if a request is refused because what is left does not cover it
 * @param tell the session's event of what was used
 */
export function createModelBudget(
  run: Run,
  onUsedUp: (reason: BudgetUsedUp) => void,
  tell: (usage: Parameters<typeof usageEvent>) => void,
): ModelBudget {
  const { allowedModels, database, logger, prices } = run.dependencies;
  const { session } = run;
  let stored: Promise<void> = Promise.resolve();
  let isTold = false;
  /** Requests of this session whose holds end by themselves: their turn comes when they are settled. */
  const underWay = new Set<Promise<void>>();

  function store(dollars: number, holdId: string | null): void {
    if (dollars === 0 && holdId === null) return;
    stored = stored
      .then(() => spend(database, session, dollars, holdId))
      .catch((error: unknown) => logger.error({ err: error }, "could not count a cost"));
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
        underWay.delete(settled.promise);
        void stored.then(settled.resolve);
        if (usage !== null) tell([request, usage, costUsd]);
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

  /** Waits for other requests of the session, as long as there are some, before it says that there is not enough. */
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
    if (!fitsModel(allowedModels, model) || !fitsModel(session.organization.models ?? ["*"], model))
      return { status: 403, message: `the model ${model} is not allowed by this server or organization` };
    if (most === null) return admission(request, { id: null, dollars: null }, null);
    const price = priceOf(model, prices);
    if (price === null && (await isLimited(run)))
      return { status: 403, message: `the model ${model} has no price, which a budget needs: set OFFSTAGE_PRICES` };
    if (price === null) return admission(request, { id: null, dollars: null }, null);
    const got = await holdInTurn(request, most, price);
    if (!("left" in got)) return admission(request, got.hold, got.outputLimit);
    const problem = shortageOf(got.left, got.needed);
    if (!isTold && !request.signal.aborted) onUsedUp(new BudgetUsedUp(problem, got.needed));
    isTold ||= !request.signal.aborted;
    return { status: 402, message: problem };
  }

  return { admit, stored: () => stored };
}

interface Shortage {
  readonly left: BudgetLeft;
  readonly needed: number;
}

async function isLimited({ dependencies, session }: Run): Promise<boolean> {
  const left = await budgetLeft(dependencies.database, session.sessionId);
  return left.session !== null || left.month !== null;
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}

/** What the session's events and metrics are told of a request. */
export function usageEvent({ provider, model: asked }: ModelRequest, usage: ModelUsage, costUsd: number | null) {
  const { model, inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens } = usage;
  const tokens = { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens };
  return { type: "model.usage" as const, data: { provider, model: model ?? asked, ...tokens, costUsd } };
}

/** What metrics call a model. */
export function labelOf(run: Run, model: string | null): string {
  return modelLabel(model, run.dependencies.prices, namedModels(run));
}

/** Models that the configuration names. */
export function namedModels({ dependencies: { allowedModels, models } }: Run): string[] {
  return [...allowedModels, models.compatible?.model ?? []].flat();
}
