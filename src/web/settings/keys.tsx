import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import type { z } from "zod";
import type { createdKeySchema, Key } from "../../domain/people/key.ts";
import { roles, type Role } from "../../domain/people/user.ts";
import { ButtonDialog, ConfirmButton } from "../elements/dialog.tsx";
import { Field, fieldOf } from "../elements/field.tsx";
import { FormEnd } from "../elements/form-end.tsx";
import { PagedList } from "../elements/paged-list.tsx";
import { SecretOnce } from "../elements/secrets/secret-once.tsx";
import { Ago, Day, useNow } from "../elements/time.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { client } from "../query.ts";
import { useSettingsTexts } from "../texts/settings.ts";
import { KeyAutomations, OnlyAutomations } from "./key-automations.tsx";
import { Section } from "./section.tsx";

type CreatedKey = z.infer<typeof createdKeySchema>;

/** API keys: a new one is shown once; each can be revoked. */
export function Keys() {
  const texts = useSettingsTexts().keys;
  const queries = useQueryClient();
  const [made, setMade] = useState<CreatedKey | null>(null);
  return (
    <Section
      id="keys"
      title={texts.title}
      action={
        <ButtonDialog button={texts.new} title={texts.newTitle}>
          {(close) => (
            <KeyForm
              onMade={(created) => {
                close(() => setMade(created));
                void queries.invalidateQueries({ queryKey: ["keys"] });
              }}
            />
          )}
        </ButtonDialog>
      }
    >
      <p className="text-sm text-muted">{texts.about}</p>
      {made !== null && (
        <SecretOnce
          key={made.id}
          label={texts.one(made.name)}
          about={texts.once}
          secret={made.key}
          onDone={() => setMade(null)}
        />
      )}
      <PagedList
        label={texts.list}
        queryKey={["keys"]}
        readPage={(cursor) => client.key.list({ limit: 20, cursor })}
        itemsOf={(page) => page.keys}
        empty={texts.none}
        className="divide-y divide-line"
      >
        {(key) => <Row key={key.id} apiKey={key} />}
      </PagedList>
    </Section>
  );
}

function Row({
  apiKey: { id, name, prefix, scopes, automationIds, expiresAt, revokedAt, lastUsedAt },
}: {
  apiKey: Key;
}) {
  const words = useSettingsTexts();
  const texts = words.keys;
  const queries = useQueryClient();
  const revoke = useMutation({
    mutationFn: () => client.key.revoke(id),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["keys"] }),
  });
  const now = useNow(60_000);
  const isOver = revokedAt !== null || (expiresAt !== null && Date.parse(expiresAt) < now);
  return (
    <li className="flex items-center gap-x-3 py-2 text-sm">
      <div className="min-w-0 flex-1">
        <p className="flex flex-wrap items-baseline gap-x-3">
          <span className={`font-medium wrap-anywhere ${isOver ? "text-muted line-through" : ""}`}>{name}</span>
          <code className="text-xs text-muted">{prefix}…</code>
        </p>
        <p className="text-muted">
          {scopes.map((scope) => words.scopes[scope]).join(` ${words.and} `)}
          {automationIds !== null && (
            <>
              {" "}
              · <OnlyAutomations ids={automationIds} />
            </>
          )}{" "}
          ·{" "}
          {lastUsedAt === null ? (
            texts.neverUsed
          ) : (
            <>
              {words.used} <Ago at={lastUsedAt} />
            </>
          )}
          {expiresAt !== null && revokedAt === null && (
            <>
              {" "}
              · {texts.expires} <Day at={expiresAt} />
            </>
          )}
        </p>
        <ErrorText error={revoke.error} />
      </div>
      {revokedAt !== null ? (
        <span className="text-muted">{texts.revoked}</span>
      ) : (
        <ConfirmButton
          button={texts.revoke}
          of={name}
          disabled={revoke.isPending}
          question={texts.revokeQuestion(name)}
          onConfirm={() => revoke.mutate()}
        >
          {texts.revokeAbout}
        </ConfirmButton>
      )}
    </li>
  );
}

/** In days. */
const lifetimes = [7, 30, 90, 365] as const;

function KeyForm({ onMade }: { onMade: (created: CreatedKey) => void }) {
  const words = useSettingsTexts();
  const texts = words.keys;
  const [name, setName] = useState("");
  const [may, setMay] = useState<Role | "trigger">("member");
  const [days, setDays] = useState("");
  // Null: every automation.
  const [automationIds, setAutomationIds] = useState<readonly string[] | null>(null);
  const create = useMutation({
    mutationFn: () => {
      const expiresAt = days === "" ? null : new Date(Date.now() + Number(days) * 86_400_000).toISOString();
      const allowed =
        may === "trigger"
          ? { scopes: ["trigger" as const], automationIds: automationIds && [...automationIds] }
          : { role: may };
      return client.key.create({ name: name.trim(), expiresAt, ...allowed });
    },
    onSuccess: onMade,
    // Don't keep the key in the cache.
    gcTime: 0,
  });
  const wrong = fieldOf(create.error, ["name", "automationIds"]);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!create.isPending) create.mutate();
  };
  return (
    <form onSubmit={submit} noValidate className="mt-4 space-y-4">
      <Field label={texts.name} hint={texts.nameHint} error={wrong === "name" ? create.error : null}>
        {(attributes) => (
          <input
            {...attributes}
            autoComplete="off"
            className="field"
            value={name}
            onChange={({ target }) => setName(target.value)}
          />
        )}
      </Field>
      <div className="grid gap-4 sm:grid-cols-2">
        <Field label={texts.role}>
          {(attributes) => (
            <select
              {...attributes}
              className="field"
              value={may}
              onChange={({ target }) =>
                setMay(target.value === "trigger" ? "trigger" : (roles.find((known) => known === target.value) ?? may))
              }
            >
              {roles.map((known) => (
                <option key={known} value={known}>
                  {texts.roles[known]}
                </option>
              ))}
              <option value="trigger">{texts.roles.trigger}</option>
            </select>
          )}
        </Field>
        <Field label={texts.lifetime}>
          {(attributes) => (
            <select {...attributes} className="field" value={days} onChange={({ target }) => setDays(target.value)}>
              <option value="">{texts.lifetimes.never}</option>
              {lifetimes.map((each) => (
                <option key={each} value={each}>
                  {texts.lifetimes[each]}
                </option>
              ))}
            </select>
          )}
        </Field>
      </div>
      {may === "trigger" && (
        <Field label={texts.automations}>
          {(attributes) => (
            <select
              {...attributes}
              className="field"
              value={automationIds === null ? "every" : "some"}
              onChange={({ target }) => setAutomationIds(target.value === "every" ? null : [])}
            >
              <option value="every">{texts.everyAutomation}</option>
              <option value="some">{texts.someAutomations}</option>
            </select>
          )}
        </Field>
      )}
      {may === "trigger" && automationIds !== null && (
        <KeyAutomations
          chosen={automationIds}
          error={wrong === "automationIds" ? create.error : null}
          onChange={setAutomationIds}
        />
      )}
      <FormEnd
        error={wrong === null ? create.error : null}
        isPending={create.isPending}
        verb={words.create}
        pendingVerb={texts.making}
      />
    </form>
  );
}
