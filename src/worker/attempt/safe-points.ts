import type { NewEvent } from "../../domain/event.ts";

/** Where a run can be handed to another worker without anything being cut off. */
export interface SafePoints {
  /** Hears what the agent does. */
  hear(event: NewEvent): void;
  /** From here on an agent is at work, which is safe to stop while none of its tools runs. */
  enter(): void;
  /** From here on it is not. */
  leave(): void;
  /** The run is over. */
  close(): void;
}

/**
 * @param draining aborts when the worker is to end
 * @param handOver called once, at the first safe point after that
 */
export function createSafePoints(draining: AbortSignal, handOver: () => void): SafePoints {
  const running = new Set<string>();
  let inside = false;

  function look(): void {
    if (draining.aborted && inside && running.size === 0) handOver();
  }

  draining.addEventListener("abort", look, { once: true });
  return {
    hear(event) {
      if (event.type !== "agent.tool") return;
      const { status, toolCallId } = event.data;
      if (status === "completed" || status === "failed") running.delete(toolCallId);
      else running.add(toolCallId);
      look();
    },
    enter() {
      inside = true;
      look();
    },
    leave() {
      inside = false;
      running.clear();
    },
    close: () => draining.removeEventListener("abort", look),
  };
}
