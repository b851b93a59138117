import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate } from "@tanstack/react-router";
import type { Automation } from "../../domain/automations/automation.ts";
import { AutomationBadge } from "../automations/automation-badge.tsx";
import { Notices } from "../automations/notices.tsx";
import { Runs } from "../automations/runs.tsx";
import { State } from "../automations/state.tsx";
import { TriggerForm } from "../automations/trigger-form.tsx";
import { Triggers } from "../automations/triggers.tsx";
import { ButtonDialog, ConfirmButton } from "../elements/dialog.tsx";
import { useAutomationTexts } from "../texts/automations.ts";
import { formatDollars } from "../texts/formats.ts";
import { Fact } from "../elements/fact.tsx";
import { BackLink, PageTitle } from "../elements/page-head.tsx";
import { RepositoryName } from "../elements/repository-name.tsx";
import { Ago } from "../elements/time.tsx";
import { useTitle } from "../elements/use-title.ts";
import { Absent, ErrorText } from "../elements/notice.tsx";
import { client, useMay } from "../query.ts";

/** One automation: its settings, what triggers it, and its runs. */
export function AutomationPage({ id }: { id: string }) {
  const automation = useQuery({ queryKey: ["automation", id], queryFn: () => client.automation.get(id) });
  const texts = useAutomationTexts();
  useTitle(automation.data?.name ?? texts.one);
  if (automation.data !== undefined) return <Found automation={automation.data} shownAs={id} />;
  return (
    <Absent missing={texts.missing} error={automation.error} reason={texts.missingReason} retry={automation.refetch} />
  );
}

function Found({ automation, shownAs }: { automation: Automation; shownAs: string }) {
  const { name, repositories, targetBranch, agent, priority, budgetUsd, createdAt, instructions, file, gate } =
    automation;
  const texts = useAutomationTexts();
  const may = useMay("write");
  return (
    <div className="space-y-6">
      <div className="space-y-3">
        <BackLink to="/automations" name={texts.title} />
        <PageTitle title={name}>
          <AutomationBadge automation={automation} />
        </PageTitle>
        <dl className="flex flex-wrap gap-x-5 gap-y-1 text-sm">
          {repositories.map((repository) => (
            <Fact key={repository.id} name={texts.facts.repository}>
              <RepositoryName repository={repository} />
            </Fact>
          ))}
          {file !== null && (
            <Fact name={texts.facts.file}>
              {file.url === null ? (
                file.path
              ) : (
                <a href={file.url} className="link">
                  {file.path}
                </a>
              )}
            </Fact>
          )}
          {targetBranch !== null && <Fact name={texts.facts.into}>{targetBranch}</Fact>}
          {agent !== null && <Fact name={texts.facts.agent}>{agent}</Fact>}
          <Fact name={texts.facts.priority}>{priority}</Fact>
          {budgetUsd !== null && <Fact name={texts.facts.budget}>{formatDollars(budgetUsd)}</Fact>}
          <Fact name={texts.facts.created}>
            <Ago at={createdAt} />
          </Fact>
        </dl>
        <Notices automation={automation} />
        {file !== null && file.problem !== null && (
          <ErrorText error={new Error(texts.notices.fileProblem(file.problem))} />
        )}
        {may && <Actions automation={automation} shownAs={shownAs} />}
      </div>
      <section aria-labelledby="instructions" className="space-y-3">
        <h2 id="instructions" className="font-medium">
          {texts.instructions}
        </h2>
        <div className="card divide-y divide-line">
          <pre
            tabIndex={0}
            aria-label={texts.instructions}
            className="max-h-80 overflow-auto p-4 font-sans text-sm break-words whitespace-pre-wrap"
          >
            {instructions}
          </pre>
        </div>
      </section>
      {gate !== null && (
        <section aria-labelledby="gate" className="space-y-3">
          <h2 id="gate" className="font-medium">
            {texts.gate}
          </h2>
          <div className="card">
            <pre tabIndex={0} aria-label={texts.gate} className="max-h-80 overflow-auto p-4 text-xs">
              {gate}
            </pre>
          </div>
        </section>
      )}
      <Triggers automation={automation} shownAs={shownAs} />
      <State automationId={automation.id} />
      <Runs automationId={automation.id} />
    </div>
  );
}

function Actions({ automation, shownAs }: { automation: Automation; shownAs: string }) {
  const { id, paused, file } = automation;
  const { actions: texts, trigger } = useAutomationTexts();
  // One that is kept in a file is changed there.
  const isOwn = file === null;
  const queries = useQueryClient();
  const navigate = useNavigate();
  const show = (changed: Automation): void => {
    queries.setQueryData(["automation", shownAs], changed);
    void queries.invalidateQueries({ queryKey: ["automations"] });
  };
  const pause = useMutation({
    mutationFn: () => client.automation.update(id, { paused: !paused }),
    onSuccess: show,
  });
  const remove = useMutation({
    mutationFn: () => client.automation.delete(id),
    onSuccess: async () => {
      await navigate({ to: "/automations" });
      queries.removeQueries({ queryKey: ["automation", shownAs] });
      await queries.invalidateQueries({ queryKey: ["automations"] });
    },
  });
  const isPending = pause.isPending || remove.isPending;
  return (
    <div className="flex flex-wrap items-center gap-2">
      <ButtonDialog button={trigger.verb} className="button button-primary" disabled={paused} title={trigger.title}>
        {(close) => (
          <TriggerForm
            automation={automation}
            onTriggered={() => {
              close();
              void queries.invalidateQueries({ queryKey: ["runs", id] });
            }}
          />
        )}
      </ButtonDialog>
      {isOwn && (
        <Link to="/automations/$id/edit" params={{ id: shownAs }} className="button">
          {texts.edit}
        </Link>
      )}
      <button type="button" className="button" disabled={isPending} onClick={() => pause.mutate()}>
        {paused ? texts.resume : texts.pause}
      </button>
      {isOwn && (
        <ConfirmButton
          button={texts.delete}
          disabled={isPending}
          question={texts.deleteQuestion}
          onConfirm={() => remove.mutate()}
        >
          {texts.deleteAbout}
        </ConfirmButton>
      )}
      <ErrorText error={pause.error ?? remove.error} />
    </div>
  );
}
