import { useQueryClient } from "@tanstack/react-query";
import type { Secret } from "../../domain/environments/secret.ts";
import { ButtonDialog } from "../elements/dialog.tsx";
import { PagedList } from "../elements/paged-list.tsx";
import { SecretForm } from "../elements/secrets/secret-form.tsx";
import { SecretRow } from "../elements/secrets/secret-row.tsx";
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
  return (
    <SecretRow
      secret={secret}
      about={<>{secret.repositoryId !== null && texts.oneRepository} ·</>}
      remove={{
        button: words.delete,
        question: words.deleteQuestion(secret.name),
        about: texts.deleteAbout,
        run: () => client.secret.delete(secret.id),
      }}
      save={(changes) => client.secret.update(secret.id, changes)}
      reload={reload}
    />
  );
}
