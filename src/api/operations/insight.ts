import { z } from "zod";
import type { Database } from "../../database/database.ts";
import { InvalidInputError } from "../../domain/errors/errors.ts";
import { csvOf, type InsightRow } from "../../domain/insight/csv.ts";
import { daysOf, periodsOf, type DayRange } from "../../domain/insight/days.ts";
import { figuresOf, noSums } from "../../domain/insight/figures.ts";
import {
  figuresSchema,
  insightQuerySchema,
  insightSchema,
  mostInsightGroups,
  type Figures,
  type Insight,
  type InsightQuery,
} from "../../domain/insight/insight.ts";
import { readFigures, readKeys, type FiguresQuery } from "../../store/insight/figures.ts";
import { organizationOf } from "../http/auth.ts";
import type { ApiOptions, App } from "../http/context.ts";
import { answers, textAnswers } from "../http/shapes.ts";

const tags = ["Insight"];

/** Adds the operations for figures of an organization's sessions. */
export function addInsightOperations(app: App, { database }: ApiOptions): void {
  app.get(
    "/insight/figures",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "getInsight",
        summary: "Figures of a time: outcomes, pull requests and their merges, waits, tokens and cost",
        querystring: insightQuerySchema,
        response: answers(insightSchema),
      },
    },
    (request) => insightOf(database, organizationOf(request), request.query),
  );
  app.get(
    "/insight/csv",
    {
      config: { operation: { scope: "read" } },
      schema: {
        tags,
        operationId: "getInsightCsv",
        summary: "The same figures as CSV (RFC 4180): a row for each period, or for each period and group",
        querystring: insightQuerySchema,
        response: textAnswers({ "text/csv": z.string() }),
      },
    },
    async (request, reply) => {
      const { days, rows, isGrouped } = await rowsOf(database, organizationOf(request), request.query);
      const names = Object.keys(figuresSchema.shape) as (keyof Figures)[];
      const name = `insight-${days.from}-${days.to}.csv`;
      return reply
        .headers({
          "Content-Type": "text/csv; charset=utf-8",
          "Content-Disposition": `attachment; filename="${name}"`,
        })
        .send(csvOf(rows, ["from", ...(isGrouped ? (["key", "name"] as const) : []), ...names]));
    },
  );
}

/** The requested figures: the days, and the rows of the store. */
function readingOf({ from, to, groupBy, key, repositoryId: asked }: InsightQuery): {
  readonly days: DayRange;
  readonly of: RowsOf;
} {
  if (key !== undefined && groupBy === undefined) {
    throw new InvalidInputError("key: is of no group without groupBy: name both, or neither");
  }
  const days = daysOf({ from, to }, new Date());
  const repositoryId = asked ?? null;
  const isOne = groupBy !== undefined && key !== undefined;
  return {
    days,
    of: isOne ? { repositoryId, dimension: groupBy, keys: [key] } : { repositoryId, dimension: "all", keys: null },
  };
}

type RowsOf = Pick<FiguresQuery, "repositoryId" | "dimension" | "keys">;

async function insightOf(database: Database, organizationId: string, query: InsightQuery): Promise<Insight> {
  const { by, groupBy } = query;
  const { days, of } = readingOf(query);
  const { repositoryId } = of;
  const whole = { ...days, periods: [days.from] };
  const [[total], periods, groups] = await Promise.all([
    readFigures(database, organizationId, { ...whole, ...of, byKey: false }),
    readPeriods(database, organizationId, days, by, of),
    groupBy === undefined
      ? []
      : readKeys(database, organizationId, { ...days, repositoryId, dimension: groupBy }, mostInsightGroups + 1),
  ]);
  const shown = groups.slice(0, mostInsightGroups);
  const keys = shown.map((group) => group.key);
  const ofGroups =
    groupBy === undefined || keys.length === 0
      ? []
      : await readFigures(database, organizationId, { ...whole, repositoryId, dimension: groupBy, keys, byKey: true });
  const sums = new Map(ofGroups.map((each) => [each.key, each.sums]));
  return {
    ...days,
    by,
    timeZone: "UTC",
    groupBy: groupBy ?? null,
    total: figuresOf(total?.sums ?? noSums),
    periods,
    groups: shown.map((group) => ({ ...group, ...figuresOf(sums.get(group.key) ?? noSums) })),
    groupsLeftOut: groups.length > shown.length,
  };
}

async function readPeriods(
  database: Database,
  organizationId: string,
  days: DayRange,
  by: InsightQuery["by"],
  of: RowsOf,
) {
  const periods = periodsOf(days, by);
  const read = await readFigures(database, organizationId, { ...days, ...of, periods, byKey: false });
  const sums = new Map(read.map((each) => [each.from, each.sums]));
  return periods.map((from) => ({ from, ...figuresOf(sums.get(from) ?? noSums) }));
}

/** The rows of a table. With groups, a period of a group in which nothing was has none. */
async function rowsOf(
  database: Database,
  organizationId: string,
  query: InsightQuery,
): Promise<{ readonly days: DayRange; readonly rows: InsightRow[]; readonly isGrouped: boolean }> {
  const { by, groupBy, key } = query;
  const { days, of } = readingOf(query);
  const { repositoryId } = of;
  if (groupBy === undefined) {
    const periods = await readPeriods(database, organizationId, days, by, of);
    return { days, rows: periods.map((each) => ({ ...each, key: "", name: null })), isGrouped: false };
  }
  const known = await readKeys(
    database,
    organizationId,
    { ...days, repositoryId, dimension: groupBy },
    mostInsightGroups,
  );
  const names = new Map(known.map((each) => [each.key, each.name]));
  const keys = key === undefined ? [...names.keys()] : [key];
  const periods = periodsOf(days, by);
  const asked = { ...days, repositoryId, dimension: groupBy, keys, periods, byKey: true };
  const read = await readFigures(database, organizationId, asked);
  return {
    days,
    rows: read.map(({ from, key: group, sums }) => ({
      from,
      key: group,
      name: names.get(group) ?? null,
      ...figuresOf(sums),
    })),
    isGrouped: true,
  };
}
