import { parseArgs } from "node:util";
import { quantile } from "../../bench/measure.ts";
import { canCutNetworks } from "./network-link.ts";
import { runChaos } from "./run.ts";

/**
 * A fleet under fire: `npm run chaos -- --sessions 500 --seed 7`. The same seed makes the same things go wrong in the same
 * order; `--pause 3` has them happen three times less often, for a slow machine. Ends with 1 where a promise was broken.
 */
const { values } = parseArgs({
  options: {
    sessions: { type: "string", default: "500" },
    seed: { type: "string", default: String(Math.floor(Math.random() * 1_000_000)) },
    apis: { type: "string", default: "2" },
    workers: { type: "string", default: "4" },
    minutes: { type: "string", default: "60" },
    pause: { type: "string", default: "1" },
  },
});
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
  limitMs: Number(values.minutes) * 60_000,
  tell: (line) => process.stdout.write(`${line}\n`),
});
const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`;
process.stdout.write(
  [
    `seed ${seed}: ${values.sessions} sessions in ${seconds(report.tookMs)}`,
    `mishaps: ${JSON.stringify(report.mishaps)}`,
    `tried again by themselves after a passing failure: ${JSON.stringify(report.retried)}`,
    `recovery of ${report.recoveriesMs.length} sessions: p50 ${seconds(quantile(report.recoveriesMs, 0.5))}, p99 ${seconds(quantile(report.recoveriesMs, 0.99))}`,
    report.broken.length === 0 ? "every promise was kept" : `BROKEN:\n${report.broken.join("\n")}`,
    "",
  ].join("\n"),
);
process.exit(report.broken.length === 0 ? 0 : 1);
