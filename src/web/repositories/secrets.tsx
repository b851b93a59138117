import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Secret } from "../../domain/environments/secret.ts";
import { ButtonDialog } from "../elements/dialog.tsx";
import { PagedList } from "../elements/paged-list.tsx";
import { SecretForm } from "../elements/secrets/secret-form.tsx";
import { SecretRow } from "../elements/secrets/secret-row.tsx";
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

function Row({ secret, reload }: { secret: Secret; reload: () => Promise<void> }) {
  const texts = useRepositoryTexts().secrets;
  return (
    <SecretRow
      secret={secret}
      about={<> · {texts.set}</>}
      remove={{
        button: texts.remove,
        question: texts.removeOf(secret.name),
        about: texts.removeAbout,
        run: () => client.secret.delete(secret.id),
      }}
      save={(changes) => client.secret.update(secret.id, changes)}
      reload={reload}
    />
  );
}
