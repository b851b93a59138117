import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { Insight } from "../../domain/insight/insight.ts";
import { Icon } from "../elements/icon.tsx";
import { ErrorText, Loading } from "../elements/notice.tsx";
import { useTitle } from "../elements/use-title.ts";
import { questionOf, useInsightFilter } from "../insight/filter.ts";
import { InsightFilters } from "../insight/filters.tsx";
import { groupName, Groups } from "../insight/groups.tsx";
import { Plots } from "../insight/plots.tsx";
import { Totals } from "../insight/totals.tsx";
import { client } from "../query.ts";
import { useElementTexts } from "../texts/elements.ts";
import { formatUtcDay } from "../texts/formats.ts";
import { useInsightTexts } from "../texts/insight.ts";

/** How long figures are taken for the present ones, in ms: they are counted every few seconds. */
const staleTime = 10_000;

/** An organization's figures: numbers, plots and tables. */
export function InsightPage() {
  const texts = useInsightTexts();
  const { tryAgain } = useElementTexts();
  const [filter] = useInsightFilter();
  useTitle(texts.title);
  const [opened] = useState(() => new Date());
  const asked = questionOf(filter, opened);
  const csv = client.insight.csvAddress(asked);
  const found = useQuery({
    queryKey: ["insight", asked],
    queryFn: () => client.insight.figures(asked),
    staleTime,
    // The page keeps its form while another choice is loaded.
    placeholderData: (before) => before,
  });
  const { data: insight, error } = found;
  const { group, key } = filter;
  const onlyName = group === undefined || key === undefined ? null : groupName(groupOf(insight, key), group, texts);
  return (
    <div className="mx-auto max-w-7xl space-y-4 px-4 py-5 md:px-6">
      <div className="flex flex-wrap items-center gap-3">
        <h1 className="me-auto text-xl font-semibold">{texts.title}</h1>
        {insight !== undefined && (
          <a href={csv} download className="button">
            <Icon name="download" />
            {texts.csv}
            <span className="sr-only">: {daysOf(insight)}</span>
          </a>
        )}
      </div>
      <InsightFilters onlyName={onlyName} />
      {error !== null && (
        <div className="space-y-3">
          <ErrorText error={error} />
          <button type="button" className="button" onClick={() => void found.refetch()}>
            {tryAgain}
          </button>
        </div>
      )}
      {error === null && (insight === undefined ? <Loading lines={10} /> : <Shown insight={insight} csv={csv} />)}
    </div>
  );
}

/** The one group that is shown; its name is known if it is among those with the most sessions. */
function groupOf(insight: Insight | undefined, key: string): { readonly key: string; readonly name: string | null } {
  return insight?.groups.find((group) => group.key === key) ?? { key, name: null };
}

const daysOf = ({ from, to }: Insight): string => `${formatUtcDay(from)} – ${formatUtcDay(to)}`;

function Shown({ insight, csv }: { insight: Insight; csv: string }) {
  const texts = useInsightTexts();
  const { total, groupBy } = insight;
  if (total.sessions === 0 && total.pullRequests === 0 && total.inputTokens === 0) {
    return (
      <div className="space-y-1 px-4 py-16 text-center">
        <p className="font-medium">{texts.empty.title}</p>
        <p className="text-sm text-muted">{texts.empty.text}</p>
      </div>
    );
  }
  return (
    <>
      <Totals total={total} />
      {groupBy !== null && <Groups insight={insight} dimension={groupBy} />}
      <Plots insight={insight} csv={csv} />
      <p className="text-xs text-muted">
        {daysOf(insight)}. {texts.utc} {texts.stillOpen}
      </p>
    </>
  );
}
