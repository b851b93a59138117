import { cutMiddle } from "../../domain/fields/text.ts";
import type { Attempt } from "../attempt/attempt.ts";

const tailLength = 2_000;
/**
 * Characters of output that are kept for the tail: masked before they are cut to `tailLength`, so that no part of a secret
 * stays.
 */
const tailBuffer = 100_000;
/** Characters of output that a session's page shows; later output is not shown. */
const shownLimit = 200_000;
/** Output is gathered for this long, in ms, before it becomes an event. */
const gatherMs = 300;

/** The output of a setup script on its way into events. */
export interface SetupOutput {
  take(chunk: string): void;
  /** Emits what is left, and how the script ended; settles when all events are stored. @throws what `emit` throws */
  end(state: "completed" | "failed"): Promise<void>;
  /** Emits nothing that is not on its way yet; may be called in any case, and after `end`. */
  close(): void;
  /** The end of the output, masked. */
  tail(): string;
}

/** Gathers output into events, and never splits a secret between two of them, so that masking finds it. */
export function createOutput(
  { emit, mask }: Pick<Attempt, "emit" | "mask">,
  repository: { readonly id: string; readonly name: string },
): SetupOutput {
  let held = "";
  let shownLength = 0;
  let tail = "";
  let timer: NodeJS.Timeout | null = null;
  let emitted: Promise<void> = Promise.resolve();

  function emitOutput(printed: string, state: "running" | "completed" | "failed"): void {
    const shown = shownLength > shownLimit ? "" : cutMiddle(printed, shownLimit);
    shownLength += shown.length;
    if (shown === "" && state === "running") return;
    const data = { repositoryId: repository.id, repository: repository.name, text: shown, state };
    emitted = emitted.then(() => emit({ type: "setup.output", data }));
    // `end` awaits `emitted`, and reports the error.
    emitted.catch(() => undefined);
  }

  function close(): void {
    if (timer !== null) clearTimeout(timer);
    timer = null;
  }

  function flush(keep: number): void {
    close();
    const ready = held.slice(0, held.length - keep);
    held = held.slice(held.length - keep);
    tail = `${tail}${ready}`.slice(-tailBuffer);
    emitOutput(ready, "running");
  }

  return {
    take(chunk) {
      held += chunk.replaceAll("\0", "\u2400");
      if (held.length > shownLimit / 10) flush(mask.unfinished(held));
      else timer ??= setTimeout(() => flush(mask.unfinished(held)), gatherMs);
    },
    async end(state) {
      flush(0);
      emitOutput("", state);
      await emitted;
    },
    close,
    tail: () => mask.text(tail).slice(-tailLength).trim(),
  };
}
