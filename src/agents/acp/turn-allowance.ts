import type { NewEvent } from "../../domain/sessions/event.ts";

/** What an event counts at least: each is a row of the database. */
const leastCost = 1_000;

/** Passes on events as long as their characters are within the limit of a turn, and says once if they are not. */
export class TurnAllowance {
  readonly #push: (event: NewEvent) => void;
  #left: number;

  /** @param limit maximum characters of one turn's events, so that an agent can't fill the database */
  constructor(push: (event: NewEvent) => void, limit: number) {
    this.#push = push;
    this.#left = limit;
  }

  get isSpent(): boolean {
    return this.#left <= 0;
  }

  push(event: NewEvent): void {
    if (this.isSpent) return;
    this.#left -= Math.max(leastCost, JSON.stringify(event).length);
    this.#push(event);
    if (!this.isSpent) return;
    const text = "The agent wrote more in this turn than is stored: the rest is not shown.";
    this.#push({ type: "notice", data: { level: "warning", text } });
  }
}
