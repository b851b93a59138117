import { join } from "node:path";
import { parseArgs } from "node:util";
import { quantile } from "../../bench/measure.ts";
import { canCutNetworks } from "./network-link.ts";
import { leaseMs } from "./fleet.ts";
import { describeRecovery, slowRecoveries } from "./recoveries.ts";
import { runChaos } from "./run.ts";

/**
 * A fleet under fire: `npm run chaos -- --sessions 500 --seed 7`. The same seed makes the same things go wrong in the same
 * order. For a slow machine, `--pause 3` has them happen three times less often, and `--places 2` has each worker do less at once. The
 * slowest recoveries are explained at the end. Ends with 1 where a promise was broken.
 */
const { values } = parseArgs({
  options: {
    sessions: { type: "string", default: "500" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 1_000_000)) },
    apis: { type: "string", default: "2" },
    workers: { type: "string", default: "4" },
    minutes: { type: "string", default: "60" },
    pause: { type: "string", default: "1" },
    places: { type: "string", default: "4" },
  },
});
// As in `npm test`: else each start of a worker takes the types out of its sources again, 0.9 s of a core instead of 0.4.
process.env["NODE_COMPILE_CACHE"] ??= join(import.meta.dirname, "../../node_modules/.cache/node");
const seed = Number(values.seed);
const namespaces = canCutNetworks();
const cutBy = namespaces
  ? "network namespaces"
  : "a proxy that stalls (as root, with iproute2, it is network namespaces)";
process.stdout.write(`seed ${seed}; connections to the database are cut by ${cutBy}\n`);
const report = await runChaos({
  seed,
  sessions: Number(values.sessions),
  apis: Number(values.apis),
  workers: Number(values.workers),
  namespaces,
  pauseFactor: Number(values.pause),
  places: Number(values.places),
  limitMs: Number(values.minutes) * 60_000,
  tell: (line) => process.stdout.write(`${line}\n`),
});
const broken = [...report.broken, ...slowRecoveries(report.recoveries, leaseMs)];
const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;
const took = report.recoveries.map(({ tookMs }) => tookMs);
const own = report.recoveries.map(({ ownMs }) => ownMs).toSorted((a, b) => a - b);
const quantiles = (sorted: readonly number[]): string =>
  `p50 ${seconds(quantile(sorted, 0.5))}, p99 ${seconds(quantile(sorted, 0.99))}`;
const slowMs = 10_000;
process.stdout.write(
  [
    `seed ${seed}: ${values.sessions} sessions in ${seconds(report.tookMs)}`,
    `mishaps: ${JSON.stringify(report.mishaps)}`,
    `tried again by themselves after a passing failure: ${JSON.stringify(report.retried)}`,
    `of the feedback loop: ${JSON.stringify(report.loop)}`,
    ...report.recoveries.filter(({ tookMs }) => tookMs > slowMs).map(describeRecovery),
    `recovery of ${took.length} sessions: ${quantiles(took)}`,
    `the same without the time in which mishaps left no worker, or no place on those that were left: ${quantiles(own)}`,
    broken.length === 0 ? "every promise was kept" : `BROKEN:\n${broken.join("\n")}`,
    "",
  ].join("\n"),
);
process.exit(broken.length === 0 ? 0 : 1);
