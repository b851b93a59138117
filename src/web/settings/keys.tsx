import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import type { z } from "zod";
import type { createdKeySchema, Key } from "../../domain/people/key.ts";
import { roles, type Role } from "../../domain/people/user.ts";
import { ButtonDialog, ConfirmButton } from "../elements/dialog.tsx";
import { Field, fieldOf } from "../elements/field.tsx";
import { FormEnd } from "../elements/form-end.tsx";
import { PagedList } from "../elements/paged-list.tsx";
import { SecretOnce } from "../elements/secret-once.tsx";
import { Ago, Day, useNow } from "../elements/time.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { client } from "../query.ts";

type CreatedKey = z.infer<typeof createdKeySchema>;

/** API keys: a new one is shown once; each can be revoked. */
export function Keys() {
  const queries = useQueryClient();
  const [made, setMade] = useState<CreatedKey | null>(null);
  return (
    <section aria-labelledby="keys" className="card space-y-4 p-4">
      <div className="flex items-center gap-3">
        <h2 id="keys" className="mr-auto font-medium">
          API keys
        </h2>
        <ButtonDialog button="New key" title="New API key">
          {(close) => (
            <KeyForm
              onMade={(created) => {
                close(() => setMade(created));
                void queries.invalidateQueries({ queryKey: ["keys"] });
              }}
            />
          )}
        </ButtonDialog>
      </div>
      <p className="text-sm text-muted">For programs, for the command line, and to sign in with.</p>
      {made !== null && (
        <SecretOnce
          key={made.id}
          label={`Key ${made.name}`}
          about="Keep it now: it is shown this once."
          secret={made.key}
          onDone={() => setMade(null)}
        />
      )}
      <PagedList
        label="Keys"
        queryKey={["keys"]}
        readPage={(cursor) => client.key.list({ limit: 20, cursor })}
        itemsOf={(page) => page.keys}
        empty="No keys yet."
        className="divide-y divide-line"
      >
        {(key) => <Row key={key.id} apiKey={key} />}
      </PagedList>
    </section>
  );
}

function Row({ apiKey: { id, name, prefix, scopes, expiresAt, revokedAt, lastUsedAt } }: { apiKey: Key }) {
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
          {scopes.join(" and ")} ·{" "}
          {lastUsedAt === null ? (
            "never used"
          ) : (
            <>
              used <Ago at={lastUsedAt} />
            </>
          )}
          {expiresAt !== null && revokedAt === null && (
            <>
              {" "}
              · expires <Day at={expiresAt} />
            </>
          )}
        </p>
        <ErrorText error={revoke.error} />
      </div>
      {revokedAt !== null ? (
        <span className="text-muted">Revoked</span>
      ) : (
        <ConfirmButton
          button="Revoke"
          of={name}
          disabled={revoke.isPending}
          question={`Revoke ${name}?`}
          onConfirm={() => revoke.mutate()}
        >
          Whatever uses this key is refused from then on, and browsers that signed in with it are signed out.
        </ConfirmButton>
      )}
    </li>
  );
}

const lifetimes = [
  ["", "Never"],
  ["7", "In 7 days"],
  ["30", "In 30 days"],
  ["90", "In 90 days"],
  ["365", "In a year"],
] as const;

function KeyForm({ onMade }: { onMade: (created: CreatedKey) => void }) {
  const [name, setName] = useState("");
  const [may, setMay] = useState<Role | "trigger">("member");
  const [days, setDays] = useState("");
  const create = useMutation({
    mutationFn: () => {
      const expiresAt = days === "" ? null : new Date(Date.now() + Number(days) * 86_400_000).toISOString();
      const allowed = may === "trigger" ? { scopes: ["trigger" as const] } : { role: may };
      return client.key.create({ name: name.trim(), expiresAt, ...allowed });
    },
    onSuccess: onMade,
    // Don't keep the key in the cache.
    gcTime: 0,
  });
  const wrong = fieldOf(create.error, ["name"]);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!create.isPending) create.mutate();
  };
  return (
    <form onSubmit={submit} noValidate className="mt-4 space-y-4">
      <Field label="Name" hint="What uses it." error={wrong === null ? null : create.error}>
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
        <Field label="Role">
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
                <option key={known}>{known}</option>
              ))}
              <option value="trigger">only trigger automations</option>
            </select>
          )}
        </Field>
        <Field label="Expires">
          {(attributes) => (
            <select {...attributes} className="field" value={days} onChange={({ target }) => setDays(target.value)}>
              {lifetimes.map(([value, text]) => (
                <option key={value} value={value}>
                  {text}
                </option>
              ))}
            </select>
          )}
        </Field>
      </div>
      <FormEnd
        error={wrong === null ? create.error : null}
        isPending={create.isPending}
        verb="Create"
        pendingVerb="Making …"
      />
    </form>
  );
}
