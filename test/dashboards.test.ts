import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { failureCodes } from "../src/domain/errors/errors.ts";
import { createMetrics, type MetricDescription } from "../src/metrics/metrics.ts";

/** What is shipped to look at the metrics with asks only for metrics and labels that there are. */
const deploy = join(import.meta.dirname, "../deploy");
/** Given by Prometheus to each sample, and by a histogram to its buckets. */
const everywhere = ["job", "instance", "le"];

interface Query {
  readonly name: string;
  readonly expression: string;
}

const known = new Map<string, MetricDescription>();

beforeAll(async () => {
  const metrics = createMetrics();
  metrics.watchProcess();
  for (const described of await metrics.describe()) known.set(described.name, described);
});

async function alerts(): Promise<Query[]> {
  const file = parse(await readFile(join(deploy, "prometheus/alerts.yml"), "utf8")) as {
    groups: { rules: { alert: string; expr: string; labels: object; annotations: Record<string, string> }[] }[];
  };
  return file.groups.flatMap(({ rules }) => rules).map(({ alert, expr }) => ({ name: alert, expression: expr }));
}

async function panels(): Promise<Query[]> {
  const file = JSON.parse(await readFile(join(deploy, "grafana/offstage.json"), "utf8")) as {
    panels: { title: string; targets?: { expr: string }[] }[];
  };
  return file.panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }) => ({ name: title, expression: expr })),
  );
}

/** One sentence for each name and label that no metric of ours has. */
function complaints({ name, expression }: Query): string[] {
  const selectors = [...expression.matchAll(/\b((?:offstage|process|nodejs)_\w+)(?:\{([^}]*)\})?/gu)];
  if (selectors.length === 0) return [`${name} asks for no metric`];
  return selectors.flatMap(([, asked = "", braces = ""]) => {
    const metric = metricOf(asked);
    if (metric === undefined) return [`${name} asks for ${asked}, which is no metric`];
    const labels = [...braces.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*"/gu)].map(([, label = ""]) => label);
    return labels
      .filter((label) => !everywhere.includes(label) && !metric.labels.includes(label))
      .map((label) => `${name} asks for the label ${label}, which ${metric.name} has not`);
  });
}

/** A histogram is read by its parts, everything else by its name. */
function metricOf(asked: string): MetricDescription | undefined {
  const whole = known.get(asked);
  if (whole !== undefined) return whole.type === "histogram" ? undefined : whole;
  const histogram = known.get(asked.replace(/_(?:bucket|count|sum)$/u, ""));
  return histogram?.type === "histogram" ? histogram : undefined;
}

/** Labels that a query sums by, beside the metrics that it asks for. */
function groupedBy(expression: string): string[] {
  return [...expression.matchAll(/\b(?:by|on) \(([^)]*)\)/gu)].flatMap(([, names = ""]) => names.split(/,\s*/u));
}

describe.each([
  ["deploy/prometheus/alerts.yml", alerts],
  ["deploy/grafana/offstage.json", panels],
])("%s", (_file, read) => {
  test("asks only for metrics and labels that there are", async () => {
    const queries = await read();
    expect(queries.length).toBeGreaterThan(10);
    expect(queries.flatMap(complaints)).toEqual([]);
    const labels = new Set([...everywhere, ...[...known.values()].flatMap((metric) => metric.labels)]);
    const grouped = queries.flatMap(({ expression }) => groupedBy(expression));
    expect(grouped.filter((label) => !labels.has(label))).toEqual([]);
  });

  test("names only codes of failures that there are", async () => {
    const codes = (await read()).flatMap(({ expression }) =>
      [...expression.matchAll(/\bcode=~"([^"]*)"/gu)].flatMap(([, names = ""]) => names.split("|")),
    );
    expect(codes.filter((code) => !(failureCodes as readonly string[]).includes(code))).toEqual([]);
  });
});

test("the check itself names what is not there", () => {
  const of = (expression: string): string[] => complaints({ name: "It", expression });
  expect(of("sum(offstage_made_up)")).toEqual(["It asks for offstage_made_up, which is no metric"]);
  expect(of('offstage_attempts_total{code="x"}')).toEqual([
    "It asks for the label code, which offstage_attempts_total has not",
  ]);
  expect(of("offstage_step_duration_seconds")).toEqual([
    "It asks for offstage_step_duration_seconds, which is no metric",
  ]);
  expect(of("offstage_attempts_total_count")).toHaveLength(1);
  expect(of("up == 0")).toEqual(["It asks for no metric"]);
});

test("docs/operating.md names every metric of ours, and none that is not there", async () => {
  const document = await readFile(join(import.meta.dirname, "../docs/operating.md"), "utf8");
  const named = new Set([...document.matchAll(/`(offstage_\w+)`/gu)].map(([, name = ""]) => name));
  const ours = [...known.keys()].filter((name) => name.startsWith("offstage_"));
  expect([...named].toSorted()).toEqual(ours.toSorted());
});
