import { useQuery } from "@tanstack/react-query";
import type { SystemHealth } from "../../domain/system/health.ts";
import { ErrorText, Loading } from "../elements/notice.tsx";
import { useTitle } from "../elements/use-title.ts";
import { client } from "../query.ts";
import { DatabaseFacts, ServerFacts } from "../system/facts.tsx";
import { Figures } from "../system/figures.tsx";
import { AllOrganizations } from "../system/organizations.tsx";
import { Problems } from "../system/problems.tsx";
import { Workers } from "../system/workers.tsx";
import { useElementTexts } from "../texts/elements.ts";
import { formatTime } from "../texts/formats.ts";
import { useSystemTexts } from "../texts/system.ts";

/** Milliseconds between two polls, while the page is visible. */
const refreshMs = 3_000;

/** How the server is: what is wrong, then its workers, queue, database and disk. For admins of the server. */
export function SystemPage() {
  const texts = useSystemTexts();
  const { tryAgain } = useElementTexts();
  const {
    data: health,
    error,
    refetch,
  } = useQuery({
    queryKey: ["system"],
    queryFn: () => client.system.health(),
    refetchInterval: refreshMs,
  });
  useTitle(texts.title);
  return (
    <div className="space-y-6">
      <div className="flex flex-wrap items-baseline gap-3">
        <h1 className="me-auto text-xl font-semibold">{texts.title}</h1>
        {health !== undefined && (
          <p className="text-xs text-muted tabular-nums">
            {texts.checked} <time dateTime={health.checkedAt}>{formatTime(health.checkedAt)}</time>
          </p>
        )}
      </div>
      {error !== null && (
        <div className="space-y-3">
          <ErrorText error={error} />
          {health !== undefined && <p className="text-sm text-muted">{texts.old}</p>}
          <button type="button" className="button" onClick={() => void refetch()}>
            {tryAgain}
          </button>
        </div>
      )}
      {health === undefined ? (
        error === null && <Loading lines={10} />
      ) : (
        <>
          <Shown health={health} />
          <AllOrganizations />
        </>
      )}
    </div>
  );
}

function Shown({ health }: { health: SystemHealth }) {
  return (
    <>
      <Problems problems={health.problems} />
      <Figures health={health} />
      <Workers health={health} />
      <div className="grid gap-6 md:grid-cols-2">
        <ServerFacts server={health.server} />
        <DatabaseFacts database={health.database} />
      </div>
    </>
  );
}
