import { request } from "node:http";

/**
 * Holds streams of events open, and reports each event that a watcher reads. A separate process, which gets its orders
 * by IPC.
 */
export interface WatchOrder {
  readonly url: string;
  readonly key: string;
  /** A session for each watcher. */
  readonly sessions: readonly string[];
  /** Local addresses to come from: each has so many ports. */
  readonly from: readonly string[];
}
/** `open` once; then for each round the times at which watchers read it, on the clock that all processes share. */
export type WatchReport = { readonly open: number } | { readonly round: number; readonly at: readonly number[] };

const atOnce = 100;
const now = (): number => performance.timeOrigin + performance.now();

async function watch({ url, key, sessions, from }: WatchOrder): Promise<void> {
  const rounds = new Map<number, number[]>();
  const heard = (round: number): void => {
    let at = rounds.get(round);
    if (at === undefined) {
      at = [];
      rounds.set(round, at);
      const all = at;
      // The first of a round begins to gather: what came by then is sent with the rest.
      const report = (): void => {
        rounds.delete(round);
        process.send?.({ round, at: all } satisfies WatchReport);
      };
      let known = 0;
      const timer = setInterval(() => {
        if (all.length === known) {
          clearInterval(timer);
          report();
        }
        known = all.length;
      }, 1_000);
    }
    at.push(now());
  };
  const open = (session: string, index: number): Promise<void> =>
    new Promise((resolve, reject) => {
      const sent = request(`${url}/session/${session}/events?stream=true`, {
        headers: { authorization: `Bearer ${key}`, accept: "text/event-stream" },
        localAddress: from[index % from.length],
        agent: false,
      });
      sent.once("error", reject);
      sent.once("response", (response) => {
        if (response.statusCode !== 200) reject(new Error(`answered ${response.statusCode}`));
        let isFirst = true;
        response.on("data", (chunk: Buffer) => {
          if (isFirst) {
            isFirst = false;
            resolve();
          }
          for (const [, round] of chunk.toString().matchAll(/"text":"round (\d+)"/gu)) heard(Number(round));
        });
        response.once("error", () => undefined);
      });
      sent.end();
    });
  const left = sessions.entries();
  const lane = async (): Promise<void> => {
    for (const [index, session] of left) await open(session, index);
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  process.send?.({ open: sessions.length } satisfies WatchReport);
}

process.once("message", (order: WatchOrder) => void watch(order));
// Opened streams keep it alive: it ends with who started it.
process.once("disconnect", () => process.exit());
