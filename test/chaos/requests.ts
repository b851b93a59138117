import { createHmac, randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { chaosKey, type ChaosFleet } from "./fleet.ts";

/** How a run is asked for: by a session, an automation's endpoint, a webhook of its own, or an event of the forge. */
export type Kind = "session" | "trigger" | "webhook" | "event";
const kinds: readonly Kind[] = ["session", "trigger", "session", "webhook", "event"];

/** Addresses and secrets of senders. */
export interface Senders {
  readonly connection: { readonly id: string; readonly secret: string };
  /** By repository. */
  readonly webhooks: ReadonlyMap<string, { readonly id: string; readonly secret: string }>;
}

/** What a client sent until it was answered with 2xx. */
export interface Accepted {
  readonly number: number;
  readonly kind: Kind;
  /** Of the session, of the job, or of the event's entry in the ledger. */
  readonly id: string;
  readonly repository: string;
  /** What the prompt has the agent write into `<file>`. */
  readonly file: string;
  readonly content: string;
}

const requestLimitMs = 10_000;

/**
 * Sends the way a careful client does: with an Idempotency-Key, to one node after the other, until one answers 2xx.
 * @param key null if the answer has a secret, which is not kept for a repetition
 * @throws Error for an answer that no repetition would change
 */
export function post<Answer>(fleet: ChaosFleet, path: string, body: unknown, key: string | null): Promise<Answer> {
  const headers = { Authorization: `Bearer ${chaosKey}`, ...(key !== null && { "Idempotency-Key": key }) };
  return insist<Answer>(fleet, { path, body: JSON.stringify(body), headers });
}

interface Request {
  readonly path: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** @param first the node that is asked first */
async function insist<Answer>(fleet: ChaosFleet, { path, body, headers }: Request, first = 0): Promise<Answer> {
  for (let attempt = first; ; attempt += 1) {
    const { url } = fleet.apis[attempt % fleet.apis.length] as (typeof fleet.apis)[number];
    try {
      const response = await fetch(`${url}${path}`, {
        method: "POST",
        headers: { "Content-Type": "application/json", ...headers },
        body,
        signal: AbortSignal.timeout(requestLimitMs),
      });
      const answer = (await response.json()) as Answer & { readonly error?: string };
      if (response.ok) return answer;
      const passing = response.status >= 500 || response.headers.has("retry-after");
      if (!passing) throw new TypeError(`${path} answered ${response.status}: ${answer.error}`);
    } catch (error) {
      if (error instanceof TypeError && error.message.startsWith("/")) throw error;
    }
    await pause(200);
  }
}

interface Delivered {
  readonly outcome: string;
  readonly ledgerId: string;
}

/**
 * Delivers as senders do that lost an answer: to all nodes at once, and again after a while, between others.
 * @returns the entry of the ledger, and how many of the deliveries were answered with `duplicate`
 * @throws Error if the answers are not about one and the same entry of the ledger
 */
export async function deliver(
  fleet: ChaosFleet,
  request: Request,
): Promise<{ readonly id: string; readonly duplicates: number }> {
  const answers = await Promise.all(fleet.apis.map((_, index) => insist<Delivered>(fleet, request, index)));
  await pause(1_000);
  answers.push(await insist<Delivered>(fleet, request));
  const ids = new Set(answers.map(({ ledgerId }) => ledgerId));
  const [id] = ids;
  if (id === undefined || ids.size > 1 || answers.at(-1)?.outcome !== "duplicate") {
    throw new TypeError(`${request.path} answered ${JSON.stringify(answers)}`);
  }
  return { id, duplicates: answers.filter(({ outcome }) => outcome === "duplicate").length };
}

/** The n-th piece of work. */
export async function send(fleet: ChaosFleet, senders: Senders, number: number, repository: string): Promise<Accepted> {
  const kind = kinds[number % kinds.length] as Kind;
  const work = { number, repository, file: `work-${number}.txt`, content: `content of ${number}` };
  return { ...work, kind, id: await ask[kind](fleet, senders, work) };
}

type Work = Pick<Accepted, "number" | "repository" | "file" | "content">;

const ask: Readonly<Record<Kind, (fleet: ChaosFleet, senders: Senders, work: Work) => Promise<string>>> = {
  session: (fleet, _, { number, repository, file, content }) =>
    idOf(
      post(
        fleet,
        "/session/create",
        {
          prompt: `write ${file}: ${content}, then shell sleep 0.5, then write more-${number}.txt: more`,
          repositories: [`${fleet.forge.url}/acme/${repository}`],
        },
        `chaos-${number}`,
      ),
    ),
  trigger: (fleet, _, { number, repository, content }) =>
    idOf(post(fleet, `/automation/${repository}/trigger`, { number, content }, `chaos-${number}`)),
  webhook(fleet, { webhooks }, { number, repository, content }) {
    const hook = webhooks.get(repository);
    if (hook === undefined) throw new Error(`${repository} has no webhook`);
    const body = JSON.stringify({ number, content });
    return idOf(
      deliver(fleet, {
        path: `/hook/${hook.id}`,
        body,
        headers: { "X-Signature": signatureOf(hook.secret, body) },
      }),
    );
  },
  event(fleet, { connection }, { number, repository, content }) {
    const url = `${fleet.forge.url}/acme/${repository}`;
    const issue = { id: number, number, title: content, body: "", html_url: `${url}/issues/${number}`, state: "open" };
    const body = JSON.stringify({
      action: "opened",
      issue: { ...issue, labels: [], assignees: [], user: sender, created_at: "2026-01-01T00:00:00Z" },
      repository: {
        id: 1,
        full_name: `acme/${repository}`,
        html_url: url,
        clone_url: `${url}.git`,
        default_branch: "main",
      },
      sender,
    });
    const headers = {
      "X-GitHub-Event": "issues",
      "X-GitHub-Delivery": randomUUID(),
      "X-Hub-Signature-256": signatureOf(connection.secret, body),
    };
    return idOf(deliver(fleet, { path: `/hook/forge/${connection.id}`, body, headers }));
  },
};

const sender = { id: 7, login: "somebody", type: "User" };

async function idOf(answer: Promise<{ readonly id: string }>): Promise<string> {
  return (await answer).id;
}

function signatureOf(secret: string, body: string): string {
  return `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
}
