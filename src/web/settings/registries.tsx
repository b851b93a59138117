import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { registryKinds, type Registry, type RegistryKind } from "../../domain/environments/registry.ts";
import { ButtonDialog, ConfirmButton } from "../elements/dialog.tsx";
import { Field, fieldOf, type FieldAttributes } from "../elements/field.tsx";
import { FormEnd } from "../elements/form-end.tsx";
import { ErrorText } from "../elements/notice.tsx";
import { PagedList } from "../elements/paged-list.tsx";
import { Ago } from "../elements/time.tsx";
import { client } from "../query.ts";
import { useRegistryTexts } from "../texts/registries.ts";
import { AddressField } from "./address-field.tsx";
import { Section } from "./section.tsx";

const kindNames: Readonly<Record<RegistryKind, string>> = {
  npm: "npm",
  pypi: "PyPI",
  maven: "Maven",
  cargo: "Cargo",
  go: "Go",
  nuget: "NuGet",
  rubygems: "RubyGems",
};

/** Private registries that sandboxes install packages from: added, given another token and deleted; tokens are never read. */
export function Registries() {
  const texts = useRegistryTexts();
  const queries = useQueryClient();
  const reload = () => queries.invalidateQueries({ queryKey: ["registries"] });
  return (
    <Section
      id="registries"
      title={texts.title}
      action={
        <ButtonDialog button={texts.add} title={texts.add}>
          {(close) => (
            <NewRegistry
              onMade={() => {
                close();
                void reload();
              }}
            />
          )}
        </ButtonDialog>
      }
    >
      <p className="max-w-prose text-sm text-muted">{texts.about}</p>
      <PagedList
        label={texts.title}
        queryKey={["registries"]}
        readPage={(cursor) => client.registry.list({ limit: 20, cursor })}
        itemsOf={(page) => page.registries}
        empty={texts.none}
        className="divide-y divide-line"
      >
        {(registry) => <Row key={registry.id} registry={registry} reload={reload} />}
      </PagedList>
    </Section>
  );
}

function Row({ registry, reload }: { registry: Registry; reload: () => Promise<void> }) {
  const { id, kind, url, scope, username, updatedAt } = registry;
  const texts = useRegistryTexts();
  const remove = useMutation({ mutationFn: () => client.registry.delete(id), onSuccess: reload });
  const name = scope === null ? kindNames[kind] : `${kindNames[kind]} ${scope}`;
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-2 py-3 text-sm">
      <div className="min-w-0 flex-1 basis-56">
        <p className="font-medium wrap-anywhere">{name}</p>
        <p className="wrap-anywhere text-muted">
          {url}
          {hasScope(kind) && scope === null && ` · ${texts.everything}`}
          {username !== null && ` · ${texts.user(username)}`} · {texts.set} <Ago at={updatedAt} />
        </p>
      </div>
      <span className="flex flex-wrap gap-2">
        <ButtonDialog button={texts.replace} of={name} title={texts.replaceOf(name)}>
          {(close) => (
            <NewToken
              id={id}
              onSaved={() => {
                close();
                void reload();
              }}
            />
          )}
        </ButtonDialog>
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

const fields = ["kind", "url", "scope", "username", "token"] as const;
type FieldName = (typeof fields)[number];
type Values = Readonly<Record<Exclude<FieldName, "kind">, string>>;

function NewRegistry({ onMade }: { onMade: () => void }) {
  const texts = useRegistryTexts();
  const [kind, setKind] = useState<RegistryKind>("npm");
  const [values, setValues] = useState<Values>({ url: "", scope: "", username: "", token: "" });
  const create = useMutation({
    mutationFn: () => client.registry.create(bodyOf(kind, values)),
    onSuccess: onMade,
    // Its answer has no token, but what was sent is kept as well.
    gcTime: 0,
  });
  const wrong = fieldOf(create.error, fields);
  const errorOf = (name: FieldName): Error | null => (wrong === name ? create.error : null);
  const set = (name: keyof Values, value: string): void => setValues({ ...values, [name]: value });
  const input = (name: keyof Values) => ({
    value: values[name],
    onChange: ({ target }: { target: { value: string } }) => set(name, target.value),
  });
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!create.isPending) create.mutate();
  };
  return (
    <form onSubmit={submit} noValidate className="mt-4 space-y-4">
      <KindField kind={kind} error={errorOf("kind")} onChange={setKind} />
      <AddressField
        label={texts.url}
        hint={texts.urlHint[kind]}
        error={errorOf("url")}
        placeholder="https://"
        value={values.url}
        onChange={(url) => set("url", url)}
      />
      {hasScope(kind) && (
        <Field label={texts.scope[kind]} hint={texts.scopeHint[kind]} error={errorOf("scope")}>
          {(attributes) => <input {...attributes} {...plain} {...input("scope")} />}
        </Field>
      )}
      <Field
        label={texts.username}
        hint={kind === "cargo" ? texts.usernameHintCargo : texts.usernameHint}
        error={errorOf("username")}
      >
        {(attributes) => <input {...attributes} {...plain} {...input("username")} />}
      </Field>
      <Field label={texts.token} hint={texts.tokenHint} error={errorOf("token")}>
        {(attributes) => <TokenInput attributes={attributes} {...input("token")} />}
      </Field>
      <FormEnd
        // A kind without a scope has no field for its error.
        error={wrong === null || (wrong === "scope" && !hasScope(kind)) ? create.error : null}
        isPending={create.isPending}
        verb={texts.verb}
        pendingVerb={texts.adding}
      />
    </form>
  );
}

/** Attributes of an input for what is no word. */
const plain = { className: "field", autoComplete: "off", autoCapitalize: "none", spellCheck: false } as const;

function hasScope(kind: RegistryKind): kind is "npm" | "cargo" | "go" {
  return kind === "npm" || kind === "cargo" || kind === "go";
}

function bodyOf(kind: RegistryKind, { url, scope, username, token }: Values) {
  const orNull = (text: string): string | null => (text.trim() === "" ? null : text.trim());
  return {
    kind,
    url: url.trim(),
    scope: hasScope(kind) ? orNull(scope) : null,
    username: orNull(username),
    token: token.trim(),
  };
}

function KindField({
  kind,
  error,
  onChange,
}: {
  kind: RegistryKind;
  error: Error | null;
  onChange: (kind: RegistryKind) => void;
}) {
  const texts = useRegistryTexts();
  return (
    <Field label={texts.kind} {...(!hasScope(kind) && { hint: texts.isForAll[kind] })} error={error}>
      {(attributes) => (
        <select
          {...attributes}
          className="field"
          value={kind}
          onChange={({ target }) => onChange(registryKinds.find((known) => known === target.value) ?? kind)}
        >
          {registryKinds.map((each) => (
            <option key={each} value={each}>
              {kindNames[each]}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

function TokenInput({
  attributes,
  value,
  onChange,
}: {
  attributes: FieldAttributes;
  value: string;
  onChange: (event: { target: { value: string } }) => void;
}) {
  return (
    <input
      {...attributes}
      type="password"
      // Browsers must not offer their own passwords, nor keep this one.
      autoComplete="new-password"
      className="field"
      value={value}
      onChange={onChange}
    />
  );
}

function NewToken({ id, onSaved }: { id: string; onSaved: () => void }) {
  const texts = useRegistryTexts();
  const [token, setToken] = useState("");
  const save = useMutation({
    // The client comes with every page, and has no room for what this form alone calls.
    mutationFn: () => client.call("registrySchema", `/registry/${id}/update`, { token: token.trim() }),
    onSuccess: onSaved,
    gcTime: 0,
  });
  const wrong = fieldOf(save.error, ["token"]);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!save.isPending) save.mutate();
  };
  return (
    <form onSubmit={submit} noValidate className="mt-4 space-y-4">
      <Field label={texts.newToken} hint={texts.tokenHint} error={wrong === null ? null : save.error}>
        {(attributes) => (
          <TokenInput attributes={attributes} value={token} onChange={({ target }) => setToken(target.value)} />
        )}
      </Field>
      <FormEnd
        error={wrong === null ? save.error : null}
        isPending={save.isPending}
        verb={texts.save}
        pendingVerb={texts.saving}
      />
    </form>
  );
}
