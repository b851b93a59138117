import { Link } from "@tanstack/react-router";
import type { Automation } from "../../domain/automations/automation.ts";
import { AutomationBadge } from "../automations/automation-badge.tsx";
import { PagedList } from "../elements/paged-list.tsx";
import { Ago } from "../elements/time.tsx";
import { useTitle } from "../elements/use-title.ts";
import { client, useMay } from "../query.ts";

/** Automations: prompts whose placeholders an event fills. */
export function AutomationsPage() {
  const may = useMay("write");
  useTitle("Automations");
  return (
    <div className="space-y-4">
      <div className="flex flex-wrap items-center gap-3">
        <h1 className="mr-auto text-xl font-semibold">Automations</h1>
        {may && (
          <Link to="/automations/new" className="button button-primary">
            New automation
          </Link>
        )}
      </div>
      <PagedList
        label="Automations"
        queryKey={["automations", "pages"]}
        readPage={(cursor) => client.automation.list({ limit: 30, cursor })}
        itemsOf={(page) => page.automations}
        empty="No automations yet. An automation is a saved prompt with placeholders that its trigger fills in."
      >
        {(automation) => <Row key={automation.id} automation={automation} />}
      </PagedList>
    </div>
  );
}

function Row({ automation }: { automation: Automation }) {
  const { id, name, macro, repositories, createdAt } = automation;
  return (
    <li className="relative flex items-center gap-x-3 px-4 py-3 hover:bg-sunken">
      <div className="min-w-0 flex-1">
        <Link to="/automations/$id" params={{ id }} className="font-medium break-words after:absolute after:inset-0">
          <bdi>{name}</bdi>
        </Link>
        <p className="text-sm break-words text-muted">
          <code className="text-xs break-all">{macro}</code> ·{" "}
          {repositories.map((repository) => repository.name).join(", ") || "No repository"} · <Ago at={createdAt} />
        </p>
      </div>
      <AutomationBadge automation={automation} />
    </li>
  );
}
