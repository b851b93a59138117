import { Worker } from "node:worker_threads";
import { readYaml } from "../automation-files/read-yaml.ts";
import { InvalidInputError } from "../domain/errors/errors.ts";
import { programFile } from "../programs/program-file.ts";
import { celVariables, checkCel, evaluateCel } from "./cel.ts";
import { renderCpuMs } from "./limits.ts";
import { checkLiquid, renderLiquid } from "./liquid.ts";
import { phases, shared, usedCpu, type TaskAnswer, type RendererMessage, type Task } from "./protocol.ts";

// A program that renders templates and evaluates conditions for its parent process, one at a time, over the channel of `fork`. Node's flags
// limit its heap and the watchdog its processor time: the worst that a template can do is to end this process.
const state = new BigInt64Array(new SharedArrayBuffer(2 * BigInt64Array.BYTES_PER_ELEMENT));

function answerTo(task: Task): TaskAnswer {
  try {
    if ("expressions" in task) {
      const variables = celVariables(task.variables);
      return { verdicts: task.expressions.map((expression) => evaluateCel(expression, variables)) };
    }
    if ("expression" in task) {
      checkCel(task.expression, task.gives);
      return { prompt: null };
    }
    if ("yaml" in task) return { value: readYaml(task.yaml) };
    const { instructions, event, longest } = task;
    if (event !== null) return { prompt: renderLiquid(instructions, event, longest) };
    checkLiquid(instructions);
    return { prompt: null };
  } catch (error) {
    if (error instanceof InvalidInputError) return { problem: error.message };
    throw error;
  }
}

function run(task: Task): void {
  Atomics.store(state, shared.deadline, BigInt(usedCpu() + renderCpuMs * 1_000));
  Atomics.store(state, shared.phase, phases.rendering);
  Atomics.notify(state, shared.phase);
  const answer = answerTo(task);
  const before = Atomics.compareExchange(state, shared.phase, phases.rendering, phases.idle);
  // If this fails, the watchdog is ending the process.
  if (before === phases.rendering) send(answer);
}

function send(message: RendererMessage): void {
  process.send?.(message);
}

/**
 * Renders a template before the first task, so that the first task's processor time does not include compiling the
 * renderer. For a template of 7,000 values this and `--no-opt` reduced it from 380 ms to 77 ms.
 */
function warmUp(): void {
  const line =
    '{% for item in event.items %}{% if item.name contains "a" %}{{ item.name | upcase }}{% endif %}{% endfor %}{{ event | json }}\n';
  const event = { items: [{ name: "a" }, { name: "b" }] };
  for (let count = 0; count < 5; count += 1) renderLiquid(line.repeat(100), event, 10_000);
  const condition = "event.items.exists(item, item.name.contains('a')) && size(event.items) > 0";
  checkCel(condition, "bool");
  for (let count = 0; count < 100; count += 1) {
    evaluateCel(
      { condition, key: "event.items[0].name", trigger: { id: "", type: "api" } },
      celVariables({ event, repository: null }),
    );
  }
}

process.once("disconnect", () => process.exit());
process.on("message", (task) => run(task as Task));
warmUp();
const watchdog = new Worker(programFile(import.meta.url, "watchdog"), { workerData: state.buffer });
watchdog.once("online", () => send("ready"));
