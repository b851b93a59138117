import type { Database } from "../database/database.ts";

/** An answer of the database, and for how many milliseconds it holds unless it is changed. */
export interface Valid<Value> {
  readonly value: Value;
  readonly validMs: number;
}

/** A cache of the database's answers by name, for a short time. */
export interface Known<Value> {
  /** The value of that name; null if there is none, which is never cached. */
  find(name: string): Promise<Value | null>;
  /** The same, asked of the database in any case. */
  findFresh(name: string): Promise<Value | null>;
}

/** How long something is known without asking again, in ms: a notification may be lost. */
export const longestKnownMs = 10_000;

/**
 * Caches answers of the database until a notification reports a change, and only while notifications arrive.
 * @param options.channel on which changes are notified, with any payload
 * @param options.most most answers in the cache
 * @param options.now a clock in milliseconds that never goes back
 */
export function createKnown<Value>(
  database: Pick<Database, "listen" | "isListening">,
  ask: (name: string) => Promise<Valid<Value> | null>,
  {
    channel,
    most,
    now = () => performance.now(),
  }: { readonly channel: string; readonly most: number; readonly now?: (() => number) | undefined },
): Known<Value> {
  const known = new Map<string, { readonly value: Value; readonly until: number }>();
  /** How often everything was forgotten: an answer to an earlier question may be out of date. */
  let forgotten = 0;
  let listening: "no" | "begun" | "yes" = "no";

  function forget(): void {
    known.clear();
    forgotten += 1;
  }

  async function listen(): Promise<void> {
    if (listening !== "no") return;
    listening = "begun";
    try {
      await database.listen(channel, forget);
      listening = "yes";
    } catch {
      // Its connection broke: the next question tries again, and meanwhile the database is asked each time.
      listening = "no";
    }
  }

  function hears(): boolean {
    if (listening !== "yes") void listen();
    return listening === "yes" && database.isListening();
  }

  async function findFresh(name: string): Promise<Value | null> {
    const isRemembered = hears();
    const [at, before] = [now(), forgotten];
    const answer = await ask(name);
    if (answer === null) known.delete(name);
    else if (isRemembered && before === forgotten) {
      if (known.size >= most) known.clear();
      known.set(name, { value: answer.value, until: at + Math.min(answer.validMs, longestKnownMs) });
    }
    return answer?.value ?? null;
  }

  return {
    findFresh,
    find(name) {
      const found = hears() ? known.get(name) : undefined;
      return found !== undefined && found.until > now() ? Promise.resolve(found.value) : findFresh(name);
    },
  };
}
