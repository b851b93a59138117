import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useId, useState, type FormEvent } from "react";
import type { z } from "zod";
import {
  type createdOrganizationSchema,
  type ListedOrganization,
  mostSessionsCounted,
} from "../../domain/people/organization.ts";
import { ButtonDialog } from "../elements/dialog.tsx";
import { EraseOrganization } from "../elements/erase-organization.tsx";
import { Field, fieldOf } from "../elements/field.tsx";
import { FormEnd } from "../elements/form-end.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { PagedList } from "../elements/paged-list.tsx";
import { SecretOnce } from "../elements/secrets/secret-once.tsx";
import { Ago, Day } from "../elements/time.tsx";
import { client, useMe } from "../query.ts";
import { formatDay } from "../texts/formats.ts";
import { currentLanguage } from "../texts/language.ts";
import { useOrganizationTexts } from "../texts/organizations.ts";

type Created = z.infer<typeof createdOrganizationSchema>;

/** Calls that only this page makes: the client comes with every page, and has no room for them. */
const calls = {
  list: (cursor: string | undefined) =>
    client.call(
      "listedOrganizationsPage",
      `/organization/list?${new URLSearchParams({ limit: "50", ...(cursor !== undefined && { cursor }) }).toString()}`,
    ),
  create: (body: object) => client.call("createdOrganizationSchema", "/organization/create", body),
  update: (id: string, body: object) => client.call("listedOrganizationSchema", `/organization/${id}/update`, body),
  erase: (id: string, name: string) => client.call("emptySchema", `/organization/${id}/erase`, { name }),
};

/** All organizations of the server, which its admins create and erase. */
export function AllOrganizations() {
  const texts = useOrganizationTexts();
  const queries = useQueryClient();
  const [made, setMade] = useState<Created | null>(null);
  const onMade = (created: Created): void => {
    setMade(created);
    void queries.invalidateQueries({ queryKey: ["organizations"] });
  };
  return (
    <section aria-label={texts.all} className="space-y-2">
      <div className="flex flex-wrap items-center gap-3">
        <h2 className="label me-auto">{texts.all}</h2>
        <ButtonDialog button={texts.create} title={texts.createTitle}>
          {(close) => <CreateForm onMade={(created) => close(() => onMade(created))} />}
        </ButtonDialog>
      </div>
      <p className="max-w-3xl text-sm text-muted">{texts.allAbout}</p>
      {made !== null && <FirstAdmin key={made.organization.id} made={made} onDone={() => setMade(null)} />}
      <PagedList
        label={texts.all}
        queryKey={["organizations"]}
        readPage={calls.list}
        itemsOf={(page) => page.organizations}
        empty={texts.none}
      >
        {(organization) => <Row key={organization.id} organization={organization} />}
      </PagedList>
    </section>
  );
}

/** What lets the first admin in, once. */
function FirstAdmin({ made: { organization, invitation, adminKey }, onDone }: { made: Created; onDone: () => void }) {
  const texts = useOrganizationTexts();
  if (invitation === null)
    return (
      <SecretOnce
        label={texts.keyOf(organization.name)}
        about={texts.keyAbout}
        secret={adminKey ?? ""}
        onDone={onDone}
      />
    );
  const { user, url, expiresAt, mailedTo } = invitation;
  const mailed = mailedTo === null ? "" : ` ${texts.mailed(mailedTo)}`;
  return (
    <SecretOnce
      label={texts.linkFor(user.name, organization.name)}
      about={`${texts.linkAbout(formatDay(expiresAt))}${mailed}`}
      secret={url}
      onDone={onDone}
    />
  );
}

function Row({
  organization: { id, name, createdAt, usesServerForges, members, sessions, lastSessionAt },
}: {
  organization: ListedOrganization;
}) {
  const texts = useOrganizationTexts();
  const me = useMe().data;
  const queries = useQueryClient();
  const readAgain = (): Promise<void> => queries.invalidateQueries({ queryKey: ["organizations"] });
  const lend = useMutation({
    mutationFn: (uses: boolean) => calls.update(id, { usesServerForges: uses }),
    onSuccess: readAgain,
  });
  const isOwn = me?.orgId === id;
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-2 px-4 py-3 text-sm">
      <div className="min-w-0 flex-1 basis-64">
        <p className="flex flex-wrap items-center gap-x-2">
          <bdi className="font-medium wrap-anywhere">{name}</bdi>
          {isOwn && <span className="text-muted">{texts.own}</span>}
        </p>
        <p className="text-muted tabular-nums">
          {texts.members(members)} · {texts.sessions(sessions, sessions < mostSessionsCounted)}
          {lastSessionAt !== null && (
            <>
              , {texts.lastSession} <Ago at={lastSessionAt} />
            </>
          )}{" "}
          · {texts.since} <Day at={createdAt} />
        </p>
        <ErrorText error={lend.error} />
      </div>
      {!isOwn && (
        <>
          <label className="flex items-center gap-2">
            <input
              type="checkbox"
              className="size-4"
              aria-label={texts.usesForgesOf(name)}
              checked={lend.isPending ? lend.variables : usesServerForges}
              onChange={({ target }) => {
                if (!lend.isPending) lend.mutate(target.checked);
              }}
            />
            {texts.usesForges}
          </label>
          <EraseOrganization
            button={texts.erase}
            name={name}
            isOwn={false}
            erase={(written) => calls.erase(id, written)}
            onErased={readAgain}
          />
        </>
      )}
    </li>
  );
}

const ways = ["invite", "key"] as const;

function CreateForm({ onMade }: { onMade: (created: Created) => void }) {
  const texts = useOrganizationTexts();
  const [fields, setFields] = useState({ name: "", adminName: "", email: "" });
  const [uses, setUses] = useState(false);
  const [way, setWay] = useState<(typeof ways)[number]>("invite");
  const create = useMutation({
    mutationFn: () => {
      const email = fields.email.trim();
      const admin = { name: fields.adminName.trim(), language: currentLanguage(), ...(email !== "" && { email }) };
      return calls.create({
        name: fields.name.trim(),
        admin: way === "invite" ? admin : null,
        usesServerForges: uses,
      });
    },
    onSuccess: onMade,
    // Don't keep the link or the key in the cache.
    gcTime: 0,
  });
  const wrong = fieldOf(create.error, ["admin.name", "admin.email", "name"]);
  const errorOf = (name: NonNullable<typeof wrong>): Error | null => (wrong === name ? create.error : null);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!create.isPending) create.mutate();
  };
  const field = (name: keyof typeof fields) => ({
    value: fields[name],
    onChange: ({ target }: { target: { value: string } }) => setFields({ ...fields, [name]: target.value }),
  });
  return (
    <form onSubmit={submit} noValidate className="mt-4 space-y-4">
      <Field label={texts.name} error={errorOf("name")}>
        {(attributes) => <input {...attributes} autoComplete="off" className="field" {...field("name")} />}
      </Field>
      <Field label={texts.first}>
        {(attributes) => (
          <select
            {...attributes}
            className="field"
            value={way}
            onChange={({ target }) => setWay(ways.find((known) => known === target.value) ?? way)}
          >
            {ways.map((known) => (
              <option key={known} value={known}>
                {texts.ways[known]}
              </option>
            ))}
          </select>
        )}
      </Field>
      {way === "invite" && (
        <>
          <Field label={texts.adminName} error={errorOf("admin.name")}>
            {(attributes) => <input {...attributes} autoComplete="off" className="field" {...field("adminName")} />}
          </Field>
          <Field label={texts.email} hint={texts.emailHint} error={errorOf("admin.email")}>
            {(attributes) => (
              <input {...attributes} type="email" autoComplete="off" className="field" {...field("email")} />
            )}
          </Field>
        </>
      )}
      <CheckField label={texts.lend} hint={texts.lendHint} checked={uses} onChange={setUses} />
      <FormEnd
        error={wrong === null ? create.error : null}
        isPending={create.isPending}
        verb={texts.makeVerb}
        pendingVerb={texts.making}
      />
    </form>
  );
}

function CheckField({
  label,
  hint,
  checked,
  onChange,
}: {
  label: string;
  hint: string;
  checked: boolean;
  onChange: (checked: boolean) => void;
}) {
  const id = useId();
  return (
    <div className="flex items-start gap-2 text-sm">
      <input
        id={id}
        type="checkbox"
        className="mt-1 size-4"
        aria-describedby={`${id}-about`}
        checked={checked}
        onChange={({ target }) => onChange(target.checked)}
      />
      <div>
        <label htmlFor={id} className="font-medium">
          {label}
        </label>
        <p id={`${id}-about`} className="text-xs text-muted">
          {hint}
        </p>
      </div>
    </div>
  );
}
