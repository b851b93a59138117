import { createHmac } from "node:crypto";
import { Agent } from "node:http";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { benchKey, type ApiServerReady } from "./api-server.ts";
import { example, manyConditions, manyListeners } from "./inbound-listeners.ts";
import { compare, comparedHead, machine, table, type Work } from "./measure.ts";
import { poster, type Post } from "./poster.ts";
import { familyCpuMs, startServed, type Served } from "./served.ts";

/**
 * Deliveries to a webhook over HTTP, beside a minimal server that only stores them: another process with the same HTTP
 * server (Fastify) over the same PostgreSQL, with a pool as large, which reads the same JSON and makes one insert of it
 * under the delivery's id, committed as durably as ours before it answers (bare-server.ts). Neither runs in the process
 * that makes the load, and they are measured in turn, round by round, so that what else the machine does meets both.
 * Beyond the bare insert, ours finds the trigger, checks the signature, limits the rate and the queue, notes the
 * delivery's keys, queues a job, tells webhooks and workers of it, and writes the request into log, metrics and audit
 * log.
 *
 * The last two columns are the processor time, in ms, that one delivery takes of the HTTP server's process and of the database's (Linux):
 * they say more than the throughput if others use the machine.
 *
 * "Its rows by hand" is how much of the time is the rows' own: the minimal server writes the same rows into the same tables in one
 * statement, and does nothing else.
 *
 * Then what conditions cost: one event, and 10,000 automations that listen to it on one connection.
 *
 *   npm run bench:inbound
 *   npm run bench:inbound -- --rounds 3 --seconds 1               in less than two minutes
 *   npm run bench:inbound -- --only "POST /hook" --only again     these alone, beside the bare insert; without the conditions
 */
const { values: options } = parseArgs({
  options: {
    rounds: { type: "string", default: "6" },
    seconds: { type: "string", default: "2" },
    connections: { type: "string", multiple: true, default: ["1", "32"] },
    only: { type: "string", multiple: true },
  },
});
const rounds = Number(options.rounds);
const roundMs = Number(options.seconds) * 1_000;
const concurrencies = options.connections.map(Number);

/** Without the ways that were not asked for, except the bare one. */
function asked(ways: Readonly<Record<string, Work>>): Record<string, Work> {
  const { only } = options;
  const kept = Object.entries(ways).filter(
    ([name], place) => place === 0 || only === undefined || only.some((each) => name.includes(each)),
  );
  return kept.length === 1 ? {} : Object.fromEntries(kept);
}

const published = await example("issues", "opened");
/** GitHub's published example of an issue that was opened, of another issue each time: some 12 kB. */
const payload = (n: number) => ({ ...published, issue: { ...published["issue"], id: n, number: n } });
const longText = "It fails on an empty file. ".repeat(250);
/**
 * The worst for a forge's event, which has what an issue says twice, as the forge sent it and in the form that is the same for all: an issue
 * that is nothing but its text. Some 7 kB.
 */
const textPayload = (n: number) => ({
  action: "opened",
  issue: {
    id: n,
    number: n,
    title: "It fails",
    body: longText,
    state: "open",
    html_url: `https://github.com/bench/app/issues/${n}`,
  },
  repository: { full_name: "bench/app", html_url: "https://github.com/bench/app" },
  sender: { id: 1, login: "somebody", type: "User" },
});

/** Delivers to a trigger of its own, and expects what comes of it. */
async function hook(
  { url, post }: { readonly url: string; readonly post: Post },
  macro: string,
  trigger: object,
  outcome: "accepted" | "duplicate" | "filtered",
  addressOf = (id: string): string => new URL(`/hook/${id}`, url).href,
): Promise<Work> {
  const automation = { name: macro, macro, instructions: "Work", triggers: [{ type: "webhook", ...trigger }] };
  const key = { authorization: `Bearer ${benchKey}` };
  const made = JSON.parse(await post(new URL("/automation/create", url).href, automation, key)) as {
    triggers: { id: string; secret?: string }[];
  };
  const { id, secret } = made.triggers[1] ?? {};
  const address = addressOf(id ?? "");
  let n = 0;
  return async () => {
    n += 1;
    const body = JSON.stringify(payload(n));
    const signature =
      secret === undefined ? {} : { "x-signature": createHmac("sha256", secret).update(body).digest("hex") };
    const deliveryId = outcome === "duplicate" ? macro : `${macro}-${n}`;
    const answer = await post(address, body, { "webhook-id": deliveryId, ...signature });
    if (n > 1 && !answer.includes(`"${outcome}"`)) throw new Error(`${macro} was answered ${answer}`);
  };
}

/** Delivers an issue that was opened to a connection of GitHub, to which one automation listens. */
async function forgeHook(
  { url, post }: { readonly url: string; readonly post: Post },
  path: string,
  of: (n: number) => object,
  addressOf = (id: string): string => new URL(`/hook/forge/${id}`, url).href,
): Promise<Work> {
  const key = { authorization: `Bearer ${benchKey}` };
  const forge = { kind: "github", webUrl: `https://github.com/${path}`, credential: { type: "configured" } };
  const made = JSON.parse(await post(new URL("/connection/create", url).href, forge, key)) as {
    readonly id: string;
    readonly webhookSecret: string;
  };
  const listens = { type: "forge", connectionId: made.id, events: ["issue.opened"] };
  const automation = { name: "listens", macro: `listens-${path}`, instructions: "Work", triggers: [listens] };
  await post(new URL("/automation/create", url).href, automation, key);
  const address = addressOf(made.id);
  let n = 0;
  return async () => {
    n += 1;
    const body = JSON.stringify(of(n));
    const answer = await post(address, body, {
      "x-github-event": "issues",
      "x-github-delivery": `forge-${n}`,
      "x-hub-signature-256": `sha256=${createHmac("sha256", made.webhookSecret).update(body).digest("hex")}`,
    });
    if (!answer.includes('"accepted"')) throw new Error(`a forge's delivery was answered ${answer}`);
  };
}

function bare(url: string, post: Post, name: string, of: (n: number) => object): Work {
  let n = 0;
  return async () => {
    n += 1;
    await post(new URL("/event", url).href, JSON.stringify(of(n)), { "webhook-id": `${name}-${n}` });
  };
}

async function deliveries(api: Served<ApiServerReady>, post: Post): Promise<string> {
  const { url, databaseUrl, databasePid } = api.ready;
  const plain = await startServed<{ readonly url: string }>(join(import.meta.dirname, "bare-server.ts"), [databaseUrl]);
  const server = { url, post };
  const signed = { verify: { type: "hmac", header: "x-signature" } };
  const ways = {
    "bare insert": bare(plain.ready.url, post, "bare", payload),
    "POST /hook/{id}": await hook(server, "plain", {}, "accepted"),
    "its rows by hand": await hook(server, "by-hand", {}, "accepted", (id) => `${plain.ready.url}/rows/trigger/${id}`),
    "signed with HMAC": await hook(server, "signed", signed, "accepted"),
    "delivered again": await hook(server, "again", {}, "duplicate"),
    "a condition holds": await hook(
      server,
      "holds",
      { condition: "event.issue.labels.exists(label, label.name == 'bug')" },
      "accepted",
    ),
    "it does not": await hook(server, "filtered", { condition: "event.issue.number == 0" }, "filtered"),
    "of a forge": await forgeHook(server, "bench", payload),
    "that one's rows by hand": await forgeHook(
      server,
      "by-hand",
      payload,
      (id) => `${plain.ready.url}/rows/connection/${id}`,
    ),
  };
  const texts = {
    "bare insert of a text": bare(plain.ready.url, post, "text", textPayload),
    "a text of a forge": await forgeHook(server, "text", textPayload),
    "the text's rows by hand": await forgeHook(
      server,
      "text-by-hand",
      textPayload,
      (id) => `${plain.ready.url}/rows/connection/${id}`,
    ),
  };
  const spent = async (name: string): Promise<number[]> => [
    await (/^bare insert|by hand$/u.test(name) ? plain : api).cpuMs(),
    await familyCpuMs(databasePid),
  ];
  const rows: string[][] = [];
  for (const concurrency of concurrencies)
    for (const compared of [asked(ways), asked(texts)])
      rows.push(...(await compare(compared, { concurrency, rounds, roundMs, spent })));
  await plain.stop();
  return table([...comparedHead, "server", "database"], rows);
}

const api = await startServed<ApiServerReady>(join(import.meta.dirname, "api-server.ts"));
const agent = new Agent({ keepAlive: true, maxSockets: Math.max(...concurrencies) });
try {
  const post = poster(agent);
  process.stdout.write(`${machine()}\n\n`);
  process.stdout.write(`${await deliveries(api, post)}\n`);
  if (options.only === undefined) {
    process.stdout.write(await manyConditions(payload(7)));
    process.stdout.write(await manyListeners(api.ready, post, roundMs * 2));
  }
} finally {
  agent.destroy();
  await api.stop();
}
