import type { NewEvent } from "../../domain/sessions/event.ts";

/** Points at which an attempt can be handed to another worker without interrupting the agent's work. */
export interface SafePoints {
  /** Receives each event of the agent; a tool call that runs makes the point unsafe. */
  observe(event: NewEvent): void;
  /** An agent works from here on: any moment is safe in which none of its tools runs. */
  enter(): void;
  /** No moment is safe from here on, until `enter` is called again. */
  leave(): void;
  /** The attempt is over: `handOver` is no longer called. */
  close(): void;
}

/**
 * Calls `handOver` at the first safe point after `draining` aborts.
 * @param draining aborts when the worker shuts down
 * @param handOver ends the attempt; may be called more than once
 */
export function createSafePoints(draining: AbortSignal, handOver: () => void): SafePoints {
  const running = new Set<string>();
  let agentWorks = false;

  function handOverIfSafe(): void {
    if (draining.aborted && agentWorks && running.size === 0) handOver();
  }

  draining.addEventListener("abort", handOverIfSafe, { once: true });
  return {
    observe(event) {
      if (event.type !== "agent.tool") return;
      const { status, toolCallId } = event.data;
      if (status === "completed" || status === "failed") running.delete(toolCallId);
      else running.add(toolCallId);
      handOverIfSafe();
    },
    enter() {
      agentWorks = true;
      handOverIfSafe();
    },
    leave() {
      agentWorks = false;
      running.clear();
    },
    close: () => draining.removeEventListener("abort", handOverIfSafe),
  };
}
