import type { SystemProblem } from "../../domain/system/health.ts";
import { Badge } from "../elements/badge.tsx";
import { Icon } from "../elements/icon.tsx";
import { useSystemTexts } from "../texts/system.ts";

/** The problems of the server with their remedies; or that there is none. */
export function Problems({ problems }: { problems: readonly SystemProblem[] }) {
  const texts = useSystemTexts();
  return (
    <section aria-label={texts.wrong} className="space-y-2">
      {/* Screen readers hear how many there are when that changes. */}
      <output className="flex items-center gap-2 text-sm font-medium">
        {problems.length === 0 ? (
          <>
            <Icon name="check" className="size-4 text-good" />
            {texts.nothingWrong}
          </>
        ) : (
          <>
            <Icon name="warning" className="size-4 text-warn" />
            {texts.problems(problems.length)}
          </>
        )}
      </output>
      {problems.length > 0 && (
        <ul aria-label={texts.wrong} className="card divide-y divide-line">
          {problems.map(({ code, severity, what, remedy }) => (
            <li key={code} className="flex flex-wrap items-baseline gap-x-3 gap-y-1 px-4 py-3 text-sm">
              <div className="min-w-0 flex-1 basis-64">
                <p className="font-medium wrap-anywhere">{what}</p>
                <p className="wrap-anywhere text-muted">{remedy}</p>
              </div>
              <Badge tone={severity} label={texts.severities[severity]} />
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
