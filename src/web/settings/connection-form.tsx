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
import { AddressField } from "./address-field.tsx";

type MadeConnection = z.infer<typeof connectionWithSecretSchema>;

/** Names of the kinds of forges. */
const kindNames: Readonly<Record<ForgeKind, string>> = {
  azure: "Azure DevOps",
  github: "GitHub",
  gitlab: "GitLab",
  gitea: "Gitea or Forgejo",
  bitbucket: "Bitbucket Cloud",
  bitbucketDataCenter: "Bitbucket Data Center",
  git: "Plain git",
};

/** What an address must have, of kinds with more than a server or an owner in it. */
const addressHints: Partial<Readonly<Record<ForgeKind, string>>> = {
  azure: "With the organization, https://dev.azure.com/acme, or with the collection of a server.",
};

/** A credential, or that an App is to be registered, which becomes one. */
type Choice = ConnectionCredential["type"] | "register";

const credentialNames: Readonly<Record<Choice, string>> = {
  register: "A new GitHub App, registered now",
  token: "A token",
  app: "A GitHub App that there is",
  configured: "None: the server’s is used, and only events are received",
};

/** A new connection: which forge, where, with which credential. */
export function ConnectionForm({ onMade }: { onMade: (made: MadeConnection) => void }) {
  const [kind, setKind] = useState<ForgeKind>("github");
  const [name, setName] = useState("");
  const [webUrl, setWebUrl] = useState("");
  const [apiUrl, setApiUrl] = useState("");
  const credential = useCredential();
  const create = useMutation({
    mutationFn: async () => {
      const given = {
        ...(name.trim() !== "" && { name: name.trim() }),
        ...(webUrl.trim() !== "" && { webUrl: webUrl.trim() }),
        ...(kind !== "git" && apiUrl.trim() !== "" && { apiUrl: apiUrl.trim() }),
      };
      if (credential.value !== null) return client.connection.create({ kind, credential: credential.value, ...given });
      const account = credential.account === "" ? {} : { account: credential.account };
      const { formUrl } = await client.connection.startGitHubApp({ ...given, ...account });
      globalThis.location.assign(formUrl);
      return null;
    },
    onSuccess: (made) => {
      if (made !== null) onMade(made);
    },
    // Don't keep the secret in the cache.
    gcTime: 0,
  });
  const wrong = fieldOf(create.error, ["webUrl", "apiUrl", "name", "credential", "account"]);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (!create.isPending) create.mutate();
  };
  return (
    <form onSubmit={submit} noValidate className="mt-4 space-y-4">
      <Field label="Forge">
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
                {kindNames[known]}
              </option>
            ))}
          </select>
        )}
      </Field>
      <AddressField
        label="Address"
        hint={
          usualAddresses[kind].webUrl === null
            ? (addressHints[kind] ?? "Of the server, or of one owner on it.")
            : `Of the server, or of one owner on it. Empty for ${usualAddresses[kind].webUrl}`
        }
        error={wrong === "webUrl" ? create.error : null}
        placeholder={usualAddresses[kind].webUrl ?? "https://git.example.com"}
        value={webUrl}
        onChange={setWebUrl}
      />
      {kind !== "git" && (
        <AddressField
          label="API address"
          hint={`Empty for ${usualAddresses[kind].apiUrl(exampleOrigin(kind, webUrl)) ?? ""}. Of a server below a path, with that path.`}
          error={wrong === "apiUrl" ? create.error : null}
          value={apiUrl}
          onChange={setApiUrl}
        />
      )}
      <Field label="Name" hint="Empty for its host." error={wrong === "name" ? create.error : null}>
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
      <FormEnd
        error={wrong === null ? create.error : null}
        isPending={create.isPending}
        verb={credential.value === null ? "Continue" : "Check and connect"}
        pendingVerb="Checking …"
      />
    </form>
  );
}

/** The origin of the address so far, or of the kind's public server. */
function exampleOrigin(kind: ForgeKind, webUrl: string): string {
  const written = webUrl.trim();
  return URL.parse(written)?.origin ?? usualAddresses[kind].webUrl ?? "https://git.example.com";
}

/** Another credential of a connection. */
export function CredentialForm({ connection, onSaved }: { connection: Connection; onSaved: () => void }) {
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
        verb="Check and save"
        pendingVerb="Checking …"
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
  const types = (["token", "register", "app", "configured"] as const).filter(
    (each) => (each !== "app" && each !== "register") || (kind === "github" && (each === "app" || registers)),
  );
  return (
    <>
      <Field label="Credential" error={type === "configured" ? error : null}>
        {(attributes) => (
          <select
            {...attributes}
            className="field"
            value={type}
            onChange={({ target }) => choose(types.find((known) => known === target.value) ?? "token")}
          >
            {types.map((known) => (
              <option key={known} value={known}>
                {credentialNames[known]}
              </option>
            ))}
          </select>
        )}
      </Field>
      {type === "register" && (
        <Field
          label="Organization at GitHub"
          hint="Empty for your own account. GitHub asks you to confirm the App, and where it is installed."
          error={error}
        >
          {(attributes) => <input {...attributes} autoComplete="off" className="field" {...field("account")} />}
        </Field>
      )}
      {type === "token" && (kind === "git" || kind === "bitbucketDataCenter") && (
        <Field
          label="User name"
          hint={kind === "git" ? "Empty for git." : "Whose the token is. Empty for a token of a project or repository."}
        >
          {(attributes) => <input {...attributes} autoComplete="off" className="field" {...field("username")} />}
        </Field>
      )}
      {type === "token" && kind === "bitbucket" && (
        <Field
          label="E-mail address"
          hint="Of the account that has the API token. Empty for an access token of a repository, project or workspace."
        >
          {(attributes) => (
            <input {...attributes} inputMode="email" autoComplete="off" className="field" {...field("username")} />
          )}
        </Field>
      )}
      {type === "token" && (
        <Field label="Token" hint="It is never shown again." error={error}>
          {(attributes) => (
            <input {...attributes} type="password" autoComplete="off" className="field" {...field("token")} />
          )}
        </Field>
      )}
      {type === "app" && (
        <>
          <Field label="App id">
            {(attributes) => (
              <input {...attributes} inputMode="numeric" autoComplete="off" className="field" {...field("appId")} />
            )}
          </Field>
          <Field label="Private key" hint="As GitHub gave it: a .pem file’s content. Never shown again." error={error}>
            {(attributes) => (
              <textarea {...attributes} rows={4} spellCheck={false} className="field" {...field("privateKey")} />
            )}
          </Field>
        </>
      )}
    </>
  );
}
