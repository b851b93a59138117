import { useQuery } from "@tanstack/react-query";
import { useId } from "react";
import { insightDimensions } from "../../domain/insight/dimension.ts";
import { Icon } from "../elements/icon.tsx";
import { namesQuery } from "../elements/names-query.ts";
import { Select } from "../elements/select.tsx";
import { client } from "../query.ts";
import { useInsightTexts } from "../texts/insight.ts";
import { choiceOfDays, questionOf, useInsightFilter } from "./filter.ts";

/** The filters of the figures. @param onlyName the name of the one group that is shown; null: all are */
export function InsightFilters({ onlyName }: { onlyName: string | null }) {
  const texts = useInsightTexts();
  const [filter, change] = useInsightFilter();
  const repositories = useQuery(
    namesQuery("repositories", client.repository.list, ({ codeRepositories }) => codeRepositories),
  );
  const hasOwnDays = filter.from !== undefined || filter.to !== undefined;
  return (
    <fieldset aria-label={texts.filters} className="flex min-w-0 flex-wrap items-center gap-1">
      <Select
        isQuiet
        label={texts.period}
        value={hasOwnDays ? "own" : filter.days === undefined ? undefined : (String(filter.days) as "7" | "90" | "365")}
        all={texts.usualPeriod}
        options={[
          ...choiceOfDays.map((days) => ({ value: String(days) as "7" | "90" | "365", name: texts.periods[days] })),
          { value: "own" as const, name: texts.periods.own },
        ]}
        onChange={(period) => {
          const none = { days: undefined, from: undefined, to: undefined };
          const { from, to } = questionOf(filter, new Date());
          if (period === "own") change({ ...none, from, to });
          else change({ ...none, days: choiceOfDays.find((days) => String(days) === period) });
        }}
      />
      {hasOwnDays && (
        <>
          <DayField label={texts.from} value={filter.from} onChange={(from) => change({ from })} />
          <DayField label={texts.to} value={filter.to} onChange={(to) => change({ to })} />
        </>
      )}
      <Select
        isQuiet
        label={texts.by}
        value={filter.by}
        all={texts.byDay}
        options={[{ value: "week", name: texts.byWeek }]}
        onChange={(by) => change({ by })}
      />
      <Select
        isQuiet
        label={texts.repository}
        value={filter.repository}
        all={texts.allRepositories}
        options={repositories.data?.map(({ id, name }) => ({ value: id, name })) ?? []}
        onChange={(repository) => change({ repository })}
      />
      <Select
        isQuiet
        label={texts.group}
        value={filter.group}
        all={texts.notGrouped}
        options={insightDimensions.map((value) => ({ value, name: texts.dimensions[value] }))}
        onChange={(group) => change({ group, key: undefined })}
      />
      {onlyName !== null && (
        <button type="button" className="button button-quiet" onClick={() => change({ key: undefined })}>
          <Icon name="close" />
          {texts.only(onlyName)}
        </button>
      )}
    </fieldset>
  );
}

function DayField({
  label,
  value,
  onChange,
}: {
  label: string;
  value: string | undefined;
  onChange: (day: string | undefined) => void;
}) {
  const id = useId();
  return (
    <div className="flex items-center gap-1 text-sm">
      <label htmlFor={id} className="text-muted">
        {label}
      </label>
      <input
        id={id}
        type="date"
        className="field w-auto"
        value={value ?? ""}
        min="2000-01-01"
        // An empty day would end the choice of days.
        onChange={({ target }) => target.value !== "" && onChange(target.value)}
      />
    </div>
  );
}
