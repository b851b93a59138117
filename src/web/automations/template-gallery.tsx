import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { AutomationTemplate } from "../../domain/automations/automation-file.ts";
import { ErrorText, Loading } from "../elements/notice.tsx";
import { useAutomationTexts } from "../texts/automations.ts";
import { useTemplates } from "./use-chosen-event.ts";

/** The value in the page's address for a new automation without a template. */
export const emptyTemplate = "none";

/** The beginnings of a new automation: a card for each template, and one for none. */
export function TemplateGallery() {
  const texts = useAutomationTexts().gallery;
  const list = useTemplates();
  return (
    <section aria-labelledby="templates" className="space-y-3">
      <h2 id="templates" className="text-muted">
        {texts.title}
      </h2>
      <ErrorText error={list.error} />
      {list.isLoading && <Loading lines={6} />}
      <ul aria-labelledby="templates" className="grid gap-3 sm:grid-cols-2 lg:grid-cols-3">
        <Card template={emptyTemplate} name={texts.empty} about={texts.emptyAbout} />
        {list.data?.templates.map((template) => (
          <Card key={template.id} template={template.id} name={template.automation.name} about={template.description}>
            {startsOf(template)}
          </Card>
        ))}
      </ul>
    </section>
  );
}

function Card({
  template,
  name,
  about,
  children,
}: {
  readonly template: string;
  readonly name: string;
  readonly about: string;
  readonly children?: ReactNode;
}) {
  return (
    <li className="card relative flex flex-col gap-1 p-4 hover:bg-hover">
      <Link to="/automations/new" search={{ template }} className="font-medium after:absolute after:inset-0">
        {name}
      </Link>
      <p className="text-sm text-muted">{about}</p>
      {children !== undefined && <p className="mt-auto pt-2 font-mono text-xs wrap-anywhere text-muted">{children}</p>}
    </li>
  );
}

/** The triggers of the template's automation, in words. */
function startsOf({ automation: { triggers } }: AutomationTemplate): string {
  return triggers
    .map((trigger) => {
      if (trigger.type === "schedule") return `${trigger.cron} (${trigger.timeZone})`;
      if (trigger.type === "source") return [trigger.source, ...trigger.events].join(" ");
      return trigger.type === "forge" ? trigger.events.join(" ") : trigger.type;
    })
    .join(" · ");
}
