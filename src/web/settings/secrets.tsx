import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { ChangeSecret } from "../elements/change-secret.tsx";
import { ButtonDialog, ConfirmButton } from "../elements/dialog.tsx";
import { SecretForm } from "../elements/secret-form.tsx";
import { Ago } from "../elements/time.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { client } from "../query.ts";
import { useSecretTexts } from "../texts/secrets.ts";
import { useSettingsTexts } from "../texts/settings.ts";
import { Section } from "./section.tsx";

/** The secrets of setups and agents: named, added, given another value and deleted, never read. */
export function Secrets() {
  const words = useSettingsTexts();
  const texts = words.secrets;
  const common = useSecretTexts();
  const queries = useQueryClient();
  const secrets = useQuery({ queryKey: ["secrets"], queryFn: () => client.secret.list({ limit: 100 }) });
  const reload = () => queries.invalidateQueries({ queryKey: ["secrets"] });
  const remove = useMutation({ mutationFn: (id: string) => client.secret.delete(id), onSuccess: reload });
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
      <ErrorText error={secrets.error ?? remove.error} />
      {secrets.data !== undefined && secrets.data.secrets.length > 0 && (
        <ul aria-label={texts.title} className="divide-y divide-line text-sm">
          {secrets.data.secrets.map((secret) => (
            <li key={secret.id} className="flex flex-wrap items-center gap-x-3 gap-y-2 py-2">
              <div className="min-w-0 flex-1 basis-48">
                <code className="font-medium break-all">{secret.name}</code>
                <p className="text-muted">
                  {secret.phases.map((phase) => common.phases[phase]).join(` ${common.and} `)}
                  {secret.repositoryId !== null && texts.oneRepository} · <Ago at={secret.updatedAt} />
                </p>
              </div>
              <span className="flex gap-2">
                <ChangeSecret
                  secret={secret}
                  save={(changes) => client.secret.update(secret.id, changes)}
                  onSaved={reload}
                />
                <ConfirmButton
                  button={words.delete}
                  of={secret.name}
                  disabled={remove.isPending}
                  question={words.deleteQuestion(secret.name)}
                  onConfirm={() => remove.mutate(secret.id)}
                >
                  {texts.deleteAbout}
                </ConfirmButton>
              </span>
            </li>
          ))}
        </ul>
      )}
      {secrets.data?.secrets.length === 0 && <p className="text-sm text-muted">{texts.none}</p>}
    </Section>
  );
}
