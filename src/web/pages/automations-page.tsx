import { Link } from "@tanstack/react-router";
import type { Automation } from "../../domain/automations/automation.ts";
import { AutomationBadge } from "../automations/automation-badge.tsx";
import { PagedList } from "../elements/paged-list.tsx";
import { Ago } from "../elements/time.tsx";
import { useTitle } from "../elements/use-title.ts";
import { client, useMay } from "../query.ts";
import { useAutomationTexts } from "../texts/automations.ts";
import { useElementTexts } from "../texts/elements.ts";

/** Automations: prompts whose placeholders an event fills. */
export function AutomationsPage() {
  const may = useMay("write");
  const texts = useAutomationTexts();
  useTitle(texts.title);
  return (
    <div className="space-y-4">
      <div className="flex flex-wrap items-center gap-3">
        <h1 className="mr-auto text-xl font-semibold">{texts.title}</h1>
        {may && (
          <Link to="/automations/new" className="button button-primary">
            {texts.creation.title}
          </Link>
        )}
      </div>
      <PagedList
        label={texts.title}
        queryKey={["automations", "pages"]}
        readPage={(cursor) => client.automation.list({ limit: 30, cursor })}
        itemsOf={(page) => page.automations}
        empty={texts.empty}
      >
        {(automation) => <Row key={automation.id} automation={automation} />}
      </PagedList>
    </div>
  );
}

function Row({ automation }: { automation: Automation }) {
  const { id, name, macro, repositories, createdAt } = automation;
  const { noRepository } = useElementTexts();
  return (
    <li className="relative flex items-center gap-x-3 px-4 py-3 hover:bg-sunken">
      <div className="min-w-0 flex-1">
        <Link to="/automations/$id" params={{ id }} className="font-medium break-words after:absolute after:inset-0">
          <bdi>{name}</bdi>
        </Link>
        <p className="text-sm break-words text-muted">
          <code className="text-xs break-all">{macro}</code> ·{" "}
          {repositories.map((repository) => repository.name).join(", ") || noRepository} · <Ago at={createdAt} />
        </p>
      </div>
      <AutomationBadge automation={automation} />
    </li>
  );
}
