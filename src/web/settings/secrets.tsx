import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { Secret } from "../../domain/environments/secret.ts";
import { ChangeSecret } from "../elements/change-secret.tsx";
import { ButtonDialog, ConfirmButton } from "../elements/dialog.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { PagedList } from "../elements/paged-list.tsx";
import { SecretForm } from "../elements/secret-form.tsx";
import { Ago } from "../elements/time.tsx";
import { client } from "../query.ts";
import { useSecretTexts } from "../texts/secrets.ts";
import { useSettingsTexts } from "../texts/settings.ts";
import { Section } from "./section.tsx";

/** The secrets of setups and agents: named, added, given another value and deleted, never read. */
export function Secrets() {
  const texts = useSettingsTexts().secrets;
  const common = useSecretTexts();
  const queries = useQueryClient();
  // Also those of the repositories' pages.
  const reload = () => queries.invalidateQueries({ queryKey: ["secrets"] });
  return (
    <Section
      id="secrets"
      title={texts.title}
      action={
        <ButtonDialog button={common.add} title={common.add}>
          {(close) => (
            <SecretForm
              save={async (values) => {
                await client.secret.create(values);
                close();
                await reload();
              }}
            />
          )}
        </ButtonDialog>
      }
    >
      <p className="text-sm text-muted">{texts.about}</p>
      <PagedList
        label={texts.title}
        queryKey={["secrets", "all"]}
        readPage={(cursor) => client.secret.list({ limit: 20, cursor })}
        itemsOf={(page) => page.secrets}
        empty={texts.none}
        className="divide-y divide-line"
      >
        {(secret) => <Row key={secret.id} secret={secret} reload={reload} />}
      </PagedList>
    </Section>
  );
}

function Row({ secret, reload }: { secret: Secret; reload: () => Promise<void> }) {
  const words = useSettingsTexts();
  const texts = words.secrets;
  const common = useSecretTexts();
  const { id, name, phases, repositoryId, updatedAt } = secret;
  const remove = useMutation({ mutationFn: () => client.secret.delete(id), onSuccess: reload });
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-2 py-2 text-sm">
      <div className="min-w-0 flex-1 basis-48">
        <code className="font-medium break-all">{name}</code>
        <p className="text-muted">
          {phases.map((phase) => common.phases[phase]).join(` ${common.and} `)}
          {repositoryId !== null && texts.oneRepository} · <Ago at={updatedAt} />
        </p>
      </div>
      <span className="flex gap-2">
        <ChangeSecret secret={secret} save={(changes) => client.secret.update(id, changes)} onSaved={reload} />
        <ConfirmButton
          button={words.delete}
          of={name}
          disabled={remove.isPending}
          question={words.deleteQuestion(name)}
          onConfirm={() => remove.mutate()}
        >
          {texts.deleteAbout}
        </ConfirmButton>
      </span>
      <ErrorText error={remove.error} />
    </li>
  );
}
