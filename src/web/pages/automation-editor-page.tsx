import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import type { Automation } from "../../domain/automations/automation.ts";
import { AutomationForm } from "../automations/automation-form.tsx";
import { emptyTemplate, TemplateGallery } from "../automations/template-gallery.tsx";
import { useTemplates } from "../automations/use-chosen-event.ts";
import { Absent, ErrorText, Loading, Notice } from "../elements/notice.tsx";
import { BackLink } from "../elements/page-head.tsx";
import { searchOfPage } from "../elements/search-of-page.ts";
import { useTitle } from "../elements/use-title.ts";
import { client, useMay } from "../query.ts";
import { useAutomationTexts } from "../texts/automations.ts";

/** A new automation: first what it starts from, then its form. */
export function NewAutomationPage() {
  const given = useSearch({ from: "/automations/new", shouldThrow: false });
  const { template } = searchOfPage(given);
  const may = useMay("write");
  const texts = useAutomationTexts();
  useTitle(texts.creation.title);
  if (!may) return <Notice title={texts.creation.denied}>{texts.askAdmin}</Notice>;
  return (
    <div className="space-y-4">
      <BackLink to="/automations" name={texts.title} />
      <h1 className="text-xl font-semibold">{texts.creation.title}</h1>
      {template === undefined ? <TemplateGallery /> : <NewAutomation key={template} startsFrom={template} />}
    </div>
  );
}

function NewAutomation({ startsFrom }: { readonly startsFrom: string }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const { creation: texts, form } = useAutomationTexts();
  const list = useTemplates();
  const template = list.data?.templates.find(({ id }) => id === startsFrom);
  if (template === undefined && startsFrom !== emptyTemplate) {
    if (list.data !== undefined) return <TemplateGallery />;
    return list.error === null ? <Loading lines={8} /> : <ErrorText error={list.error} />;
  }
  return (
    <>
      <p className="text-sm text-muted">
        {template?.description ?? texts.byCalls}
        {template?.namesRepositories === true && ` ${texts.nameRepositories}`}{" "}
        <Link to="/automations/new" className="text-accent underline">
          {texts.another}
        </Link>
      </p>
      <AutomationForm
        template={template}
        verb={texts.verb}
        cancel={
          <Link to="/automations" className="button">
            {form.cancel}
          </Link>
        }
        save={async (input) => {
          const triggers = template?.automation.triggers;
          const { id } = await client.automation.create({ ...input, ...(triggers !== undefined && { triggers }) });
          void queries.invalidateQueries({ queryKey: ["automations"] });
          await navigate({ to: "/automations/$id", params: { id }, ignoreBlocker: true });
        }}
      />
    </>
  );
}

/** The form of an existing automation. */
export function EditAutomationPage({ id }: { id: string }) {
  const automation = useQuery({
    // Apart from what its page shows: the form begins with what is saved now, and what is being written must not be replaced.
    queryKey: ["automation being edited", id],
    queryFn: () => client.automation.get(id),
    staleTime: Infinity,
    gcTime: 0,
  });
  const may = useMay("write");
  const texts = useAutomationTexts();
  useTitle(texts.edit.pageTitle(automation.data?.name ?? texts.edit.unknown));
  const found = automation.data;
  if (!may) return <Notice title={texts.edit.denied}>{texts.askAdmin}</Notice>;
  if (found === undefined) {
    return (
      <Absent
        missing={texts.missing}
        error={automation.error}
        reason={texts.missingReason}
        retry={automation.refetch}
      />
    );
  }
  if (found.file !== null) {
    return <Notice title={texts.edit.inFile}>{texts.edit.changeFile(found.file.path)}</Notice>;
  }
  return <Found automation={found} shownAs={id} />;
}

function Found({ automation, shownAs }: { readonly automation: Automation; readonly shownAs: string }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const texts = useAutomationTexts();
  const toPage = { to: "/automations/$id", params: { id: shownAs } } as const;
  return (
    <div className="space-y-4">
      <Link {...toPage} className="block w-fit max-w-full text-sm wrap-anywhere text-muted hover:text-ink">
        <span aria-hidden>‹ </span>
        <bdi>{automation.name}</bdi>
      </Link>
      <h1 className="text-xl font-semibold">{texts.edit.title}</h1>
      <AutomationForm
        automation={automation}
        verb={texts.save}
        cancel={
          <Link {...toPage} className="button">
            {texts.form.cancel}
          </Link>
        }
        save={async (_, changes) => {
          // Only what was changed here: others may have changed the rest meanwhile.
          queries.setQueryData(["automation", shownAs], await client.automation.update(automation.id, changes));
          void queries.invalidateQueries({ queryKey: ["automations"] });
          await navigate({ ...toPage, ignoreBlocker: true });
        }}
      />
    </div>
  );
}
