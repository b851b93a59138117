import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useSearch } from "@tanstack/react-router";
import { useState } from "react";
import type { Connection } from "../../domain/repositories/connection.ts";
import { ButtonDialog, ConfirmButton } from "../elements/dialog.tsx";
import { PagedList } from "../elements/paged-list.tsx";
import { SecretOnce } from "../elements/secrets/secret-once.tsx";
import { Ago } from "../elements/time.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { client } from "../query.ts";
import { useSettingsTexts } from "../texts/settings.ts";
import { announce } from "../elements/announce.tsx";
import { CallingForm } from "./calling-form.tsx";
import { ConnectionChange } from "./connection-change.tsx";
import { ConnectionForm, CredentialForm } from "./connection-form.tsx";
import { HookSecretForm } from "./hook-secret.tsx";
import { HealthBadge, HealthProblems } from "./health.tsx";
import { Section } from "./section.tsx";
import { searchOfPage } from "../elements/search-of-page.ts";

/** A webhook's secret that is shown once, with where it goes. */
interface Shown {
  readonly name: string;
  readonly hookUrl: string;
  readonly webhookSecret: string;
}

/** Forges that the organization connected, with their health. */
export function Connections() {
  const texts = useSettingsTexts().connections;
  const queries = useQueryClient();
  const [shown, setShown] = useState<Shown | null>(null);
  const given = useSearch({ from: "/settings", shouldThrow: false });
  const { connection: problem } = searchOfPage(given);
  const reload = () => queries.invalidateQueries({ queryKey: ["connections"] });
  return (
    <Section
      id="connections"
      title={texts.title}
      action={
        <ButtonDialog button={texts.connect} title={texts.connect}>
          {(close) => (
            <ConnectionForm
              onMade={(made, isOwnSecret) => {
                // The forge has its own already.
                close(isOwnSecret ? undefined : () => setShown(made));
                void reload();
              }}
            />
          )}
        </ButtonDialog>
      }
    >
      <p className="text-sm text-muted">{texts.about}</p>
      {problem !== undefined && <ErrorText error={new Error(texts.problems[problem])} />}
      {shown !== null && (
        <SecretOnce
          key={shown.webhookSecret}
          label={texts.secretOf(shown.name)}
          about={texts.secretAbout(shown.hookUrl)}
          secret={shown.webhookSecret}
          onDone={() => setShown(null)}
        />
      )}
      <PagedList
        label={texts.title}
        queryKey={["connections"]}
        readPage={(cursor) => client.connection.list({ limit: 20, cursor })}
        itemsOf={(page) => page.connections}
        empty={texts.none}
        className="divide-y divide-line"
      >
        {(connection) => <Row key={connection.id} connection={connection} reload={reload} onSecret={setShown} />}
      </PagedList>
    </Section>
  );
}

function Row({
  connection,
  reload,
  onSecret,
}: {
  connection: Connection;
  reload: () => Promise<void>;
  onSecret: (shown: Shown) => void;
}) {
  const { checked, connections: texts } = useSettingsTexts();
  const { id, name, webUrl, credential, account, health, installUrl, mention, allowedBots, workItemRepositories } =
    connection;
  return (
    <li className="space-y-2 py-3 text-sm">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <div className="min-w-0 flex-1 basis-56">
          <p className="font-medium wrap-anywhere">{name}</p>
          <p className="wrap-anywhere text-muted">
            {webUrl} · {texts.credentials[credential]}
            {account !== null && texts.ofAccount(account)} · {checked} <Ago at={health.checkedAt} />
            {mention !== null && ` · ${texts.called(mention)}`}
            {workItemRepositories !== null && ` · ${texts.workItems(Object.keys(workItemRepositories).join(", "))}`}
            {allowedBots !== null &&
              ` · ${allowedBots.length === 0 ? texts.steeredByNone : texts.steeredBy(allowedBots.join(", "))}`}
          </p>
        </div>
        <HealthBadge health={health} />
      </div>
      <HealthProblems health={health} of={name} />
      {installUrl !== null && (
        <p>
          <a href={installUrl} target="_blank" rel="noreferrer" className="underline">
            {texts.install}
          </a>
        </p>
      )}
      <Actions id={id} connection={connection} reload={reload} onSecret={onSecret} />
    </li>
  );
}

function Actions({
  id,
  connection,
  reload,
  onSecret,
}: {
  id: string;
  connection: Connection;
  reload: () => Promise<void>;
  onSecret: (shown: Shown) => void;
}) {
  const words = useSettingsTexts();
  const texts = words.connections;
  const { name } = connection;
  const check = useMutation({ mutationFn: () => client.connection.check(id), onSuccess: reload });
  const remove = useMutation({ mutationFn: () => client.connection.delete(id), onSuccess: reload });
  const all = [check, remove];
  const isPending = all.some((action) => action.isPending);
  return (
    <div className="flex flex-wrap items-center gap-2">
      <button type="button" className="button" disabled={isPending} onClick={() => check.mutate()}>
        {check.isPending ? words.checking : words.checkAgain}
        <span className="sr-only"> {name}</span>
      </button>
      <ButtonDialog button={texts.change} of={name} title={texts.changeTitle(name)}>
        {(close) => (
          <ConnectionChange
            connection={connection}
            onSaved={() => {
              close();
              void reload();
            }}
          />
        )}
      </ButtonDialog>
      <ButtonDialog button={texts.replace} of={name} title={texts.replaceTitle(name)}>
        {(close) => (
          <CredentialForm
            connection={connection}
            onSaved={() => {
              close();
              void reload();
            }}
          />
        )}
      </ButtonDialog>
      <ButtonDialog button={texts.calls} of={name} title={texts.callsTitle(name)}>
        {(close) => (
          <CallingForm
            connection={connection}
            onSaved={() => {
              close();
              void reload();
            }}
          />
        )}
      </ButtonDialog>
      <ButtonDialog button={texts.rotate} of={name} title={texts.rotateTitle(name)}>
        {(close) => (
          <HookSecretForm
            connection={connection}
            onSaved={(rotated) => {
              close(() => (rotated === null ? announce(texts.rotated(name)) : onSecret(rotated)));
              void reload();
            }}
          />
        )}
      </ButtonDialog>
      <ConfirmButton
        button={words.delete}
        of={name}
        disabled={isPending}
        question={words.deleteQuestion(name)}
        onConfirm={() => remove.mutate()}
      >
        {texts.deleteAbout}
      </ConfirmButton>
      <ErrorText error={all.find(({ error }) => error !== null)?.error ?? null} />
    </div>
  );
}
