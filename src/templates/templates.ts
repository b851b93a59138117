import { availableParallelism } from "node:os";
import type { EventContext } from "../domain/automations/automation.ts";
import { InvalidInputError, TooManyRequestsError, UnavailableError } from "../domain/errors/errors.ts";
import { promptLimit } from "../domain/sessions/session.ts";
import { createFairQueue, type Requester } from "./fair-queue.ts";
import { renderCpuMs } from "./limits.ts";
import { tooMuchMemory } from "./liquid.ts";
import type { Task } from "./protocol.ts";
import { startRenderer, type Outcome, type Renderer } from "./renderer.ts";

/**
 * Renders and checks automations' instructions (Liquid) in processes of their own, which can be killed. Each process
 * handles one template at a time, with limited processor time and heap. A thread is not enough: one large allocation
 * ends the whole process in spite of a thread's limits.
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
  render(instructions: string, event: EventContext, asker: Requester): Promise<string>;
  /**
   * Checks that the instructions are a valid template.
   * @throws the same errors
   */
  check(instructions: string, asker: Requester): Promise<void>;
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
/** A process that ended for an unknown reason may have been killed from outside: its task gets a second attempt. */
const attempts = 2;
const retryAfterSeconds = 1;

interface Waiting {
  readonly task: Task;
  readonly resolve: (prompt: string | null) => void;
  readonly reject: (error: Error) => void;
}

/** Makes the renderer of templates. The first process is started when it is needed. */
export function createTemplates(options: TemplateOptions = {}): Templates {
  const { idleMs = defaultIdleMs, start = startRenderer } = options;
  const processes = options.processes ?? Math.min(mostProcesses, Math.max(1, Math.floor(availableParallelism() / 2)));
  const turns = createFairQueue<Waiting>(waitingLimits);
  const all = new Set<Renderer>();
  const idle: { readonly renderer: Renderer; readonly timer: NodeJS.Timeout }[] = [];
  let busy = 0;
  let closed = false;

  function ask(task: Task, asker: Requester): Promise<string | null> {
    if (closed) return Promise.reject(stopping());
    return new Promise((resolve, reject) => {
      if (turns.add(asker, { task, resolve, reject })) next();
      else reject(new TooManyRequestsError(tooManyWait, retryAfterSeconds));
    });
  }

  function next(): void {
    while (busy < processes) {
      const waiting = turns.take();
      if (waiting === undefined) return;
      busy += 1;
      void serve(waiting).finally(() => {
        busy -= 1;
        next();
      });
    }
  }

  async function serve({ task, resolve, reject }: Waiting): Promise<void> {
    let outcome = await renderOnce(task);
    // A renderer that `close` ended died of no fault of its template's, and must have no successor.
    for (let attempt = 1; attempt < attempts && isUnexplained(outcome) && !closed; attempt += 1) {
      outcome = await renderOnce(task);
    }
    if (closed) reject(stopping());
    else if ("prompt" in outcome) resolve(outcome.prompt);
    else reject(errorOf(outcome));
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

  return {
    async render(instructions, event, asker) {
      const prompt = await ask({ instructions, event, longest: promptLimit }, asker);
      if (prompt === null) throw new Error("a rendering was answered like a check");
      return prompt;
    },
    async check(instructions, asker) {
      await ask({ instructions, event: null, longest: promptLimit }, asker);
    },
    async close() {
      closed = true;
      for (const { timer } of idle.splice(0)) clearTimeout(timer);
      for (const { reject } of turns.takeAll()) reject(stopping());
      await Promise.all([...all].map((renderer) => renderer.end()));
      all.clear();
    },
  };
}

const tooManyWait =
  "too many templates of this key or organization are being rendered: wait for their answers, then try again";
const stopping = (): UnavailableError => new UnavailableError("the server is stopping: send the request again", 1);

const isUnexplained = (outcome: Outcome): boolean => "died" in outcome || "unstartable" in outcome;

function errorOf(outcome: Exclude<Outcome, { prompt: unknown }>): Error {
  if ("problem" in outcome) return new InvalidInputError(outcome.problem);
  if ("exceeded" in outcome) {
    return new InvalidInputError(
      outcome.exceeded === "memory"
        ? tooMuchMemory
        : `instructions: took more than ${renderCpuMs} ms of processor time: make them, or what they read of the event, smaller`,
    );
  }
  if ("starved" in outcome) {
    return new TooManyRequestsError(
      "the server is too busy to render the instructions now: try again",
      retryAfterSeconds,
    );
  }
  if ("died" in outcome) {
    return new InvalidInputError("instructions: ended the process that renders them, twice: make them simpler", {
      cause: new Error(outcome.died),
    });
  }
  return new UnavailableError("the server can't start the process that renders instructions: see its log", 5, {
    cause: new Error(outcome.unstartable),
  });
}
