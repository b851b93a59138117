import { availableParallelism } from "node:os";
import type { EventContext } from "../domain/automations/automation.ts";
import type { TriggerInput } from "../domain/automations/trigger.ts";
import { InvalidInputError, TooManyRequestsError, UnavailableError } from "../domain/errors/errors.ts";
import { promptLimit } from "../domain/sessions/session.ts";
import { createFairQueue, type QueuedCaller } from "./fair-queue.ts";
import { renderCpuMs, tooMuchMemory } from "./limits.ts";
import type { ConditionVariables, Expression, Verdict } from "../domain/automations/condition.ts";
import type { Task } from "./protocol.ts";
import { startRenderer, type Outcome, type Renderer } from "./renderer.ts";

/**
 * Renders and checks automations' instructions (Liquid), and evaluates their triggers' conditions (CEL), in separate
 * processes, which can be killed. Each process handles one task at a time, with limited processor time and heap. A
 * thread is not enough: one large allocation ends the whole process in spite of a thread's limits.
 */
export interface Templates {
  /**
   * Renders instructions to a prompt.
   * @param instructions the template
   * @param event the trigger's body; `event` in the template
   * @throws InvalidInputError if the instructions can't be rendered with this event, or exceed a limit, which it
   * names
   * @throws TooManyRequestsError if too many requests of the asker wait, or the machine is too busy: a later attempt
   * may succeed
   * @throws UnavailableError if no process can be started
   */
  render(instructions: string, event: EventContext, asker: QueuedCaller): Promise<string>;
  /**
   * Checks that the instructions are a valid template.
   * @throws the same errors
   */
  check(instructions: string, asker: QueuedCaller): Promise<void>;
  /**
   * Checks that triggers' conditions, and the keys of their runs, can be evaluated.
   * @throws the same errors; they name the trigger by its index, as in `triggers[0].condition`
   */
  checkTriggers(
    triggers: readonly Pick<TriggerInput, "condition" | "concurrency">[],
    asker: QueuedCaller,
  ): Promise<void>;
  /**
   * Reads YAML that others wrote, as an automation's file has it.
   * @throws the same errors
   */
  readYaml(yaml: string, asker: QueuedCaller): Promise<unknown>;
  /**
   * Evaluates conditions with one event. Each that can't be evaluated, or exceeds a limit, has a verdict that says why.
   * @throws TooManyRequestsError if the machine is too busy: a later attempt may succeed
   * @throws UnavailableError if no process can be started
   */
  evaluate(expressions: readonly Expression[], variables: ConditionVariables, asker: QueuedCaller): Promise<Verdict[]>;
  /**
   * Evaluates one trigger's conditions with an event.
   * @throws the same errors
   */
  evaluateOne(expression: Expression, variables: ConditionVariables, asker: QueuedCaller): Promise<Verdict>;
  /** Ends the processes. Waiting callers get an UnavailableError. Can be called twice. */
  close(): Promise<void>;
}

/** Options for tests. */
export interface TemplateOptions {
  /** Number of processes at once. */
  readonly processes?: number;
  /** An idle process is ended after this many milliseconds. */
  readonly idleMs?: number;
  readonly start?: () => Renderer;
}

/** Limit of processes, so that hostile templates leave processors for the server. */
const mostProcesses = 4;
const defaultIdleMs = 60_000;
/**
 * Limits of waiting requests. A killed template costs its processor time and a new process, so waiting requests are
 * answered within seconds.
 */
const waitingLimits = { perAsker: 4, perOrganization: 8 };
/** The same for conditions. A delivery that is refused is lost if its sender does not try again, and conditions are short. */
const conditionLimits = { perAsker: 500, perOrganization: 2_000 };
/** A process that ended for an unknown reason may have been killed from outside: its task gets a second attempt. */
const attempts = 2;
/** Expressions that one task evaluates: its time is enough for many times as many of the usual ones. */
const mostExpressions = 500;
const retryAfterSeconds = 1;

/** A task's outcome that is no error of the process. */
type Done = Extract<
  Outcome,
  | { prompt: unknown }
  | { verdicts: unknown }
  | { value: unknown }
  | { problem: unknown }
  | { exceeded: unknown }
  | { died: unknown }
>;

interface Waiting {
  readonly task: Task;
  readonly resolve: (done: Done) => void;
  readonly reject: (error: Error) => void;
}

/** Makes the renderer of templates. The first process is started when it is needed. */
export function createTemplates(options: TemplateOptions = {}): Templates {
  const { idleMs = defaultIdleMs, start = startRenderer } = options;
  const processes = options.processes ?? Math.min(mostProcesses, Math.max(1, Math.floor(availableParallelism() / 2)));
  const templates = createFairQueue<Waiting>(waitingLimits);
  const conditions = createFairQueue<Waiting>(conditionLimits);
  let isConditionNext = true;
  const all = new Set<Renderer>();
  const idle: { readonly renderer: Renderer; readonly timer: NodeJS.Timeout }[] = [];
  let busy = 0;
  let closed = false;

  function ask(task: Task, asker: QueuedCaller): Promise<Done> {
    if (closed) return Promise.reject(stopping());
    return new Promise((resolve, reject) => {
      const turns = "expressions" in task ? conditions : templates;
      if (turns.add(asker, { task, resolve, reject })) next();
      else reject(new TooManyRequestsError(tooManyWait, retryAfterSeconds));
    });
  }

  function next(): void {
    while (busy < processes) {
      const waiting = take();
      if (waiting === undefined) return;
      busy += 1;
      void serve(waiting).finally(() => {
        busy -= 1;
        next();
      });
    }
  }

  /** Of templates and conditions in turn. */
  function take(): Waiting | undefined {
    isConditionNext = !isConditionNext;
    return isConditionNext ? (conditions.take() ?? templates.take()) : (templates.take() ?? conditions.take());
  }

  async function serve({ task, resolve, reject }: Waiting): Promise<void> {
    let outcome = await renderOnce(task);
    // A renderer that `close` ended died of no fault of its template's, and must have no successor.
    for (let attempt = 1; attempt < attempts && isUnexplained(outcome) && !closed; attempt += 1) {
      outcome = await renderOnce(task);
    }
    if (closed) reject(stopping());
    else if ("starved" in outcome || "unstartable" in outcome) reject(faultOf(outcome));
    else resolve(outcome);
  }

  async function renderOnce(task: Task): Promise<Outcome> {
    const renderer = takeRenderer();
    const outcome = await renderer.render(task);
    if (renderer.alive && !closed) keep(renderer);
    else all.delete(renderer);
    return outcome;
  }

  function takeRenderer(): Renderer {
    for (let kept = idle.pop(); kept !== undefined; kept = idle.pop()) {
      clearTimeout(kept.timer);
      if (kept.renderer.alive) return kept.renderer;
      all.delete(kept.renderer);
    }
    const renderer = start();
    all.add(renderer);
    return renderer;
  }

  function keep(renderer: Renderer): void {
    const timer = setTimeout(() => {
      idle.splice(idle.indexOf(entry), 1);
      all.delete(renderer);
      void renderer.end();
    }, idleMs).unref();
    const entry = { renderer, timer };
    idle.push(entry);
  }

  /** The time may be too short for many expressions together, or one may use it up: then each half gets its own. */
  async function evaluate(
    expressions: readonly Expression[],
    variables: ConditionVariables,
    asker: QueuedCaller,
  ): Promise<Verdict[]> {
    if (expressions.length > mostExpressions) return halved(expressions, variables, asker);
    const done = await ask({ expressions, variables }, asker);
    if ("verdicts" in done) {
      if (done.verdicts.length === expressions.length) return [...done.verdicts];
      throw new Error(`the renderer gave ${done.verdicts.length} verdicts for ${expressions.length} expressions`);
    }
    if (expressions.length > 1) return halved(expressions, variables, asker);
    return [{ problem: wordsOf(done, "condition") }];
  }

  async function halved(
    expressions: readonly Expression[],
    variables: ConditionVariables,
    asker: QueuedCaller,
  ): Promise<Verdict[]> {
    const half = Math.ceil(expressions.length / 2);
    const first = await evaluate(expressions.slice(0, half), variables, asker);
    return [...first, ...(await evaluate(expressions.slice(half), variables, asker))];
  }

  async function checkExpression(
    field: string,
    expression: string,
    gives: "bool" | "string",
    asker: QueuedCaller,
  ): Promise<void> {
    const done = await ask({ expression, gives }, asker);
    if ("problem" in done) throw new InvalidInputError(`${field}: ${done.problem}`);
    if (!("prompt" in done)) throw errorOf(done, field);
  }

  async function evaluateAll(
    expressions: readonly Expression[],
    variables: ConditionVariables,
    asker: QueuedCaller,
  ): Promise<Verdict[]> {
    const asked = expressions.filter((expression) => !isEmpty(expression));
    const verdicts = (asked.length === 0 ? [] : await evaluate(asked, variables, asker)).values();
    return expressions.map((expression) => (isEmpty(expression) ? always : verdictOf(verdicts.next().value)));
  }

  return {
    async render(instructions, event, asker) {
      const done = await ask({ instructions, event, longest: promptLimit }, asker);
      if ("prompt" in done && done.prompt !== null) return done.prompt;
      throw errorOf(done, "instructions");
    },
    async check(instructions, asker) {
      const done = await ask({ instructions, event: null, longest: promptLimit }, asker);
      if (!("prompt" in done)) throw errorOf(done, "instructions");
    },
    async checkTriggers(triggers, asker) {
      // Many triggers have the same key, say.
      const checked = new Set<string>();
      const checkOnce = async (field: string, expression: string, gives: "bool" | "string"): Promise<void> => {
        if (checked.has(`${gives} ${expression}`)) return;
        await checkExpression(field, expression, gives, asker);
        checked.add(`${gives} ${expression}`);
      };
      for (const [index, { condition, concurrency }] of triggers.entries()) {
        const field = `triggers[${index}]`;
        if (condition !== "") await checkOnce(`${field}.condition`, condition, "bool");
        if (concurrency !== null) await checkOnce(`${field}.concurrency.key`, concurrency.key, "string");
      }
    },
    async readYaml(yaml, asker) {
      const done = await ask({ yaml }, asker);
      if ("value" in done) return done.value;
      if ("problem" in done) throw new InvalidInputError(done.problem);
      throw errorOf(done, "the file");
    },
    evaluate: evaluateAll,
    async evaluateOne(expression, variables, asker) {
      const [verdict] = await evaluateAll([expression], variables, asker);
      return verdictOf(verdict);
    },
    async close() {
      closed = true;
      for (const { timer } of idle.splice(0)) clearTimeout(timer);
      for (const { reject } of [...templates.takeAll(), ...conditions.takeAll()]) reject(stopping());
      await Promise.all([...all].map((renderer) => renderer.end()));
      all.clear();
    },
  };
}

const tooManyWait =
  "too many templates of this key or organization are being rendered: wait for their answers, then try again";
const stopping = (): UnavailableError => new UnavailableError("the server is stopping: send the request again", 1);

/** Of a trigger without a condition and without a key. */
const always: Verdict = { passes: true, key: null };
const isEmpty = ({ condition, key }: Expression): boolean => condition === "" && key === null;

/** A missing verdict never lets a trigger fire. */
function verdictOf(verdict: Verdict | undefined): Verdict {
  if (verdict === undefined) throw new Error("an expression got no verdict");
  return verdict;
}

const isUnexplained = (outcome: Outcome): boolean => "died" in outcome || "unstartable" in outcome;

/** The error for the author of a task that was ended. */
function wordsOf(done: Done, field: string): string {
  if ("problem" in done) return done.problem;
  if ("exceeded" in done) {
    return done.exceeded === "memory"
      ? tooMuchMemory(field)
      : `${field}: took more than ${renderCpuMs} ms of processor time: make them, or what they read of the event, smaller`;
  }
  if ("died" in done) return `${field}: ended the process that renders them, twice: make them simpler`;
  throw new Error("a task was answered like another");
}

function errorOf(done: Done, field: string): Error {
  const cause = "died" in done ? { cause: new Error(done.died) } : {};
  return new InvalidInputError(wordsOf(done, field), cause);
}

function faultOf(outcome: Extract<Outcome, { starved: unknown } | { unstartable: unknown }>): Error {
  if ("starved" in outcome) {
    return new TooManyRequestsError(
      "the server is too busy to render the instructions now: try again",
      retryAfterSeconds,
    );
  }
  return new UnavailableError("the server can't start the process that renders instructions: see its log", 5, {
    cause: new Error(outcome.unstartable),
  });
}
