import { stepNames, type StepName } from "../../src/domain/sessions/step.ts";

/** What goes wrong next. Times are in milliseconds. */
export type Mishap =
  | { readonly kind: "killWorker" | "killApi"; readonly node: number; readonly downMs: number }
  | {
      readonly kind: "freezeWorker" | "freezeApi" | "cutDatabase" | "fillDisk";
      readonly node: number;
      readonly forMs: number;
    }
  /** The worker of whichever session is the next at this edge of a step. */
  | {
      readonly kind: "killAtStep";
      readonly step: StepName;
      readonly edge: "step.started" | "step.completed";
      readonly downMs: number;
    }
  | { readonly kind: "killHarness"; readonly which: number }
  | { readonly kind: "restartDatabase"; readonly signal: "SIGINT" | "SIGQUIT" | "SIGKILL" }
  | { readonly kind: "failForge"; readonly failure: "500" | "429" | "loseAnswer" | "hang" };

export interface Moment {
  /** Since the mishap before. */
  readonly afterMs: number;
  readonly mishap: Mishap;
}

/** The same numbers for the same seed: mulberry32, which is small and even enough (https://gist.github.com/tommyettinger). */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Of the sessions of this run: their repositories have nothing to set up, and their automations no gate. */
const steps = stepNames.filter((name) => name !== "setup" && name !== "gate");

/** How often each kind happens, of all together. */
const weights: Readonly<Record<Mishap["kind"], number>> = {
  killWorker: 4,
  killAtStep: 6,
  freezeWorker: 3,
  cutDatabase: 2,
  killApi: 2,
  freezeApi: 1,
  killHarness: 2,
  restartDatabase: 1,
  failForge: 3,
  fillDisk: 1,
};

/** An endless schedule of mishaps: the same for the same seed, however the sessions fare. */
export function* createSchedule(
  seed: number,
  nodes: { readonly apis: number; readonly workers: number },
): Generator<Moment, never> {
  const random = createRandom(seed);
  const between = (low: number, high: number): number => Math.round(low + random() * (high - low));
  const oneOf = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
  const kinds = Object.entries(weights).flatMap(([kind, weight]) =>
    Array<Mishap["kind"]>(weight).fill(kind as Mishap["kind"]),
  );
  const make = (kind: Mishap["kind"]): Mishap => {
    switch (kind) {
      case "killWorker":
        return { kind, node: between(0, nodes.workers - 1), downMs: between(0, 3_000) };
      case "killApi":
        return { kind, node: between(0, nodes.apis - 1), downMs: between(0, 3_000) };
      case "freezeWorker":
      case "cutDatabase":
      case "fillDisk":
        return { kind, node: between(0, nodes.workers - 1), forMs: between(500, 9_000) };
      case "freezeApi":
        return { kind, node: between(0, nodes.apis - 1), forMs: between(500, 5_000) };
      case "killAtStep":
        return {
          kind,
          step: oneOf(steps),
          edge: oneOf(["step.started", "step.completed"] as const),
          downMs: between(0, 3_000),
        };
      case "killHarness":
        return { kind, which: between(0, 1_000) };
      case "restartDatabase":
        return { kind, signal: oneOf(["SIGINT", "SIGQUIT", "SIGKILL"] as const) };
      case "failForge":
        return { kind, failure: oneOf(["500", "429", "loseAnswer", "hang"] as const) };
    }
  };
  for (;;) yield { afterMs: between(500, 3_000), mishap: make(oneOf(kinds)) };
}
