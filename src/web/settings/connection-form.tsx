import { useMutation } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import type { z } from "zod";
import {
  usualAddresses,
  type Connection,
  type ConnectionCredential,
  type connectionWithSecretSchema,
} from "../../domain/repositories/connection.ts";
import { forgeKinds, type ForgeKind } from "../../domain/repositories/repository.ts";
import { Field, fieldOf } from "../elements/field.tsx";
import { FormEnd } from "../elements/form-end.tsx";
import { client } from "../query.ts";
import { useSettingsTexts, type SettingsTexts } from "../texts/settings.ts";
import { AddressField } from "./address-field.tsx";
import { HookSecretField } from "./hook-secret.tsx";

type MadeConnection = z.infer<typeof connectionWithSecretSchema>;

/** A credential, or that an App is to be registered, which becomes one. */
type Choice = ConnectionCredential["type"] | "register";

/** A new connection: which forge, where, with which credential. */
export function ConnectionForm({ onMade }: { onMade: (made: MadeConnection, isOwnSecret: boolean) => void }) {
  const words = useSettingsTexts();
  const texts = words.connection;
  const [kind, setKind] = useState<ForgeKind>("github");
  const [name, setName] = useState("");
  const [webUrl, setWebUrl] = useState("");
  const [apiUrl, setApiUrl] = useState("");
  const [hookSecret, setHookSecret] = useState("");
  const credential = useCredential();
  const create = useMutation({
    mutationFn: async () => {
      const given = {
        ...(name.trim() !== "" && { name: name.trim() }),
        ...(webUrl.trim() !== "" && { webUrl: webUrl.trim() }),
        ...(kind !== "git" && apiUrl.trim() !== "" && { apiUrl: apiUrl.trim() }),
      };
      if (credential.value !== null) {
        const webhookSecret = hookSecret.trim() === "" ? undefined : hookSecret.trim();
        return client.connection.create({ kind, credential: credential.value, webhookSecret, ...given });
      }
      const account = credential.account === "" ? {} : { account: credential.account };
      const { formUrl } = await client.connection.startGitHubApp({ ...given, ...account });
      globalThis.location.assign(formUrl);
      return null;
    },
    onSuccess: (made) => {
      if (made !== null) onMade(made, hookSecret.trim() !== "");
    },
    // Don't keep the secret in the cache.
    gcTime: 0,
  });
  const wrong = fieldOf(create.error, ["webUrl", "apiUrl", "name", "credential", "account", "webhookSecret"]);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!create.isPending) create.mutate();
  };
  return (
    <form onSubmit={submit} noValidate className="mt-4 space-y-4">
      <Field label={texts.forge}>
        {(attributes) => (
          <select
            {...attributes}
            className="field"
            value={kind}
            onChange={({ target }) => {
              const chosen = forgeKinds.find((known) => known === target.value) ?? "github";
              setKind(chosen);
              if (chosen !== "github") credential.choose("token");
            }}
          >
            {forgeKinds.map((known) => (
              <option key={known} value={known}>
                {texts.kinds[known]}
              </option>
            ))}
          </select>
        )}
      </Field>
      <AddressField
        label={texts.address}
        hint={addressHint(kind, texts)}
        error={wrong === "webUrl" ? create.error : null}
        placeholder={usualAddresses[kind].webUrl ?? "https://git.example.com"}
        value={webUrl}
        onChange={setWebUrl}
      />
      {kind !== "git" && (
        <AddressField
          label={texts.api}
          hint={texts.apiHint(usualAddresses[kind].apiUrl(exampleOrigin(kind, webUrl)) ?? "")}
          error={wrong === "apiUrl" ? create.error : null}
          value={apiUrl}
          onChange={setApiUrl}
        />
      )}
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
      <CredentialFields
        kind={kind}
        credential={credential}
        error={wrong === "credential" || wrong === "account" ? create.error : null}
        registers
      />
      {credential.value !== null && (
        <HookSecretField
          value={hookSecret}
          error={wrong === "webhookSecret" ? create.error : null}
          onChange={setHookSecret}
        />
      )}
      <FormEnd
        error={wrong === null ? create.error : null}
        isPending={create.isPending}
        verb={credential.value === null ? texts.continue : words.checkAndConnect}
        pendingVerb={words.checking}
      />
    </form>
  );
}

/** The required form of a kind's address: some need more than a server or an owner. */
function addressHint(kind: ForgeKind, texts: SettingsTexts["connection"]): string {
  if (kind === "azure") return texts.addressHintAzure;
  const { webUrl } = usualAddresses[kind];
  return webUrl === null ? texts.addressHint : texts.addressHintUsual(webUrl);
}

/** The origin of the address so far, or of the kind's public server. */
function exampleOrigin(kind: ForgeKind, webUrl: string): string {
  const written = webUrl.trim();
  return URL.parse(written)?.origin ?? usualAddresses[kind].webUrl ?? "https://git.example.com";
}

/** Another credential of a connection. */
export function CredentialForm({ connection, onSaved }: { connection: Connection; onSaved: () => void }) {
  const texts = useSettingsTexts();
  const credential = useCredential();
  const save = useMutation({
    mutationFn: () => client.connection.update(connection.id, { credential: credential.value ?? undefined }),
    onSuccess: onSaved,
  });
  const wrong = fieldOf(save.error, ["credential"]);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!save.isPending) save.mutate();
  };
  return (
    <form onSubmit={submit} noValidate className="mt-4 space-y-4">
      <CredentialFields kind={connection.kind} credential={credential} error={wrong === null ? null : save.error} />
      <FormEnd
        error={wrong === null ? save.error : null}
        isPending={save.isPending}
        verb={texts.checkAndSave}
        pendingVerb={texts.checking}
      />
    </form>
  );
}

type Credential = ReturnType<typeof useCredential>;

function useCredential() {
  const [type, choose] = useState<Choice>("token");
  const [fields, setFields] = useState({ token: "", username: "", appId: "", privateKey: "", account: "" });
  const { token, username, appId, privateKey } = fields;
  const value: ConnectionCredential | null =
    type === "register"
      ? null
      : type === "configured"
        ? { type }
        : type === "app"
          ? { type, appId: appId.trim(), privateKey }
          : { type, token: token.trim(), ...(username.trim() !== "" && { username: username.trim() }) };
  const field = (name: keyof typeof fields) => ({
    value: fields[name],
    onChange: ({ target }: { target: { value: string } }) => setFields({ ...fields, [name]: target.value }),
  });
  return { type, choose, value, field, account: fields.account.trim() };
}

function CredentialFields({
  kind,
  credential: { type, choose, field },
  error,
  registers = false,
}: {
  kind: ForgeKind;
  credential: Credential;
  error: Error | null;
  /** Whether a new App can be registered here. */
  registers?: boolean;
}) {
  const texts = useSettingsTexts().connection;
  const types = (["token", "register", "app", "configured"] as const).filter(
    (each) => (each !== "app" && each !== "register") || (kind === "github" && (each === "app" || registers)),
  );
  return (
    <>
      <Field label={texts.credential} error={type === "configured" ? error : null}>
        {(attributes) => (
          <select
            {...attributes}
            className="field"
            value={type}
            onChange={({ target }) => choose(types.find((known) => known === target.value) ?? "token")}
          >
            {types.map((known) => (
              <option key={known} value={known}>
                {texts.credentials[known]}
              </option>
            ))}
          </select>
        )}
      </Field>
      {type === "register" && (
        <Field label={texts.account} hint={texts.accountHint} error={error}>
          {(attributes) => <input {...attributes} autoComplete="off" className="field" {...field("account")} />}
        </Field>
      )}
      {type === "token" && (kind === "git" || kind === "bitbucketDataCenter") && (
        <Field label={texts.username} hint={kind === "git" ? texts.usernameHintGit : texts.usernameHintDataCenter}>
          {(attributes) => <input {...attributes} autoComplete="off" className="field" {...field("username")} />}
        </Field>
      )}
      {type === "token" && kind === "bitbucket" && (
        <Field label={texts.email} hint={texts.emailHint}>
          {(attributes) => (
            <input {...attributes} inputMode="email" autoComplete="off" className="field" {...field("username")} />
          )}
        </Field>
      )}
      {type === "token" && (
        <Field label={texts.token} hint={texts.tokenHint} error={error}>
          {(attributes) => (
            <input {...attributes} type="password" autoComplete="off" className="field" {...field("token")} />
          )}
        </Field>
      )}
      {type === "app" && (
        <>
          <Field label={texts.appId}>
            {(attributes) => (
              <input {...attributes} inputMode="numeric" autoComplete="off" className="field" {...field("appId")} />
            )}
          </Field>
          <Field label={texts.privateKey} hint={texts.privateKeyHint} error={error}>
            {(attributes) => (
              <textarea {...attributes} rows={4} spellCheck={false} className="field" {...field("privateKey")} />
            )}
          </Field>
        </>
      )}
    </>
  );
}
