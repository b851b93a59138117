import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import type { Repository } from "../../domain/repositories/repository.ts";
import { Badge } from "../elements/badge.tsx";
import { ConfirmButton } from "../elements/dialog.tsx";
import { Fact } from "../elements/fact.tsx";
import { Absent, ErrorText } from "../elements/notice.tsx";
import { BackLink, PageTitle } from "../elements/page-head.tsx";
import { RepositoryName } from "../elements/repository-name.tsx";
import { Ago } from "../elements/time.tsx";
import { useTitle } from "../elements/use-title.ts";
import { useMay } from "../query.ts";
import { AutomationFilesSettings } from "../repositories/automation-files.tsx";
import { calls } from "../repositories/calls.ts";
import { Egress } from "../repositories/egress.tsx";
import { EnvironmentSettings } from "../repositories/environment.tsx";
import { Findings } from "../repositories/findings.tsx";
import { General } from "../repositories/general.tsx";
import { isPlainGit } from "../repositories/plain-git.ts";
import { RecentSessions } from "../repositories/recent-sessions.tsx";
import { RepositorySecrets } from "../repositories/secrets.tsx";
import { useRepositoryTexts } from "../texts/repositories.ts";

/** One repository: its settings, a trial of its setup, its secrets, its sessions. */
export function RepositoryPage({ id }: { id: string }) {
  const texts = useRepositoryTexts();
  const repository = useQuery({ queryKey: ["repository", id], queryFn: () => calls.get(id) });
  useTitle(repository.data?.name ?? texts.title);
  if (repository.data !== undefined) return <Found repository={repository.data} />;
  return (
    <Absent missing={texts.missing} error={repository.error} reason={texts.missingReason} retry={repository.refetch} />
  );
}

function Found({ repository }: { repository: Repository }) {
  const { id, name, url, branch, createdAt, enabledAt, integration } = repository;
  const texts = useRepositoryTexts();
  const isAdmin = useMay("admin");
  return (
    <div className="space-y-6">
      <div className="space-y-3">
        <BackLink to="/repositories" name={texts.title} />
        <PageTitle title={name}>{isPlainGit(repository) && <Badge tone="warn" label={texts.plainGit} />}</PageTitle>
        <dl className="flex flex-wrap gap-x-5 gap-y-1 text-sm">
          <Fact name={texts.facts.address}>
            <RepositoryName repository={{ name: url, url }} />
          </Fact>
          {integration !== undefined && !isPlainGit(repository) && (
            <Fact name={texts.facts.forge}>{integration.name}</Fact>
          )}
          <Fact name={texts.facts.branch}>{branch ?? texts.ofForgeDefault}</Fact>
          <Fact name={texts.facts.connected}>
            <Ago at={enabledAt ?? createdAt} />
          </Fact>
        </dl>
        {isPlainGit(repository) && <p className="max-w-prose text-sm text-muted">{texts.plainGitAbout}</p>}
        {isAdmin && <Disconnect repository={repository} />}
      </div>
      <RecentSessions id={id} />
      <General repository={repository} />
      <EnvironmentSettings id={id} />
      {isAdmin && <RepositorySecrets id={id} />}
      <Egress id={id} />
      <Findings id={id} />
      <AutomationFilesSettings id={id} />
    </div>
  );
}

function Disconnect({ repository: { id, name } }: { repository: Repository }) {
  const texts = useRepositoryTexts().disconnect;
  const queries = useQueryClient();
  const navigate = useNavigate();
  const disconnect = useMutation({
    mutationFn: () => calls.disconnect(id),
    onSuccess: async () => {
      await navigate({ to: "/repositories", ignoreBlocker: true });
      queries.removeQueries({ queryKey: ["repository", id] });
      await queries.invalidateQueries({ queryKey: ["repositories"] });
    },
  });
  return (
    <>
      <ConfirmButton
        button={texts.button}
        disabled={disconnect.isPending}
        question={texts.question(name)}
        onConfirm={() => disconnect.mutate()}
      >
        {texts.about}
      </ConfirmButton>
      <ErrorText error={disconnect.error} />
    </>
  );
}
