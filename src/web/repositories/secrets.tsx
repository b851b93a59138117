import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Secret } from "../../domain/environments/secret.ts";
import { ChangeSecret } from "../elements/change-secret.tsx";
import { ButtonDialog, ConfirmButton } from "../elements/dialog.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { PagedList } from "../elements/paged-list.tsx";
import { SecretForm } from "../elements/secret-form.tsx";
import { Ago } from "../elements/time.tsx";
import { client } from "../query.ts";
import { useRepositoryTexts } from "../texts/repositories.ts";
import { useSecretTexts } from "../texts/secrets.ts";
import { calls } from "./calls.ts";
import { Section } from "./section.tsx";

/** The secrets of one repository, for admins: named, set and deleted, never read. */
export function RepositorySecrets({ id }: { id: string }) {
  const texts = useRepositoryTexts().secrets;
  const words = useSecretTexts();
  const queries = useQueryClient();
  // Also those of the settings' page.
  const reload = () => queries.invalidateQueries({ queryKey: ["secrets"] });
  return (
    <Section
      title={texts.title}
      about={
        <>
          {texts.about}{" "}
          <Link to="/settings" hash="secrets" className="text-accent underline">
            {texts.ofOrganization}
          </Link>
          .
        </>
      }
      action={
        <ButtonDialog button={words.add} title={words.add}>
          {(close) => (
            <SecretForm
              save={async ({ name, value, phases }) => {
                await client.secret.create({ name, value, phases, repositoryId: id });
                close();
                await reload();
              }}
            />
          )}
        </ButtonDialog>
      }
    >
      <PagedList
        label={texts.list}
        queryKey={["secrets", "of repository", id]}
        readPage={(cursor) => calls.secrets(id, cursor)}
        itemsOf={(page) => page.secrets}
        empty={texts.none}
        className="divide-y divide-line"
      >
        {(secret) => <Row key={secret.id} secret={secret} reload={reload} />}
      </PagedList>
    </Section>
  );
}

function Row({ secret: { id, name, phases, updatedAt }, reload }: { secret: Secret; reload: () => Promise<void> }) {
  const texts = useRepositoryTexts().secrets;
  const words = useSecretTexts();
  const remove = useMutation({ mutationFn: () => client.secret.delete(id), onSuccess: reload });
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-2 py-2 text-sm">
      <div className="min-w-0 flex-1 basis-48">
        <code className="font-medium break-all">{name}</code>
        <p className="text-muted">
          {phases.map((phase) => words.phases[phase]).join(` ${words.and} `)} · {texts.set} <Ago at={updatedAt} />
        </p>
      </div>
      <span className="flex gap-2">
        <ChangeSecret
          secret={{ name, phases }}
          save={(changes) => client.secret.update(id, changes)}
          onSaved={reload}
        />
        <ConfirmButton
          button={texts.remove}
          of={name}
          disabled={remove.isPending}
          question={texts.removeOf(name)}
          onConfirm={() => remove.mutate()}
        >
          {texts.removeAbout}
        </ConfirmButton>
      </span>
      <ErrorText error={remove.error} />
    </li>
  );
}
