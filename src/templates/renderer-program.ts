import { Worker } from "node:worker_threads";
import { InvalidInputError } from "../domain/errors.ts";
import { renderCpuMs } from "./limits.ts";
import { checkLiquid, renderLiquid } from "./liquid.ts";
import { phases, shared, usedCpu, type Answer, type Message, type Task } from "./protocol.ts";

/**
 * A program that renders templates for its parent, one at a time, over the channel that `fork` gives it. Its heap is
 * bounded by Node's flags and its processor time by the watchdog: whatever a template does ends this process at worst.
 */
const state = new BigInt64Array(new SharedArrayBuffer(2 * BigInt64Array.BYTES_PER_ELEMENT));

function answerTo({ instructions, event, longest }: Task): Answer {
  try {
    if (event !== null) return { prompt: renderLiquid(instructions, event, longest) };
    checkLiquid(instructions);
    return { prompt: null };
  } catch (error) {
    if (error instanceof InvalidInputError) return { problem: error.message };
    throw error;
  }
}

function carryOut(task: Task): void {
  Atomics.store(state, shared.deadline, BigInt(usedCpu() + renderCpuMs * 1_000));
  Atomics.store(state, shared.phase, phases.rendering);
  Atomics.notify(state, shared.phase);
  const answer = answerTo(task);
  const before = Atomics.compareExchange(state, shared.phase, phases.rendering, phases.idle);
  // Else the watchdog is ending this process.
  if (before === phases.rendering) send(answer);
}

function send(message: Message): void {
  process.send?.(message);
}

/**
 * So that the first template does not pay for compiling what renders it. Measured for a template of 7,000 values: 380 ms
 * of processor time without this and with the optimizing compiler, 77 ms like this.
 */
function warmUp(): void {
  const line =
    '{% for item in event.items %}{% if item.name contains "a" %}{{ item.name | upcase }}{% endif %}{% endfor %}{{ event | json }}\n';
  const event = { items: [{ name: "a" }, { name: "b" }] };
  for (let count = 0; count < 5; count += 1) renderLiquid(line.repeat(100), event, 10_000);
}

process.once("disconnect", () => process.exit());
process.on("message", (task) => carryOut(task as Task));
warmUp();
const extension = import.meta.filename.endsWith(".ts") ? "ts" : "js";
const watchdog = new Worker(new URL(`watchdog.${extension}`, import.meta.url), { workerData: state.buffer });
watchdog.once("online", () => send("ready"));
