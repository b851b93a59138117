import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import type { Account } from "../../domain/people/account.ts";
import { ButtonDialog, ConfirmButton } from "../elements/dialog.tsx";
import { Field, fieldOf } from "../elements/field.tsx";
import { FormEnd } from "../elements/form-end.tsx";
import { PagedList } from "../elements/paged-list.tsx";
import { Ago } from "../elements/time.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { client, useMay, useMe } from "../query.ts";
import { useSettingsTexts } from "../texts/settings.ts";
import { AddressField } from "./address-field.tsx";
import { HealthBadge, HealthProblems } from "./health.tsx";
import { Section } from "./section.tsx";

/** The signed-in person's own accounts at forges, with which pull requests are opened that they ask for. */
export function Accounts() {
  const texts = useSettingsTexts().accounts;
  const queries = useQueryClient();
  const me = useMe();
  const may = useMay("write");
  // A sign-in by a link, or by a key without an owner, has no person who could have one.
  const isSomebody = me.data !== undefined && me.data.userId !== null;
  const reload = () => queries.invalidateQueries({ queryKey: ["accounts"] });
  return (
    <Section
      id="accounts"
      title={texts.title}
      action={
        isSomebody &&
        may && (
          <ButtonDialog button={texts.connect} title={texts.connectTitle}>
            {(close) => (
              <NewAccount
                onMade={() => {
                  close();
                  void reload();
                }}
              />
            )}
          </ButtonDialog>
        )
      }
    >
      <p className="text-sm text-muted">{texts.about}</p>
      <ErrorText error={me.error} />
      {me.data?.userId === null && <p className="card px-4 py-12 text-center text-muted">{texts.nobody}</p>}
      {isSomebody && (
        <PagedList
          label={texts.title}
          queryKey={["accounts"]}
          readPage={(cursor) => client.account.list({ limit: 20, cursor })}
          itemsOf={(page) => page.accounts}
          empty={texts.none}
          className="divide-y divide-line"
        >
          {(account) => <Row key={account.id} account={account} reload={reload} />}
        </PagedList>
      )}
    </Section>
  );
}

function Row({ account, reload }: { account: Account; reload: () => Promise<void> }) {
  const all = useSettingsTexts();
  const texts = all.accounts;
  const { id, webUrl, name, health } = account;
  const check = useMutation({ mutationFn: () => client.account.check(id), onSuccess: reload });
  const remove = useMutation({ mutationFn: () => client.account.delete(id), onSuccess: reload });
  const may = useMay("write");
  const isPending = check.isPending || remove.isPending;
  const label = texts.at(name, webUrl);
  return (
    <li className="space-y-2 py-3 text-sm">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <div className="min-w-0 flex-1 basis-56">
          <p className="font-medium wrap-anywhere">{name}</p>
          <p className="wrap-anywhere text-muted">
            {webUrl} · {all.checked} <Ago at={health.checkedAt} />
          </p>
        </div>
        <HealthBadge health={health} />
      </div>
      <HealthProblems health={health} of={label} />
      <div className="flex flex-wrap items-center gap-2">
        {may && (
          <>
            <button type="button" className="button" disabled={isPending} onClick={() => check.mutate()}>
              {check.isPending ? all.checking : all.checkAgain}
              <span className="sr-only"> {label}</span>
            </button>
            <ButtonDialog button={texts.replace} of={label} title={texts.replaceTitle(label)}>
              {(close) => (
                <NewToken
                  account={account}
                  onSaved={() => {
                    close();
                    void reload();
                  }}
                />
              )}
            </ButtonDialog>
          </>
        )}
        <ConfirmButton
          button={all.delete}
          of={label}
          disabled={isPending}
          question={all.deleteQuestion(label)}
          onConfirm={() => remove.mutate()}
        >
          {texts.deleteAbout}
        </ConfirmButton>
        <ErrorText error={check.error ?? remove.error} />
      </div>
    </li>
  );
}

function NewAccount({ onMade }: { onMade: () => void }) {
  const texts = useSettingsTexts();
  const [webUrl, setWebUrl] = useState("https://github.com");
  const token = useToken();
  const create = useMutation({
    mutationFn: () => client.account.create({ webUrl: webUrl.trim(), ...token.value }),
    onSuccess: onMade,
  });
  const wrong = fieldOf(create.error, ["webUrl", "token", "username"]);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!create.isPending) create.mutate();
  };
  return (
    <form onSubmit={submit} noValidate className="mt-4 space-y-4">
      <AddressField
        label={texts.accounts.address}
        hint={texts.accounts.addressHint}
        error={wrong === "webUrl" ? create.error : null}
        value={webUrl}
        onChange={setWebUrl}
      />
      <TokenFields token={token} wrong={wrong} error={create.error} />
      <FormEnd
        error={wrong === null ? create.error : null}
        isPending={create.isPending}
        verb={texts.checkAndConnect}
        pendingVerb={texts.checking}
      />
    </form>
  );
}

function NewToken({ account, onSaved }: { account: Account; onSaved: () => void }) {
  const texts = useSettingsTexts();
  const token = useToken();
  const save = useMutation({ mutationFn: () => client.account.update(account.id, token.value), onSuccess: onSaved });
  const wrong = fieldOf(save.error, ["token", "username"]);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!save.isPending) save.mutate();
  };
  return (
    <form onSubmit={submit} noValidate className="mt-4 space-y-4">
      <TokenFields token={token} wrong={wrong} error={save.error} />
      <FormEnd
        error={wrong === null ? save.error : null}
        isPending={save.isPending}
        verb={texts.checkAndSave}
        pendingVerb={texts.checking}
      />
    </form>
  );
}

function useToken() {
  const [fields, setFields] = useState({ token: "", username: "" });
  const username = fields.username.trim();
  return {
    value: { token: fields.token.trim(), ...(username !== "" && { username }) },
    field: (name: keyof typeof fields) => ({
      value: fields[name],
      onChange: ({ target }: { target: { value: string } }) => setFields({ ...fields, [name]: target.value }),
    }),
  };
}

function TokenFields({
  token: { field },
  wrong,
  error,
}: {
  token: ReturnType<typeof useToken>;
  wrong: "webUrl" | "token" | "username" | null;
  error: Error | null;
}) {
  const texts = useSettingsTexts().accounts;
  return (
    <>
      <Field label={texts.token} hint={texts.tokenHint} error={wrong === "token" ? error : null}>
        {(attributes) => (
          <input {...attributes} type="password" autoComplete="off" className="field" {...field("token")} />
        )}
      </Field>
      <Field label={texts.username} hint={texts.usernameHint} error={wrong === "username" ? error : null}>
        {(attributes) => <input {...attributes} autoComplete="off" className="field" {...field("username")} />}
      </Field>
    </>
  );
}
