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
import { AddressField } from "./address-field.tsx";
import { HealthBadge, HealthProblems } from "./health.tsx";

/** The signed-in person's own accounts at forges, with which pull requests are opened that they ask for. */
export function Accounts() {
  const queries = useQueryClient();
  const me = useMe();
  const may = useMay("write");
  // Whoever signed in by a link, or by a key without an owner, is no person who could have one.
  const isSomebody = me.data !== undefined && me.data.userId !== null;
  const reload = () => queries.invalidateQueries({ queryKey: ["accounts"] });
  return (
    <section aria-labelledby="accounts" className="card space-y-4 p-4">
      <div className="flex items-center gap-3">
        <h2 id="accounts" className="mr-auto font-medium">
          Your accounts
        </h2>
        {isSomebody && may && (
          <ButtonDialog button="Connect your account" title="Connect your account at a forge">
            {(close) => (
              <NewAccount
                onMade={() => {
                  close();
                  void reload();
                }}
              />
            )}
          </ButtonDialog>
        )}
      </div>
      <p className="text-sm text-muted">
        Pull requests that you ask for are opened with these, in your name. Nothing else is done with them, and nobody
        else sees them.
      </p>
      <ErrorText error={me.error} />
      {me.data?.userId === null && (
        <p className="card px-4 py-12 text-center text-muted">Sign in as yourself to connect one.</p>
      )}
      {isSomebody && (
        <PagedList
          label="Your accounts"
          queryKey={["accounts"]}
          readPage={(cursor) => client.account.list({ limit: 20, cursor })}
          itemsOf={(page) => page.accounts}
          empty="No accounts yet."
          className="divide-y divide-line"
        >
          {(account) => <Row key={account.id} account={account} reload={reload} />}
        </PagedList>
      )}
    </section>
  );
}

function Row({ account, reload }: { account: Account; reload: () => Promise<void> }) {
  const { id, webUrl, name, health } = account;
  const check = useMutation({ mutationFn: () => client.account.check(id), onSuccess: reload });
  const remove = useMutation({ mutationFn: () => client.account.delete(id), onSuccess: reload });
  const may = useMay("write");
  const isPending = check.isPending || remove.isPending;
  const label = `${name} at ${webUrl}`;
  return (
    <li className="space-y-2 py-3 text-sm">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <div className="min-w-0 flex-1 basis-56">
          <p className="font-medium wrap-anywhere">{name}</p>
          <p className="wrap-anywhere text-muted">
            {webUrl} · checked <Ago at={health.checkedAt} />
          </p>
        </div>
        <HealthBadge health={health} />
      </div>
      <HealthProblems health={health} of={label} />
      <div className="flex flex-wrap items-center gap-2">
        {may && (
          <>
            <button type="button" className="button" disabled={isPending} onClick={() => check.mutate()}>
              {check.isPending ? "Checking …" : "Check again"}
              <span className="sr-only"> {label}</span>
            </button>
            <ButtonDialog button="Replace the token" title={`New token of ${label}`}>
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
          button="Delete"
          of={label}
          disabled={isPending}
          question={`Delete ${label}?`}
          onConfirm={() => remove.mutate()}
        >
          Its token is deleted. Pull requests that you ask for are then opened by Offstage’s own account.
        </ConfirmButton>
        <ErrorText error={check.error ?? remove.error} />
      </div>
    </li>
  );
}

function NewAccount({ onMade }: { onMade: () => void }) {
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
        label="Address"
        hint="Of a forge that is connected."
        error={wrong === "webUrl" ? create.error : null}
        value={webUrl}
        onChange={setWebUrl}
      />
      <TokenFields token={token} wrong={wrong} error={create.error} />
      <FormEnd
        error={wrong === null ? create.error : null}
        isPending={create.isPending}
        verb="Check and connect"
        pendingVerb="Checking …"
      />
    </form>
  );
}

function NewToken({ account, onSaved }: { account: Account; onSaved: () => void }) {
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
        verb="Check and save"
        pendingVerb="Checking …"
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
  return (
    <>
      <Field
        label="Personal access token"
        hint="With the right to open pull requests. It is never shown again."
        error={wrong === "token" ? error : null}
      >
        {(attributes) => (
          <input {...attributes} type="password" autoComplete="off" className="field" {...field("token")} />
        )}
      </Field>
      <Field
        label="User name"
        hint="For Bitbucket only: the e-mail address of an API token’s account; at Data Center whose the token is."
        error={wrong === "username" ? error : null}
      >
        {(attributes) => <input {...attributes} autoComplete="off" className="field" {...field("username")} />}
      </Field>
    </>
  );
}
