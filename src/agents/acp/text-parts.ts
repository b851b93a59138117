import type { Mask } from "../../domain/masking/mask.ts";
import type { NewEvent } from "../../domain/sessions/event.ts";
import { outputLimit, piecesOf } from "./event-texts.ts";

/** Text arrives word by word: gather it for this long, instead of thousands of events. */
const gatherMs = 250;
const gatherLength = 4_000;

/** Which event tells of a text. */
export type TextType = "agent.message" | "agent.thought";

/** Gathers what the agent says and thinks into events; each message, and each thought, is a part of its own. */
export class TextParts {
  readonly #push: (event: NewEvent) => void;
  readonly #mask: Mask;
  #part = 0;
  #gathered: { readonly type: TextType; readonly text: string } | null = null;
  #timer: NodeJS.Timeout | null = null;

  /** @param mask finds secrets before a text is cut, and keeps back text that may be the beginning of one */
  constructor(push: (event: NewEvent) => void, mask: Mask) {
    this.#push = push;
    this.#mask = mask;
  }

  /** Adds to the present part. */
  take(type: TextType, text: string): void {
    const gathered = { type, text: (this.#gathered?.text ?? "") + text };
    this.#gathered = gathered;
    if (gathered.text.length > gatherLength) this.#flushFinished();
    else this.#timer ??= setTimeout(() => this.#flushFinished(), gatherMs);
  }

  /** Whether text of the other type waits: it is another part. */
  isOther(type: TextType): boolean {
    return this.#gathered !== null && this.#gathered.type !== type;
  }

  /** Another kind of update ends a part. */
  end(): void {
    this.flush();
    this.#part += 1;
  }

  /** Pushes what was gathered. @param keep characters at the end that wait for later text */
  flush(keep = 0): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#gathered === null) return;
    const { type, text } = this.#gathered;
    const ready = text.slice(0, text.length - keep);
    this.#gathered = keep === 0 ? null : { type, text: text.slice(text.length - keep) };
    for (const piece of piecesOf(ready.length > outputLimit ? this.#mask.text(ready) : ready))
      this.#push({ type, data: { part: String(this.#part), text: piece } });
  }

  #flushFinished(): void {
    this.flush(this.#mask.unfinished(this.#gathered?.text ?? ""));
  }
}
