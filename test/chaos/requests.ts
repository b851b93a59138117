import { setTimeout as pause } from "node:timers/promises";
import { chaosKey, type ChaosFleet } from "./fleet.ts";

/** What a client sent until it was answered with 2xx. */
export interface Accepted {
  readonly number: number;
  readonly kind: "session" | "trigger";
  /** Of the session, or of the job. */
  readonly id: string;
  readonly repository: string;
  /** What the agent is told to write into `<file>`. */
  readonly file: string;
  readonly content: string;
}

const requestLimitMs = 10_000;

/**
 * Sends the way a careful client does: with an Idempotency-Key, to one node after the other, until one answers 2xx.
 * @throws Error for an answer that no repetition would change
 */
export async function post(fleet: ChaosFleet, path: string, body: unknown, key: string): Promise<{ id: string }> {
  for (let attempt = 0; ; attempt += 1) {
    const { url } = fleet.apis[attempt % fleet.apis.length] as (typeof fleet.apis)[number];
    try {
      const response = await fetch(`${url}${path}`, {
        method: "POST",
        headers: { Authorization: `Bearer ${chaosKey}`, "Content-Type": "application/json", "Idempotency-Key": key },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(requestLimitMs),
      });
      const answer = (await response.json()) as { id: string; error?: string };
      if (response.ok) return answer;
      const passing = response.status >= 500 || response.headers.has("retry-after");
      if (!passing) throw new TypeError(`${path} answered ${response.status}: ${answer.error}`);
    } catch (error) {
      if (error instanceof TypeError && error.message.startsWith("/")) throw error;
    }
    await pause(200);
  }
}

/** The n-th piece of work: every third by an automation. */
export async function send(fleet: ChaosFleet, number: number, repository: string): Promise<Accepted> {
  const kind = number % 3 === 2 ? "trigger" : "session";
  const file = `work-${number}.txt`;
  const content = `content of ${number}`;
  const body =
    kind === "session"
      ? {
          prompt: `write ${file}: ${content}, then shell sleep 0.5, then write more-${number}.txt: more`,
          repositories: [`${fleet.forge.url}/acme/${repository}`],
        }
      : { number, content };
  const path = kind === "session" ? "/session/create" : `/automation/${repository}/trigger`;
  const { id } = await post(fleet, path, body, `chaos-${number}`);
  return { number, kind, id, repository, file, content };
}

/** Instructions of the automation of a repository, to which `send` sends triggers. */
export const instructions =
  "write work-{{ event.number }}.txt: {{ event.content }}, then shell sleep 0.5, then write more-{{ event.number }}.txt: more";
