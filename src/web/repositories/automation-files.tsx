import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { AutomationFiles } from "../../domain/automations/automation-file.ts";
import { Badge } from "../elements/badge.tsx";
import { ConfirmButton } from "../elements/dialog.tsx";
import { Fact } from "../elements/fact.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { Ago } from "../elements/time.tsx";
import { useMay } from "../query.ts";
import { useRepositoryTexts } from "../texts/repositories.ts";
import { calls } from "./calls.ts";
import { Loaded, Section } from "./section.tsx";

const refreshMs = 3_000;

/** Whether a repository's automations are read from its files, and each file's outcome. */
export function AutomationFilesSettings({ id }: { id: string }) {
  const texts = useRepositoryTexts().files;
  const files = useQuery({
    queryKey: ["repository", id, "automation files"],
    queryFn: () => calls.automationFiles(id),
    refetchInterval: ({ state }) => (state.data?.enabled === true ? refreshMs : false),
  });
  const may = useMay("admin");
  return (
    <Section
      title={texts.title}
      about={texts.about}
      action={
        files.data !== undefined && (
          <Badge tone={files.data.enabled ? "good" : "muted"} label={files.data.enabled ? texts.on : texts.off} />
        )
      }
    >
      <Loaded query={files}>
        {(found) => (
          <>
            {found.enabled && <Read files={found} />}
            {may && <Switch id={id} isOn={found.enabled} />}
          </>
        )}
      </Loaded>
    </Section>
  );
}

function Read({ files: { branch, commit, syncedAt, problem, files } }: { files: AutomationFiles }) {
  const texts = useRepositoryTexts().files;
  return (
    <>
      {syncedAt === null && problem === null ? (
        <p className="text-sm text-muted">{texts.waiting}</p>
      ) : (
        <dl className="flex flex-wrap gap-x-5 gap-y-1 text-sm">
          {branch !== null && <Fact name={texts.branch}>{branch}</Fact>}
          {commit !== null && (
            <Fact name={texts.commit}>
              <code className="text-xs">{commit.slice(0, 12)}</code>
            </Fact>
          )}
          {syncedAt !== null && (
            <Fact name={texts.read}>
              <Ago at={syncedAt} />
            </Fact>
          )}
        </dl>
      )}
      {problem !== null && <ErrorText error={new Error(texts.problem(problem))} />}
      {syncedAt !== null && files.length === 0 && <p className="text-sm text-muted">{texts.none}</p>}
      {files.length > 0 && (
        <ul aria-label={texts.list} className="divide-y divide-line text-sm">
          {files.map((file) => (
            <File key={file.path} file={file} />
          ))}
        </ul>
      )}
    </>
  );
}

function File({ file: { path, url, automationId, problem } }: { file: AutomationFiles["files"][number] }) {
  const texts = useRepositoryTexts().files;
  return (
    <li className="space-y-1 py-2">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <code className="min-w-0 flex-1 text-xs max-sm:basis-full break-all">
          {url === null ? (
            path
          ) : (
            <a href={url} target="_blank" rel="noreferrer noopener" className="underline">
              {path}
            </a>
          )}
        </code>
        {automationId !== null && (
          <Link to="/automations/$id" params={{ id: automationId }} className="text-accent underline">
            {texts.automation}
            <span className="sr-only"> {path}</span>
          </Link>
        )}
        <Badge tone={problem === null ? "good" : "bad"} label={problem === null ? texts.works : texts.refused} />
      </div>
      {problem !== null && <p className="wrap-anywhere text-bad">{problem}</p>}
    </li>
  );
}

function Switch({ id, isOn }: { id: string; isOn: boolean }) {
  const texts = useRepositoryTexts().files;
  const queries = useQueryClient();
  const change = useMutation({
    mutationFn: (enabled: boolean) => calls.setAutomationFiles(id, enabled),
    onSuccess: (files) => {
      queries.setQueryData(["repository", id, "automation files"], files);
      void queries.invalidateQueries({ queryKey: ["automations"] });
    },
  });
  return (
    <div className="space-y-2">
      <ErrorText error={change.error} />
      {isOn ? (
        <ConfirmButton
          button={texts.switchOff}
          disabled={change.isPending}
          question={texts.switchOffQuestion}
          onConfirm={() => change.mutate(false)}
        >
          {texts.switchOffAbout}
        </ConfirmButton>
      ) : (
        <>
          <p className="text-sm text-muted">{texts.switchOnAbout}</p>
          <button type="button" className="button" disabled={change.isPending} onClick={() => change.mutate(true)}>
            {texts.switchOn}
          </button>
        </>
      )}
    </div>
  );
}
